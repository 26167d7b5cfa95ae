"""How the tests that make a node of the machine are ended: by a signal, with everything that they started."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import PATIENCE, descendants, held

PROGRAM = """
import sys
from support.node import alone
alone.machine.check = alone.build.kubernetes = lambda: None
alone.images = lambda: []
sys.exit(alone.main(sys.argv[1:]))
"""
TESTS = """
import signal, subprocess, threading, pytest

@pytest.fixture
def node():
    left = subprocess.Popen(["sleep", "1000"])
    yield
    print("torn down", flush=True)

def test_that_is_interrupted(node):
    print("begun", flush=True)
    threading.Event().wait()

def test_that_does_not_heed_it(node):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("begun", flush=True)
    threading.Event().wait()
"""
ROOT = Path(__file__).parents[2]
AS_ROOT = () if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user")


@pytest.fixture
def begun(tmp_path):
    """Starts one of those tests; returns the program once it has begun, and what it said from then on."""
    programs = []

    def start(test):
        (tmp_path / "test_node.py").write_text(TESTS)
        program = subprocess.Popen(
            [*AS_ROOT, sys.executable, "-c", PROGRAM, "-s", "-p", "no:cacheprovider", f"test_node.py::{test}"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        programs.append(program)
        heard_of(program, "begun")
        return program

    yield start
    for program in programs:
        program.kill()
        program.wait()
        program.stdout.close()


def heard_of(program, word):
    said = []
    for line in program.stdout:
        said.append(line)
        if word in line:
            return
    raise AssertionError("".join(said))


def test_make_passes_its_signal_on(tmp_path):
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\ntrap 'echo heard; exit' TERM\necho begun\nfor i in 1 2 3 4 5 6 7 8 9; do sleep 1; done\n"
    )
    python.chmod(0o755)
    command = ["make", "--old-file", ".venv/.ready", "test-cluster", f"BIN={tmp_path}"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as make:
        heard_of(make, "begun")
        make.terminate()
        heard_of(make, "heard")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_them_in_order(begun, number):
    program = begun("test_that_is_interrupted")
    with held(descendants(program.pid)) as staying:
        os.killpg(program.pid, number)
        heard_of(program, "torn down")
        assert program.wait(PATIENCE) == 130
        assert staying() == []


def test_a_second_one_kills_what_does_not_heed_the_first(begun):
    program = begun("test_that_does_not_heed_it")
    with held(descendants(program.pid)) as staying:
        os.killpg(program.pid, signal.SIGTERM)
        heard_of(program, "once more kills it")
        os.killpg(program.pid, signal.SIGTERM)
        assert program.wait(PATIENCE) == 130
        assert staying() == []


def test_the_death_of_the_program_ends_them(begun):
    program = begun("test_that_does_not_heed_it")
    with held(descendants(program.pid)) as staying:
        program.kill()
        assert staying() == []
