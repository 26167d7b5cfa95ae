"""The endpoint, and the subjects in front of it: started, asked until each serves, and ended with the run.

A subject that cannot be had, that does not serve, or that ends while others are measured is left out from then on, with
the reason; it ends nothing but itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from fairpool_lab.bench import compiled
from fairpool_lab.bench.machine import Cores, free_port, pinned
from fairpool_lab.bench.subjects import CROWDED, DIRECT, GATEWAY, Place, Subject, key_of
from fairpool_lab.errors import LabError, ProcessFailed
from fairpool_lab.processes import Program, running

EXPECTED: Final = ("answered", "tenant_gone")
"""How requests may end at the gateway."""

_READY_SECONDS = 90.0
_LAST = 2000
_ENDPOINT_SAYS = re.compile(r"listening on 127\.0\.0\.1:(\d+)")
_OUTCOME = re.compile(r'^fairpool_outcomes_total\{reason="(\w+)",tenant="[^"]*"\} (\S+)$', re.MULTILINE)
_FIRST_ITS_NUMBER = ("sh", "-c", 'ulimit -n "$(ulimit -Hn)"; echo process $$; exec "$@"', "sh")


@dataclass(frozen=True, slots=True)
class Target:
    """One that serves: its port, the session of its processes, and the gateway's admin port."""

    port: int
    session: int
    admin: int | None = None


class Stage:
    """Who serves now, and why others do not."""

    def __init__(self, endpoint: Target, cores: Cores, directory: Path, say: Callable[[str], None]) -> None:
        self.targets = {DIRECT: endpoint}
        self.about = {DIRECT: "the endpoint itself, with nothing in front of it: what load and endpoint can do"}
        self.left_out: dict[str, str] = {}
        self._endpoint = endpoint
        self._cores = cores
        self._directory = directory
        self._say = say
        self._over = asyncio.Event()

    async def keep(self, subject: Subject, decided: asyncio.Event) -> None:
        """Have one serve until the stage is over; `decided` is set once it does, or once it is left out."""
        try:
            program = await asyncio.to_thread(subject.program)
            async with self._serving(subject, program) as target:
                self.targets[subject.name] = target
                self.about[subject.name] = await asyncio.to_thread(described, subject, program)
                decided.set()
                await self._over.wait()
        except LabError as error:
            self.targets.pop(subject.name, None)
            self.left_out[subject.name] = str(error)
            self._say(f"{subject.name} is left out: {error}")
        finally:
            decided.set()

    def end(self) -> None:
        """Nobody has to serve any longer."""
        self._over.set()

    async def unexpected(self) -> dict[str, int]:
        """How requests ended by the gateways' own account, if not as they should."""
        found: dict[str, int] = {}
        for target in self.targets.values():
            if target.admin is not None:
                async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{target.admin}", timeout=60) as admin:
                    try:
                        outcomes = outcomes_in((await admin.get("/metrics")).text)
                    except httpx.HTTPError as error:
                        raise ProcessFailed(f"the gateway does not tell its metrics: {error!r}") from error
                for reason in outcomes.keys() - set(EXPECTED):
                    found[reason] = found.get(reason, 0) + outcomes[reason]
        return found

    @contextlib.asynccontextmanager
    async def _serving(self, subject: Subject, program: Path) -> AsyncIterator[Target]:
        own = self._directory / subject.name
        own.mkdir()
        place = Place(own, self._endpoint.port, free_port(), free_port())
        command = subject.command(program, place)
        async with _started(subject.name, command, self._cores.subject, own, subject.announces) as (_, session):
            await _answers(subject.name, place.port, own / "output.log")
            yield Target(place.port, session, place.admin if subject in {GATEWAY, CROWDED} else None)


@contextlib.asynccontextmanager
async def staged(
    subjects: Sequence[Subject], cores: Cores, directory: Path, say: Callable[[str], None]
) -> AsyncIterator[Stage]:
    """A stage on which each subject serves or is left out; `say` is told of those."""
    command = [str(compiled.program("backend"))]
    async with _started("the endpoint", command, cores.around, directory, _ENDPOINT_SAYS) as (listens, session):
        stage = Stage(Target(int(listens[1]), session), cores, directory, say)
        keepers: list[asyncio.Task[None]] = []
        decided = asyncio.Event()
        try:
            for subject in subjects:
                decided = asyncio.Event()
                keepers.append(asyncio.create_task(stage.keep(subject, decided)))
                await decided.wait()
            yield stage
        finally:
            stage.end()
            if keepers and not decided.is_set():
                keepers[-1].cancel()
            await asyncio.gather(*keepers)


def described(subject: Subject, program: Path) -> str:
    """What it is, with the version that it tells of itself."""
    if not subject.version:
        return subject.about
    command = [str(program), *subject.version]
    said = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a program of our table
    return f"{subject.about} ({(said.stdout + said.stderr).strip()})"


def outcomes_in(metrics: str) -> dict[str, int]:
    """How requests ended, by reason, of all tenants together."""
    outcomes: dict[str, int] = {}
    for reason, number in _OUTCOME.findall(metrics):
        outcomes[reason] = outcomes.get(reason, 0) + int(float(number))
    return outcomes


@contextlib.asynccontextmanager
async def _started(
    name: str, command: Sequence[str], core: int, directory: Path, announces: re.Pattern[str]
) -> AsyncIterator[tuple[re.Match[str], int]]:
    """A program on one core; yields the match of its announcement, and its session."""
    log = directory / "output.log"
    program = Program(name, [*pinned(core), *_FIRST_ITS_NUMBER, *command], announces, log)
    async with running(program) as (announced,):
        yield announced, int(log.read_text(encoding="utf-8").split(maxsplit=2)[1])


async def _answers(name: str, port: int, log: Path) -> None:
    """Wait until it has answered a question as the endpoint does."""
    question = {"model": "sim", "messages": [{"role": "user", "content": "ready?"}]}
    headers = {"authorization": f"Bearer {key_of(0)}"}
    said = "nothing"
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=10) as client:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READY_SECONDS):
                while True:
                    try:
                        answer = await client.post("/v1/chat/completions", json=question)
                    except httpx.HTTPError as error:
                        said = repr(error)
                    else:
                        if answer.status_code == 200:
                            return
                        said = answer.text[:500]
                    await asyncio.sleep(0.1)
    raise ProcessFailed(f"{name} did not serve within {_READY_SECONDS:g} s; it answered {said}{_last_of(log)}")


def _last_of(log: Path) -> str:
    last = log.read_text(encoding="utf-8")[-_LAST:]
    return f", and said last:\n{last}" if last else ", and said nothing"
