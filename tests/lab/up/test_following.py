"""Noticing edits: what counts is what has stayed, and it is what was seen and not what is there later."""

from __future__ import annotations

import pytest

from fairpool_lab.up import following
from fairpool_lab.up.following import Followed
from fairpool_operator.errors import CannotStart
from fairpool_operator.manifests import contents_of


@pytest.fixture
def edited(monkeypatch):
    """Have these edits made, one before each look, and nothing is waited for between two looks."""

    def edited(*edits):
        left = iter(edits)

        def look(paths):
            next(left, lambda: None)()
            return contents_of(paths)

        monkeypatch.setattr(following, "contents_of", look)
        monkeypatch.setattr(following, "_EVERY", 0)
        monkeypatch.setattr(following, "_REST", 0)
        monkeypatch.setattr(following, "_SETTLE", 0)

    return edited


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pool.yaml"
    path.write_text("kind: A")
    return path


def followed(file):
    return Followed([file.parent], contents_of([file.parent]))


def nothing():
    """No edit."""


async def test_a_content_counts_once_it_has_stayed(file, edited):
    following_it = followed(file)
    edited(nothing, lambda: file.write_text("kind: "), lambda: file.write_text("kind: B"))
    assert await following_it.changed() == {file: b"kind: B"}


async def test_a_file_that_is_emptied_counts_once_it_has_stayed_so_for_long(file, edited):
    following_it = followed(file)
    edited(lambda: file.write_text(""), *[nothing] * 10, lambda: file.write_text("kind: B"))
    assert await following_it.changed() == {file: b"kind: B"}
    edited(lambda: file.write_text(""))
    assert await following_it.changed() == {file: b""}


async def test_what_is_seen_is_told_whatever_is_written_right_after_it(file, edited):
    following_it = followed(file)
    edited(lambda: file.write_text("kind: B"), nothing, nothing, lambda: file.write_text("kind: A"))
    assert await following_it.changed() == {file: b"kind: B"}
    assert await following_it.changed() == {file: b"kind: A"}


async def test_that_nobody_can_look_is_told_once_and_then_the_next_content(file, edited):
    following_it = followed(file)
    away = file.parent.with_name("away")
    edited(lambda: file.parent.rename(away), nothing, nothing, nothing, lambda: away.rename(file.parent))
    with pytest.raises(CannotStart, match="there is no file or directory"):
        await following_it.changed()
    assert await following_it.changed() == {file: b"kind: A"}
