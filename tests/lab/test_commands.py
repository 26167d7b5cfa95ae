"""The pages' commands without kubectl, as they are written: in a network of their own, so that their ports are free."""

import os
import re
import shlex
import sys

import pytest
from support.commands import in_sentences, pages_to_run
from support.shell import checkout, shell

PAGES = pages_to_run(with_kubectl=False)
IN_SENTENCES = in_sentences(with_kubectl=False)

RUNS_ON = re.compile(r"^(?:\w+=\S+ )*(?:fairpool up|fairpool-gateway(?! .*--check))\b")
"""What goes on until it is ended."""

ALONE = (
    *("unshare", *(() if os.geteuid() == 0 else ("--user", "--map-root-user"))),
    *("--net", "--pid", "--fork", "--kill-child"),
)
"""Nothing outlives the shell: it is the first process of all that it sees."""

LOOPBACK = (
    "import fcntl, socket, struct; "
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh14x', b'lo', 0x49))"  # SIOCSIFFLAGS: up, loopback, running
)

ENGINE = f"{shlex.quote(sys.executable)} -m fairpool_lab.engine --port 8000 --model sim"
"""What the pages mean by an engine that runs."""

ASKED = (
    "import sys, urllib.request; "
    "urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f'http://127.0.0.1:{sys.argv[1]}/healthz')"
)

UNTIL_IT_SERVES = f"""
until {shlex.quote(sys.executable)} -c {shlex.quote(ASKED)} PORT 2>/dev/null; do
  kill -0 $! || {{ cat log; exit 1; }}
  sleep 0.1
done
kill -INT $!
wait $! || [ $? -eq 130 ]
cat log
"""


@pytest.mark.parametrize("page", sorted({*PAGES, *IN_SENTENCES}))
async def test_the_commands_of_a_page_do_what_they_say(page, tmp_path):
    directory = checkout(tmp_path / "checkout")
    async with shell(directory, directory, {"KEY": "sk-1", "CREDENTIAL": "c-1"}, within=ALONE) as typed:
        await typed.run(f"{shlex.quote(sys.executable)} -c {shlex.quote(LOOPBACK)}\nset -m\n{ENGINE} >/dev/null 2>&1 &")
        texts = [block.text for block in PAGES.get(page, ())] + IN_SENTENCES.get(page, [])
        for text in texts:
            for command in commands(text):
                if RUNS_ON.match(command):
                    port = "9080" if "fairpool up" in command else "8081"
                    print(await typed.run(f"{command} >log 2>&1 &{UNTIL_IT_SERVES.replace('PORT', port)}"))
                else:
                    print(await typed.run(command))
        await typed.run("kill %1\nwait %1 || true")


def commands(text):
    """One for each line, without the comment at its end."""
    return [re.sub(r"\s+#.*", "", line) for line in text.splitlines()]
