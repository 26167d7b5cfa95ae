"""`fairpool up` where an edit cannot be carried out: that pool says so and is tried again, and the others serve on."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

import openai
import pytest
import trustme
from support.up import certificate, eventually, pool, secret, up, weight, write

from fairpool_lab.up.state import PoolState

SEARCH, LONG, BATCH = "key-of-search-51c0", "key-of-a-long-name-3a3a", "key-of-batch-9f27"
KEYS = secret(search=SEARCH, long=LONG, batch=BATCH)
FAILED = "^  this cannot be done yet, and is tried again: "
SEARCH_TOO = {"tenantName": "search", "apiKeys": weight("search")["spec"]["apiKeys"]}


def answers(url: str, key: str = SEARCH) -> bool:
    """Whether a key gets an answer there; if not, it is nobody's."""
    with openai.OpenAI(base_url=url, api_key=key, max_retries=0) as client:
        asked = {"model": "sim", "max_tokens": 2, "messages": [{"role": "user", "content": "Hello"}]}
        with contextlib.suppress(openai.AuthenticationError):
            return bool(client.chat.completions.create(**asked).choices)
    return False


def unfit() -> dict:
    """The Secret of a certificate with the key of another."""
    one, other = (certificate(trustme.CA().issue_cert("127.0.0.1")) for _ in range(2))
    return {**one, "stringData": {**one["stringData"], "tls.key": other["stringData"]["tls.key"]}}


@pytest.fixture(scope="module")
def taken():
    """A socket that listens where the second pool is to, with the port before it free for the first."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            try:
                socket.create_server(("127.0.0.1", port - 1)).close()
            except OSError:
                continue
            yield listening
            return


@pytest.fixture(scope="module")
def running(tmp_path_factory, taken):
    """One pool that serves, with a state directory of its own."""
    directory = tmp_path_factory.mktemp("resources")
    write(directory / "keys.yaml", KEYS)
    write(directory / "all.yaml", pool(), weight("search"))
    port = taken.getsockname()[1] - 1
    state = tmp_path_factory.mktemp("state")
    with up("-f", directory, "--simulate", "1", "--port", str(port), "--state", state) as running:
        running.says("Ctrl-C ends everything")
        yield running
    assert running.process.returncode == 143


@pytest.fixture
def edit(running):
    """Have these resources instead; returns how much had been said before."""
    file = Path(running.says(r"^Pool default/llama, in (\S+):\d+: ")[1])

    def edit(*resources) -> int:
        so_far = len(running.said)
        write(file, *resources)
        return so_far

    return edit


def test_a_tenants_name_may_be_as_long_as_there_are(running, edit):
    name = "l" * 250
    so_far = edit(pool(), weight("search"), weight("long", tenantName=name))
    running.says(rf"^  tenant {name} ", after=so_far)
    eventually(lambda: answers(running.url(), LONG))


def test_a_new_pool_is_tried_until_its_port_is_free_and_its_gateway_starts(running, edit, taken):
    files = Path(running.says(r"^  files +(\S+)$")[1])
    log = PoolState(files.with_name("default.second")).path("gateway.log")
    log.mkdir()
    port = taken.getsockname()[1]
    so_far = edit(pool(), weight("search", weight=200), pool("second"), weight("search-too", "second", **SEARCH_TOO))
    running.says(rf"{FAILED}cannot listen on 127.0.0.1 port {port}: Address already in use\.", after=so_far)
    running.says(r"^Pool default/second, in \S+: not served$", after=so_far)
    running.says(r"^  tenant search  weight  200 ", after=so_far)
    assert answers(running.url())
    taken.close()
    running.says(rf"{FAILED}{log} cannot be written: Is a directory$", after=so_far)
    log.rmdir()
    assert answers(running.says(r"^Pool default/second, in \S+: (http:\S+)$", after=so_far)[1])


def test_a_pool_that_serves_goes_on_while_its_new_certificate_is_anothers(running, edit):
    over_tls = pool(gateway={"tls": {"certificateRef": {"name": "pair"}}})
    edit(pool(), weight("search"), weight("batch"))
    eventually(lambda: answers(running.url(), BATCH))
    so_far = edit(over_tls, weight("search"), unfit())
    not_its_key = r"\S+/tls.key is not the key of the certificate in \S+/tls.crt: give the two that were made together$"
    running.says(rf"{FAILED}\S+:\d+: the certificate that spec.gateway.tls names .*: {not_its_key}", after=so_far)
    assert answers(running.url())
    eventually(lambda: not answers(running.url(), BATCH))
    so_far = edit(over_tls, weight("search"), weight("batch", weight=200), unfit())
    running.says(r"^  tenant batch   weight  200 ", after=so_far)
    running.says(rf"{FAILED}\S+:\d+: the certificate that spec.gateway.tls names ", after=so_far)
    eventually(lambda: answers(running.url(), BATCH))
    edit(over_tls, weight("search"), certificate(trustme.CA().issue_cert("127.0.0.1")))
    running.says(r"^Pool default/llama, in \S+: https:", after=so_far)
    so_far = edit(pool(), weight("search"))
    running.says(r"^Pool default/llama, in \S+: http:", after=so_far)


def test_engines_that_do_not_start_leave_those_that_run_and_hold_up_nothing_else(running, edit):
    files = Path(running.says(r"^  files +(\S+)$")[1])
    log = files / "engine-1.log"
    log.mkdir()
    edit(pool(), weight("search"), weight("batch"))
    eventually(lambda: answers(running.url(), BATCH))
    so_far = edit(pool(models=["-large"]), weight("search"))
    running.says(rf"{FAILED}{log} cannot be written: Is a directory$", after=so_far)
    assert answers(running.url())
    eventually(lambda: not answers(running.url(), BATCH))
    log.rmdir()
    edit(pool(models=["-large"]), weight("search", weight=200))  # which is tried at once
    running.says(r"^  endpoints  1 simulated engine, -large$", after=so_far)
