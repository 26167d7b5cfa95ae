"""What goes into the image, by the files that say so; tests/node builds and runs it."""

import re
import subprocess
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "Containerfile").read_text(encoding="utf-8")


def pins(file):
    """Each package of a lock with its version, marker and hashes."""
    text = (ROOT / file).read_text(encoding="utf-8")
    entries = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    found = re.split(r"\n(?=\S)", "\n".join(entries))
    return {canonicalize_name(re.split(r"[=\[ ;]", entry)[0]): entry.strip() for entry in found}


def needed(name, extras):
    """The names of all packages that this one needs here, with these extras."""
    names, young = set(), [(name, frozenset(extras))]
    while young:
        parent, chosen = young.pop()
        for line in distribution(parent).requires or ():
            wanted = Requirement(line)
            if wanted.marker and not any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *chosen)):
                continue
            child = canonicalize_name(wanted.name)
            if child not in names or wanted.extras:
                if child not in names:
                    young.append((child, frozenset(wanted.extras)))
                names.add(child)
    return names


class TestTheLocks:
    @pytest.mark.parametrize("file", ["requirements.image.lock", "requirements.build.lock"])
    def test_of_an_image_have_nothing_that_the_projects_lock_has_not_just_so(self, file):
        whole = {name: entry.partition(" ;")[0] for name, entry in pins("requirements.lock").items()}
        hashes = {name: set(re.findall(r"sha256:\S+", entry)) for name, entry in pins("requirements.lock").items()}
        for name, entry in pins(file).items():
            version, found = re.search(r"==([^\s;\\]+)", entry)[1], set(re.findall(r"sha256:\S+", entry))
            assert f"=={version}" in whole[name], f"{name}: run `make image-locks`"
            assert found
            assert found == hashes[name], f"{name}: run `make image-locks`"

    def test_of_the_image_has_all_that_the_programs_need_and_nothing_of_the_labs_or_the_tests(self):
        locked = pins("requirements.image.lock")
        unconditional = {name for name, entry in locked.items() if " ; " not in entry}
        wanted = needed("fairpool", {"tracing"})
        assert wanted <= locked.keys(), "run `make image-locks`"
        assert unconditional <= wanted, "run `make image-locks`"
        assert not locked.keys() & {"matplotlib", "openai", "pytest", "rich", "ruff"}


class TestMake:
    @pytest.mark.parametrize("goals", [("image", "engine-image"), ("-j", "engine-image", "image")])
    def test_builds_the_engines_image_on_the_one_that_it_has_built_before(self, goals):
        named = ("BASE=python:3", "IMAGE=fairpool:dev", "ENGINE_IMAGE=fairpool-engine:dev", "BUILDER=echo")
        made = subprocess.run(
            ["make", "--no-print-directory", *goals, *named],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert [line for line in made.stdout.splitlines() if line.startswith("build ")] == [
            "build --file Containerfile --build-arg BASE=python:3 --tag fairpool:dev .",
            "build --file lab/Containerfile --build-arg IMAGE=fairpool:dev --tag fairpool-engine:dev lab",
        ]

    def test_builds_the_engines_image_alone_where_that_alone_is_asked_for(self):
        made = subprocess.run(
            ["make", "--no-print-directory", "engine-image", "BUILDER=echo"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert len(made.stdout.splitlines()) == 1


class TestWhatABuilderReads:
    def test_is_in_the_one_file_that_all_of_them_know(self):
        """Docker reads no .containerignore; buildah and podman read no .dockerignore beside one."""
        for context in (ROOT, ROOT / "lab"):
            assert (context / ".dockerignore").exists()
            assert not (context / ".containerignore").exists()
            assert not list(context.glob("Containerfile.*"))

    def test_is_what_the_containerfile_copies_and_nothing_else(self):
        lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        everything, *kept, caches = [line for line in lines if not line.startswith("#")]
        copied = re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINERFILE, re.MULTILINE)
        assert (everything, caches) == ("*", "**/__pycache__")
        assert {line.removeprefix("!") for line in kept} == set(" ".join(copied).split())


class TestTheContainerfile:
    def test_stands_on_the_base_that_it_is_given(self):
        assert set(re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE)) == {"${BASE}"}
        assert re.search(r"^ARG BASE$", CONTAINERFILE, re.MULTILINE)

    def test_ends_as_a_user_without_rights(self):
        assert re.findall(r"^USER (.+)$", CONTAINERFILE, re.MULTILINE) == ["65532:65532"]

    def test_installs_only_what_is_pinned(self):
        for command in re.findall(r"pip [^&\n]*install [^&\n]*", CONTAINERFILE):
            assert "--require-hashes" in command or "--no-index --no-deps" in command

    def test_copies_nothing_of_the_lab(self):
        copied = re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINERFILE, re.MULTILINE)
        assert copied
        assert "lab" not in " ".join(copied).split()
