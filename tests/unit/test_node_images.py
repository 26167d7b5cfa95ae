"""Which images for the tests are made again, and which are kept; without making any."""

import os
import subprocess
import sys

import pytest
from support.node import images as node_images
from support.node import next_release
from support.node.images import images
from support.node.next_release import FIELD, OPTION, VALUE


@pytest.fixture
def project(tmp_path):
    """A small project with all that images are made of."""
    root = tmp_path / "project"
    for name in ("gateway", "operator", "crds", "lab"):
        (root / name).mkdir(parents=True)
        (root / name / "file.py").write_text(name)
    for name in ("Containerfile", ".dockerignore", "requirements.build.lock", "requirements.image.lock", "LICENSE"):
        (root / name).write_text(name)
    (root / "pyproject.toml").write_text("")
    return root


@pytest.fixture
def made(monkeypatch):
    """Tools that write empty archives; the list holds what they made."""
    done = []

    def save(self, image, name, archive):
        archive.touch()
        done.append(name)

    def debian(archive):
        archive.touch()
        done.append("base")

    monkeypatch.setattr(node_images, "_debian", debian)
    monkeypatch.setattr(node_images._Builder, "save", save)
    for image in ("sandbox", "fairpool", "next_release", "engine"):
        monkeypatch.setattr(node_images._Builder, image, lambda *_: "")
    return done


def test_each_is_made_once(project, made, tmp_path):
    first = images(project, tmp_path / "cache")
    assert sorted(made) == sorted(
        ["base", node_images.ENGINE, node_images.FAIRPOOL, node_images.NEXT_RELEASE, node_images.SANDBOX]
    )
    made.clear()
    assert images(project, tmp_path / "cache") == first
    assert made == []


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ("gateway", [node_images.FAIRPOOL, node_images.NEXT_RELEASE, node_images.ENGINE]),
        ("lab", [node_images.ENGINE]),
        ("lab/__pycache__", []),
    ],
)
def test_what_stands_on_a_change_is_made_again(project, made, tmp_path, changed, again):
    images(project, tmp_path / "cache")
    made.clear()
    (project / changed).mkdir(exist_ok=True)
    (project / changed / "more.py").write_text("more")
    images(project, tmp_path / "cache")
    assert made == again


def test_what_a_build_left_that_was_killed_is_removed_before_the_next(project, made, tmp_path):
    left = tmp_path / "cache" / ".images-left" / "store"
    left.mkdir(parents=True)
    images(project, tmp_path / "cache")
    assert [each.name for each in (tmp_path / "cache").iterdir() if each.is_dir()] == []


def test_the_last_four_that_were_used_are_kept(project, made, tmp_path):
    archives = []
    for number in range(6):
        (project / "gateway" / "file.py").write_text(str(number))
        archives.append(images(project, tmp_path / "cache").fairpool)
        os.utime(archives[-1], (number, number))
    assert [archive.exists() for archive in archives] == [False, False, True, True, True, True]


WRITTEN = """
from support.compiling import SmallCluster
from support.resources import fair_pool
from fairpool_gateway.config import dump
from fairpool_gateway.main import _parser
compiled = SmallCluster(fair_pool()).compiled()
print(compiled.objects, dump(compiled.config), _parser().format_help())
"""


def test_the_release_after_this_one_says_more_and_knows_what_it_says(tmp_path):
    next_release.write(node_images.ROOT, tmp_path)
    program = subprocess.run(
        [sys.executable, "-c", WRITTEN],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(node_images.ROOT / "tests")])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [
        program.stdout.count(word)
        for word in (f"'{OPTION}'", f"'{VALUE}'", f'"{FIELD}"', f"[{OPTION} ", f"json,{VALUE}")
    ] == [1, 1, 1, 1, 2]
