"""The images that the node's pods run, as archives in the user's cache, each made once of what it is made of.

`base` is a Debian with Python, `sandbox` the same as something that sleeps (which holds a pod's network), `fairpool` is
what the project's Containerfile builds on it, `next_release` that with the programs of `support.node.next_release`, and
`engine` what lab/Containerfile builds on it. No registry of images takes part: the base comes from Debian's packages,
what is installed on it from where pip looks on this machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.built import BuildFailed, alone, cache_directory, say
from support.node import next_release

ROOT: Final = Path(__file__).parents[3]

FAIRPOOL: Final = "fairpool:dev"
NEXT_RELEASE: Final = "fairpool:next"
ENGINE: Final = "fairpool-engine:dev"
SANDBOX: Final = "localhost/sandbox:1"

_SUITE: Final = "bookworm"
_PACKAGES: Final = ("ca-certificates", "python3", "python3-venv")
_LEFT_OUT: Final = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*")
_DEBIAN: Final = (
    *("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(_PACKAGES)}"),
    *(f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT),
    _SUITE,
)
_ASLEEP: Final = ("/bin/sleep", "infinity")
_MOUNTED: Final = ("/etc/ssl/certs", "/etc/pip.conf")
_PASSED_ON: Final = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
"""How pip on this machine knows whom to trust and where to look."""

_SOURCES: Final = (
    *("Containerfile", ".dockerignore", "requirements.build.lock", "requirements.image.lock"),
    *("pyproject.toml", "LICENSE", "crds", "gateway", "operator"),
)
"""All but README.md, which is a description inside the image and nothing more."""

_NEXT: Final = "/opt/next"
_WORK: Final = ".images-"
_KEPT: Final = 4
"""As many archives of a kind stay in the cache, the last used: each is some hundred megabytes."""


@dataclass(frozen=True)
class Images:
    """Archives that containerd imports."""

    sandbox: Path
    fairpool: Path
    next_release: Path
    engine: Path

    def __iter__(self) -> Iterator[Path]:
        return iter((self.sandbox, self.fairpool, self.next_release, self.engine))


def images(root: Path = ROOT, cache: Path | None = None) -> Images:
    """Those of a clone, from the cache where they are there; otherwise made now, which takes a minute or two.

    Raises:
        BuildFailed: a tool refused.
    """
    cache = cache or cache_directory()
    base = cache / f"image-base-{_key(_DEBIAN)}.tar"
    sandbox = cache / f"image-sandbox-{_key((*_DEBIAN, *_ASLEEP))}.tar"
    made_of = _key((base.name,), (root / each for each in _SOURCES))
    fairpool = cache / f"image-fairpool-{made_of}.tar"
    following = cache / f"image-next-{_key((made_of,), (Path(next_release.__file__),))}.tar"
    engine = cache / f"image-engine-{_key((made_of,), (root / 'lab',))}.tar"
    with alone(cache / "images.lock", "the images"), tempfile.TemporaryDirectory(dir=cache, prefix=_WORK) as work:
        _sweep(cache, Path(work))
        builder = _Builder(Path(work), base)
        if not base.exists():
            _timed("a base image of Debian's packages", lambda: _debian(base))
        if not sandbox.exists():
            builder.save(builder.sandbox(), SANDBOX, sandbox)
        if not fairpool.exists():
            _timed("the project's image", lambda: builder.save(builder.fairpool(root), FAIRPOOL, fairpool))
        if not following.exists():
            what = "an image of the release after this one"
            _timed(what, lambda: builder.save(builder.next_release(root, fairpool), NEXT_RELEASE, following))
        if not engine.exists():
            _timed("the simulated engine's image", lambda: builder.save(builder.engine(root, fairpool), ENGINE, engine))
        for used in (base, sandbox, fairpool, following, engine):
            os.utime(used)
        _forget_unused(cache)
    return Images(sandbox, fairpool, following, engine)


class _Builder:
    """buildah with a store of its own, gone with its directory."""

    def __init__(self, work: Path, base: Path) -> None:
        self._work = work
        self._base = base
        self._based: str | None = None

    def sandbox(self) -> str:
        """The base as something that sleeps."""
        container = self._run("from", "--pull-never", self.base())
        self._run("config", "--entrypoint", json.dumps(_ASLEEP), container)
        return self._run("commit", "--quiet", "--rm", container)

    def base(self) -> str:
        """What everything stands on."""
        if self._based is None:
            container = self._run("from", "scratch")
            self._run("add", "--quiet", container, str(self._base), "/")
            self._based = self._run("commit", "--quiet", "--rm", container)
        return self._based

    def fairpool(self, root: Path) -> str:
        """The project's image, as `make image` builds it, with this machine's certificates and settings of pip."""
        places = [f"--build-arg={name}" for name in _PASSED_ON if name in os.environ]  # their values may be secret
        mounted = [f"--volume={path}:{path}:ro" for path in _MOUNTED if Path(path).exists()]
        return self._build(f"--build-arg=BASE={self.base()}", *places, *mounted, str(root))

    def engine(self, root: Path, fairpool: Path) -> str:
        """The simulated engine's image, on that one."""
        lab = root / "lab"
        return self._build(f"--file={lab / 'Containerfile'}", f"--build-arg=IMAGE={self._pulled(fairpool)}", str(lab))

    def next_release(self, root: Path, fairpool: Path) -> str:
        """That image with the programs of the release after this one, which Python finds first."""
        sources = self._work / "next"
        next_release.write(root, sources)
        container = self._run("from", "--pull-never", self._pulled(fairpool))
        self._run("add", "--quiet", container, str(sources), _NEXT)
        self._run("config", "--env", f"PYTHONPATH={_NEXT}", container)
        return self._run("commit", "--quiet", "--rm", container)

    def save(self, image: str, name: str, archive: Path) -> None:
        """Write an image into a file, which is never there half."""
        written = self._work / archive.name
        self._run("push", "--quiet", image, f"docker-archive:{written}:{name}")
        written.rename(archive)

    def _pulled(self, archive: Path) -> str:
        return self._run("pull", "--quiet", f"docker-archive:{archive}")

    def _build(self, *arguments: str) -> str:
        """Build an image; returns its id."""
        return self._run("build", "--isolation=chroot", "--network=host", "--pull-never", "--quiet", *arguments)

    def _run(self, command: str, *arguments: str) -> str:
        store = ("--root", str(self._work / "store"), "--runroot", str(self._work / "run"), "--storage-driver", "vfs")
        return _run(["buildah", *store, command, *arguments]).strip()


def _debian(archive: Path) -> None:
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=_WORK) as work:
        written = Path(work) / archive.name
        _run([*_DEBIAN, str(written)])
        written.rename(archive)


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildFailed(f"{' '.join(command[:1])} failed:\n{done.stderr[-3000:]}")
    return done.stdout


def _timed(what: str, make: Callable[[], None]) -> None:
    say(f"Making {what}, once for what it is made of")
    began = time.monotonic()
    make()
    say(f"Made in {time.monotonic() - began:.0f} s")


def _key(words: Sequence[str], paths: Iterable[Path] = ()) -> str:
    """Says all that an image depends on in a few digits."""
    digest = hashlib.sha256("\0".join([platform.machine(), *words]).encode())
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"\0{file.relative_to(path.parent)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _sweep(cache: Path, own: Path) -> None:
    """Remove what builds that were killed left, but for what somebody has mounted something in."""
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()]
    for left in cache.glob(f"{_WORK}*"):
        if left != own and not any(Path(place).is_relative_to(left.resolve()) for place in mounted):
            shutil.rmtree(left)


def _forget_unused(cache: Path) -> None:
    for kind in ("base", "sandbox", "fairpool", "next", "engine"):
        newest_first = sorted(cache.glob(f"image-{kind}-*.tar"), key=lambda each: each.stat().st_mtime, reverse=True)
        for archive in newest_first[_KEPT:]:
            archive.unlink()


def main() -> int:
    """Have them ready, and say where they are; returns the exit status."""
    try:
        made = images()
    except BuildFailed as error:
        say(str(error))
        return 1
    sys.stdout.write("".join(f"Image for the tests: {archive}\n" for archive in made))
    return 0


if __name__ == "__main__":
    sys.exit(main())
