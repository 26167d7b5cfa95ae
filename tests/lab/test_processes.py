"""Child processes are announced, missed when they end, and gone when the command is, whatever ended it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from support.processes import descendants, held

from fairpool_lab import processes
from fairpool_lab.errors import Interrupted, OutputInvalid, ProcessFailed
from fairpool_lab.processes import Program, running

SAYS = re.compile(r"listening on (\d+)")
SERVES = "import signal; print('listening on 1', flush=True); signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SERVES
STUBBORN_WITH_A_CHILD = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]]); " + STUBBORN

PARENT = """
import asyncio, sys
from pathlib import Path
from fairpool_lab.errors import Interrupted
from fairpool_lab.processes import Program, run, running
import re

async def main(out, code):
    programs = [
        Program(f"child-{n}", [sys.executable, "-c", code], re.compile("listening"), out / f"{n}.log") for n in range(2)
    ]
    async with running(*programs):
        print("running", flush=True)
        await asyncio.sleep(60)

try:
    run(main(Path(sys.argv[1]), sys.argv[2]))
except Interrupted as interrupted:
    sys.exit(interrupted.status)
"""


def program(code: str, output: Path, *arguments: str) -> Program:
    return Program("the child", [sys.executable, "-c", code, *arguments], SAYS, output)


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert descendants(os.getpid()) == {}


class TestRunning:
    async def test_programs_run_side_by_side_until_the_block_ends(self, tmp_path):
        codes = [SERVES.replace("on 1", f"on {number}") for number in range(3)]
        programs = [program(code, tmp_path / f"{number}.log") for number, code in enumerate(codes)]
        async with running(*programs) as said:
            assert [match[1] for match in said] == ["0", "1", "2"]
            assert len(descendants(os.getpid())) == 3
        assert descendants(os.getpid()) == {}

    async def test_what_a_child_prints_is_in_its_file(self, tmp_path):
        code = "print('first'); " + SERVES.replace("signal.pause()", "print('last', flush=True); signal.pause()")
        async with running(program(code, tmp_path / "log")):
            pass
        assert (tmp_path / "log").read_text().splitlines()[:2] == ["first", "listening on 1"]

    async def test_a_disk_that_is_full_ends_nothing(self):
        async with running(program(SERVES, Path("/dev/full"))) as [said]:
            assert said[1] == "1"

    async def test_an_error_of_the_block_passes_and_ends_the_children(self, tmp_path):
        with pytest.raises(ProcessFailed, match="of the block"):
            async with running(program(SERVES, tmp_path / "log")):
                raise ProcessFailed("of the block")

    async def test_a_child_that_does_not_go_is_killed_with_what_it_started(self, tmp_path):
        stubborn = replace(program(STUBBORN_WITH_A_CHILD, tmp_path / "log", SERVES), stop_seconds=0.2)
        with ExitStack() as stack:
            async with running(stubborn):
                children = descendants(os.getpid())
                staying = stack.enter_context(held(children))
            assert len(children) == 2
            assert staying() == []

    async def test_one_that_does_not_go_is_killed_at_once_when_nobody_waits_any_longer(self, tmp_path):
        patient = replace(program(STUBBORN, tmp_path / "log"), stop_seconds=600.0)
        runs, told, over = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def run_it() -> None:
            async with running(patient):
                runs.set()
                await over.wait()
                told.set()

        task = asyncio.create_task(run_it())
        await runs.wait()
        with held(descendants(os.getpid())) as staying:
            over.set()
            await told.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert staying() == []

    async def test_each_line_is_told_as_it_comes(self, tmp_path):
        lines: list[str] = []
        code = "print('first'); " + SERVES
        async with running(replace(program(code, tmp_path / "log"), heard=lines.append)):
            assert lines == ["first\n", "listening on 1\n"]


class TestWhatFails:
    async def test_a_child_that_ends_before_it_serves_is_named_with_its_last_words(self, tmp_path):
        with pytest.raises(
            ProcessFailed, match=r"^the child ended with status 3 before it served anything; .*\nno luck"
        ):
            async with running(program("import sys; print('no luck'); sys.exit(3)", tmp_path / "log")):
                pytest.fail("it runs")

    async def test_one_that_fails_ends_those_that_serve(self, tmp_path):
        with pytest.raises(ProcessFailed, match="status 3"):
            async with running(
                program(SERVES, tmp_path / "0.log"), program("import sys; sys.exit(3)", tmp_path / "1.log")
            ):
                pytest.fail("it runs")

    async def test_one_that_ends_while_it_is_needed_cancels_the_block(self, tmp_path):
        with pytest.raises(ProcessFailed, match=r"^the child ended by SIGKILL while it was needed"):
            async with running(program(SERVES, tmp_path / "0.log"), program(SERVES, tmp_path / "1.log")):
                os.kill(min(descendants(os.getpid())), signal.SIGKILL)
                await asyncio.Event().wait()

    async def test_one_that_says_nothing_in_time_is_given_up(self, tmp_path):
        silent = replace(program("import signal; signal.pause()", tmp_path / "log"), start_seconds=0.2)
        with pytest.raises(ProcessFailed, match=r"the child did not start within 0\.2 s, and said nothing"):
            async with running(silent):
                pytest.fail("it runs")

    async def test_a_file_that_cannot_be_written_is_named(self, tmp_path):
        with pytest.raises(OutputInvalid, match="none/log cannot be written: No such file"):
            async with running(program(SERVES, tmp_path / "none" / "log")):
                pytest.fail("it runs")

    async def test_one_that_the_kernel_does_not_start_is_named(self, tmp_path):
        with pytest.raises(ProcessFailed, match=r"^the child cannot be started: Argument list too long$"):
            async with running(program(SERVES, tmp_path / "log", "x" * 200_000)):
                pass

    async def test_a_program_that_does_not_exist_is_a_failure_like_any_other(self, tmp_path):
        with pytest.raises(ProcessFailed, match="No such file"):
            async with running(Program("the child", ["/nowhere/to/be/found"], SAYS, tmp_path / "log")):
                pytest.fail("it runs")


class TestTheEndOfTheParent:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_ends_the_children_and_is_told_in_the_status(self, tmp_path, number):
        assert self.parent_that_gets(number, tmp_path, SERVES) == 128 + number

    def test_a_second_signal_does_not_stop_the_clean_up(self, tmp_path):
        slow = SERVES.replace(
            "import signal;",
            "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), sys.exit()));",
        )
        assert self.parent_that_gets(signal.SIGINT, tmp_path, slow, times=3) == 128 + signal.SIGINT

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's death")
    def test_children_do_not_outlive_a_parent_that_was_killed(self, tmp_path):
        assert self.parent_that_gets(signal.SIGKILL, tmp_path, SERVES) == -signal.SIGKILL

    def parent_that_gets(self, number: int, out: Path, code: str, times: int = 1) -> int:
        """The exit status of a process with two children that gets a signal, after seeing that all are gone."""
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, str(out), code], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        with parent:
            assert parent.stdout is not None
            assert parent.stdout.readline() == "running\n"
            children = descendants(parent.pid)
            assert len(children) == 2
            with held(children) as staying:
                for _ in range(times):
                    os.killpg(parent.pid, number)
                status = parent.wait(timeout=20)
                assert staying() == []
        return status


def test_a_cancellation_that_no_signal_caused_is_none():
    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        processes.run(cancelled())


def test_what_a_coroutine_returns_is_returned():
    async def answer() -> int:
        return 42

    assert processes.run(answer()) == 42


def test_an_interrupted_command_ends_with_128_and_the_signals_number():
    async def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    with pytest.raises(Interrupted) as ended:
        processes.run(interrupted())
    assert ended.value.status == 143
