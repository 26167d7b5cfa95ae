"""Where the files of a session go: what is had alone, what is removed, and what is never touched."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.permissions import minded

from fairpool_lab.errors import OutputInvalid
from fairpool_lab.up.state import CONFIG, MARKER, headers, key, state
from fairpool_operator.view import PoolKey

LLAMA = PoolKey("default", "llama")
FROM_SECRETS = {"engine/api-key": b"sk-2", "engine-ca/ca.crt": b"", "tls/tls.key": b"sk-3", key("search"): b"sk-1"}


def files_below(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture
def somebody_elses(tmp_path) -> Path:
    """A directory with files that are called as those of a pool are."""
    for name in (CONFIG, *FROM_SECRETS):
        path = tmp_path / "elsewhere" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"precious")
    return tmp_path / "elsewhere"


def test_a_directory_that_another_one_has(tmp_path):
    with state(tmp_path, print), pytest.raises(OutputInvalid) as refusal, state(tmp_path, print):
        pass
    assert str(refusal.value) == f"{tmp_path} is another fairpool up's, which runs: give another directory with --state"
    with state(tmp_path, print) as free_again:
        assert free_again.directory == tmp_path


def test_a_directory_that_cannot_be_looked_into(tmp_path):
    tmp_path.chmod(0o300)
    with minded(), pytest.raises(OutputInvalid) as refusal, state(tmp_path, print):
        pass
    tmp_path.chmod(0o700)
    assert str(refusal.value) == f"{tmp_path} cannot be looked into: Permission denied"


def test_a_directory_where_none_can_be_had_alone(tmp_path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OutputInvalid) as refusal, state(tmp_path, print):
        pass
    assert str(refusal.value).startswith(f"{tmp_path} cannot be had alone: No locks available: give another directory")


def test_keys_that_a_killed_session_left_are_gone_at_the_next_beginning_and_nothing_else(tmp_path):
    with state(tmp_path, print) as killed:
        files = killed.of(LLAMA)
        files.write({"gateway.log": b""})
    files.write(FROM_SECRETS)
    with state(tmp_path, print):
        assert files_below(tmp_path / "default.llama") == {MARKER, "gateway.log"}


class TestWithoutAPlace:
    @pytest.fixture(autouse=True)
    def temporary(self, tmp_path, monkeypatch):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def test_all_that_a_killed_session_left_is_gone_at_the_next_beginning(self, tmp_path):
        dies = (
            "import os; from fairpool_lab.up.state import key, state; from fairpool_operator.view import PoolKey\n"
            "with state(None, print) as files:\n"
            "    files.of(PoolKey('default', 'llama')).write({key('search'): b'sk-1'})\n"
            "    os.kill(os.getpid(), 9)\n"
        )
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        subprocess.run([sys.executable, "-c", dies], env=environment, check=False, timeout=60)
        assert {path.name for path in tmp_path.glob("*/default.llama/*")} == {MARKER, "keys"}
        with state(None, print) as kept:
            assert list(tmp_path.iterdir()) == [kept.directory]
        assert list(tmp_path.iterdir()) == []

    def test_what_another_has_that_runs_and_what_is_not_marked_stay(self, tmp_path):
        (tmp_path / "fairpool-notes").mkdir()
        with state(None, print) as one, state(None, print) as other:
            assert set(tmp_path.iterdir()) == {tmp_path / "fairpool-notes", one.directory, other.directory}
        assert list(tmp_path.iterdir()) == [tmp_path / "fairpool-notes"]


def test_of_what_came_of_secrets_only_what_is_needed_stays(tmp_path):
    with state(tmp_path, print) as kept:
        files = kept.of(LLAMA)
        files.write({CONFIG: b"{}", "engine/other-key": b"sk-4", key("batch"): b"sk-5", **FROM_SECRETS})
        (files.directory / "keys" / "mine").mkdir()
        files.forget_secrets(but=["engine/api-key", key("search"), headers("search")])
        assert files_below(files.directory) == {MARKER, CONFIG, "engine/api-key", key("search")}
        assert {path.name for path in files.directory.iterdir() if path.is_dir()} == {"engine", "keys"}


class TestWhatCannotBeRemoved:
    def test_is_told_of_at_the_beginning_and_at_the_end_and_all_else_is_gone(self, tmp_path):
        with state(tmp_path, print) as killed:
            files = killed.of(LLAMA)
            files.write({CONFIG: b"{}"})
        files.write(FROM_SECRETS)
        keys = files.directory / "keys"
        keys.chmod(0o500)
        said: list[str] = []
        with minded(), state(tmp_path, said.append):
            assert said == [f"{keys} cannot be removed, and came of Secrets: Permission denied"]
            assert files_below(files.directory) == {MARKER, CONFIG, key("search")}
        assert said == 2 * said[:1]
        keys.chmod(0o700)

    def test_is_told_of_where_nobody_can_see_it_any_more(self, tmp_path):
        said: list[str] = []
        with minded(), state(tmp_path, said.append) as kept:
            files = kept.of(LLAMA)
            files.write(FROM_SECRETS)
            tmp_path.chmod(0)
        tmp_path.chmod(0o700)
        assert said == [f"{files.directory} cannot be looked into: Permission denied"]

    def test_is_told_of_where_only_some_of_it_is_to_go(self, tmp_path):
        with state(tmp_path, print) as kept:
            files = kept.of(LLAMA)
            files.write({key("search"): b"sk-1", key("batch"): b"sk-2"})
            keys = files.directory / "keys"
            keys.chmod(0o500)
            with minded(), pytest.raises(OutputInvalid) as refusal:
                files.forget_secrets(but=[key("search")])
            keys.chmod(0o700)
        told = f"{files.directory / key('batch')} cannot be removed, and came of Secrets: Permission denied"
        assert str(refusal.value) == told


def test_what_came_of_secrets_is_gone_at_the_end(tmp_path):
    with state(tmp_path, print) as kept:
        kept.of(LLAMA).write({CONFIG: b"{}", **FROM_SECRETS})
        assert files_below(tmp_path / "default.llama") == {MARKER, CONFIG, *FROM_SECRETS}
    assert files_below(tmp_path / "default.llama") == {MARKER, CONFIG}


class TestADirectoryOfSomebodyElses:
    def test_beside_those_of_pools_stays_as_it_is(self, somebody_elses):
        there = files_below(somebody_elses)
        with state(somebody_elses.parent, print) as kept:
            kept.of(LLAMA).write(FROM_SECRETS)
            assert files_below(somebody_elses) == there
        assert files_below(somebody_elses) == there

    @pytest.mark.parametrize("is_link", [False, True])
    def test_in_the_place_of_a_pools_is_not_used(self, somebody_elses, tmp_path, is_link):
        place = tmp_path / "default.llama"
        place.symlink_to(somebody_elses) if is_link else somebody_elses.rename(place)
        there = files_below(place.resolve())
        with state(tmp_path, print) as kept:
            with pytest.raises(OutputInvalid) as refusal:
                kept.of(LLAMA).write({"gateway.log": b""})
            assert files_below(place.resolve()) == there
        assert files_below(place.resolve()) == there
        made = f"{place} is there already, and no fairpool up of yours made it"
        assert str(refusal.value) == f"{made}: move it away, or give another directory with --state"

    def test_to_which_a_link_leads_from_where_a_pools_was_stays_as_it_is(self, tmp_path):
        with state(tmp_path, print) as moved:
            moved.of(LLAMA).write({CONFIG: b"{}"})
        away = (tmp_path / "default.llama").rename(tmp_path.with_name(f"{tmp_path.name}-away"))
        (tmp_path / "default.llama").symlink_to(away)
        (away / "keys").mkdir()
        (away / key("search")).write_bytes(b"precious")
        with state(tmp_path, print):
            pass
        assert files_below(away) == {MARKER, CONFIG, key("search")}

    def test_is_not_used_though_another_user_gave_it_the_mark(self, tmp_path, monkeypatch):
        with state(tmp_path, print) as theirs:
            theirs.of(LLAMA).write({CONFIG: b"{}"})
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with state(tmp_path, print) as kept, pytest.raises(OutputInvalid):
            kept.of(LLAMA).write(FROM_SECRETS)

    def test_to_which_a_link_in_a_pools_leads_loses_nothing(self, somebody_elses, tmp_path):
        there = files_below(somebody_elses)
        with state(tmp_path, print) as kept:
            files = kept.of(LLAMA)
            files.write({CONFIG: b"{}"})
            (files.directory / "keys").symlink_to(somebody_elses / "keys")
            with pytest.raises(OutputInvalid):
                files.write({key("search"): b"sk-1"})
            files.forget_secrets(but=[key("search")])
        assert files_below(somebody_elses) == there


def test_tenants_share_no_file_whatever_they_are_called(tmp_path):
    tenants = ["x", "x.headers", "X", "..", "a/b", "a%2Fb", "t" * 253, "t" * 252, "\N{SNOWMAN}" * 80]
    names = [name for tenant in tenants for name in (key(tenant), headers(tenant))]
    assert len({name.lower() for name in names}) == len(names)
    with state(tmp_path, print) as kept:
        files = kept.of(LLAMA)
        files.write(dict.fromkeys(names, b"sk-1"))
        assert files_below(files.directory) == {MARKER, *names}
