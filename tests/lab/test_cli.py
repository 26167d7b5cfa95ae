"""The command `fairpool`: what cannot be used is said in one line, and what a signal ends leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import PATIENCE, descendants, held, until

from fairpool_lab.cli import main
from fairpool_lab.demo import show
from fairpool_lab.errors import Interrupted

FAIRPOOL = Path(sys.executable).with_name("fairpool")


@pytest.mark.parametrize(
    "arguments", [[], ["lab"], ["no-such-command"], ["demo", "--no-such-option"], ["demo", "--out"]]
)
def test_what_is_no_command_ends_with_status_2_and_the_usage(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: fairpool")


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"], ["up", "--help"], ["lab", "gap", "--help"]])
def test_every_command_explains_itself(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: fairpool")


def test_a_command_without_a_library_that_it_needs_says_how_to_get_it():
    without = (
        "import sys; sys.modules['rich'] = None; from fairpool_lab.cli import main; sys.exit(main(['lab', 'list']))"
    )
    ran = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, timeout=60, check=False)
    said = "fairpool: this needs the library rich: pip install '.[lab]' in a checkout\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", said)


@pytest.mark.parametrize("out", ["taken", "taken/below"])
def test_a_place_that_cannot_be_written_to_ends_the_demonstration_before_it_starts(tmp_path, out, capsys):
    (tmp_path / "taken").write_text("a file")
    assert main(["demo", "--out", str(tmp_path / out)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"fairpool: {tmp_path / out} is no directory that can be written to: ")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("ended_by", "status"),
    [(Interrupted(signal.SIGTERM), 143), (Interrupted(signal.SIGINT), 130), (KeyboardInterrupt(), 130)],
)
def test_a_signal_is_told_in_the_status_as_shells_expect_it(monkeypatch, ended_by, status):
    def demonstrate(*_: object) -> int:
        raise ended_by

    monkeypatch.setattr(show, "demonstrate", demonstrate)
    assert main(["demo"]) == status


def test_ctrl_c_in_the_middle_of_a_run_ends_it_at_once_with_all_its_processes(tmp_path):
    command = subprocess.Popen(
        [FAIRPOOL, "demo", "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with command:
        log = tmp_path / "arrival-order.decisions.jsonl"
        until(lambda: command.poll() is not None or (log.exists() and b"dispatch" in log.read_bytes()), tmp_path)
        children = descendants(command.pid)
        assert sum("fairpool_lab.engine" in child for child in children.values()) == 4
        assert sum(str(tmp_path) in child for child in children.values()) == 1
        with held(children) as staying:
            os.killpg(command.pid, signal.SIGINT)
            _, said = command.communicate(timeout=PATIENCE)
            assert staying() == []
    assert command.returncode == 130
    assert said == "fairpool: interrupted; every process has ended\n"
