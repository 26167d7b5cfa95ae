"""The C programs are built once, whole or not at all, and what is missing for that is said."""

from __future__ import annotations

import shutil

import pytest

from fairpool_lab.bench import compiled
from fairpool_lab.errors import MachineLacks, ProcessFailed


@pytest.fixture(autouse=True)
def _an_empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_program_is_built_once_for_its_sources_and_flags(tmp_path, monkeypatch):
    built = compiled.program("backend")
    assert built.is_relative_to(tmp_path / "cache")
    first = built.stat()
    assert compiled.program("backend").stat() == first
    assert compiled.program("backend", ("-O1",)) != built
    changed = tmp_path / "sources"
    shutil.copytree(compiled.SOURCES, changed)
    (changed / "clock.h").write_text((changed / "clock.h").read_text() + "\n")
    monkeypatch.setattr(compiled, "SOURCES", changed)
    assert compiled.program("backend") != built


def test_our_compiler_has_nothing_to_say_of_them(tmp_path):
    for name in ("load", "backend"):
        compiled.compile_to(tmp_path / name, compiled.SOURCES / f"{name}.c", (*compiled.FAST, "-Werror"))


def test_without_a_compiler_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(MachineLacks, match="apt-get install gcc"):
        compiled.program("load")


def test_what_cannot_be_compiled_is_quoted_and_leaves_nothing(tmp_path):
    with pytest.raises(ProcessFailed, match="no-such-thing"):
        compiled.program("load", ("-fno-such-thing",))
    assert list((tmp_path / "cache" / "fairpool").iterdir()) == []
