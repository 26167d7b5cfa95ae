"""Runs the rounds: endpoint and subjects are started once, then each workload meets one subject after another.

Rounds are interleaved (A B A B), so that whatever else the machine does meets all subjects alike. What is measured has
one core, the endpoint and the load share the other, and the load's and the endpoint's own limit is measured as the
subject `direct`.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import msgspec

from fairpool_lab.bench import compiled
from fairpool_lab.bench.machine import Cores, cpu_seconds, described, free_port, memory, pinned
from fairpool_lab.bench.results import Measured, Results, Seen
from fairpool_lab.bench.subjects import CROWDED, DIRECT, GATEWAY, Place, Subject, key_of
from fairpool_lab.bench.workloads import Workload
from fairpool_lab.errors import LabError, ProcessFailed
from fairpool_lab.processes import Program, running

EXPECTED: Final = ("answered", "tenant_gone")
"""How requests may end at the gateway."""

_READY_SECONDS = 90.0
_PATIENCE = 180.0
_LOOK = 0.25
_SETTLES = 60
_ENDPOINT_SAYS = re.compile(r"listening on 127\.0\.0\.1:(\d+)")
_OUTCOME = re.compile(r'^fairpool_outcomes_total\{reason="(\w+)",tenant="[^"]*"\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Plan:
    """What meets what, and how often.

    Attributes:
        subjects: what is started.
        pairs: of a subject and a workload, in their order within a round.
        rounds: how many there are.
        doubt: whether what was measured so far asks for another round, of `most` in all.
        most: how many there may be then.
    """

    subjects: Sequence[Subject]
    pairs: Sequence[tuple[str, Workload]]
    rounds: int
    doubt: Callable[[Results], bool] = lambda _: False
    most: int = 0

    @property
    def steps(self) -> int:
        """How many measurements it takes without doubt."""
        return self.rounds * len(self.pairs)

    def goes_on(self, number: int, results: Results) -> bool:
        """Whether there is another round after so many."""
        return number < self.rounds or (number < self.most and self.doubt(results))


@dataclass(frozen=True, slots=True)
class _Target:
    """A subject that runs."""

    port: int
    session: int
    admin: int | None = None


async def measure(plan: Plan, directory: Path, step: Callable[[str], None], say: Callable[[str], None]) -> Results:
    """Run a plan.

    Args:
        plan: what to run.
        directory: for everything that is written.
        step: is told what was measured, after each measurement.
        say: is told of each subject that is left out.
    """
    cores = Cores.of_this_machine()
    load, backend = compiled.program("load"), compiled.program("backend")
    began = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    results = Results(described(), began, {DIRECT: "the endpoint itself, with nothing in front of it"}, {})
    async with contextlib.AsyncExitStack() as around:
        endpoint, pid = await around.enter_async_context(
            _started("the endpoint", [str(backend)], cores.around, directory, _ENDPOINT_SAYS)
        )
        targets = {DIRECT: _Target(int(endpoint[1]), pid)}
        for subject in plan.subjects:
            try:
                program = await asyncio.to_thread(subject.program)
            except LabError as error:
                results.left_out[subject.name] = str(error)
                say(f"{subject.name} is left out: {error}")
                continue
            targets[subject.name] = await around.enter_async_context(
                _serving(subject, program, targets[DIRECT].port, directory, cores.subject)
            )
            results.subjects[subject.name] = subject.about
        number = 0
        while plan.goes_on(number, results):
            number += 1
            for name, workload in plan.pairs:
                if target := targets.get(name):
                    results.measured.append(await _measured(load, cores, name, target, workload, number, directory))
                    await _settled(target)
                step(f"{name}: {workload.title}")
        for name in (GATEWAY.name, CROWDED.name):
            if target := targets.get(name):
                for reason, count in (await _unexpected(target)).items():
                    results.unexpected[reason] = results.unexpected.get(reason, 0) + count
    return results


async def _measured(
    load: Path, cores: Cores, name: str, target: _Target, workload: Workload, number: int, directory: Path
) -> Measured:
    command = [*pinned(cores.around), str(load), "--port", str(target.port), *workload.command(directory)]
    before = cpu_seconds(target.session)
    seen = await _seen(command)
    return Measured(name, workload.name, number, seen, cpu_seconds(target.session) - before, memory(target.session))


async def _settled(target: _Target) -> None:
    """Wait until it works no more on what the load left behind, so that nobody else is measured beside that."""
    for _ in range(_SETTLES):
        before = cpu_seconds(target.session)
        await asyncio.sleep(_LOOK)
        if cpu_seconds(target.session) - before < _LOOK / 5:
            return


async def _seen(command: Sequence[str]) -> Seen:
    child = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(_PATIENCE):
            said, complained = await child.communicate()
    except TimeoutError:
        raise ProcessFailed(f"the load did not end within {_PATIENCE:g} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        raise ProcessFailed(f"the load ended with status {child.returncode}: {complained.decode(errors='replace')}")
    return msgspec.json.decode(said, type=Seen)


@contextlib.asynccontextmanager
async def _serving(
    subject: Subject, program: Path, endpoint: int, directory: Path, core: int
) -> AsyncIterator[_Target]:
    """A subject that has answered one request."""
    own = directory / subject.name
    own.mkdir()
    place = Place(own, endpoint, free_port(), free_port())
    command = subject.command(program, place)
    async with _started(subject.name, command, core, own, subject.announces) as (_, session):
        await _ready(subject.name, place.port, own)
        admin = place.admin if subject in {GATEWAY, CROWDED} else None
        yield _Target(place.port, session, admin)


@contextlib.asynccontextmanager
async def _started(
    name: str, command: Sequence[str], core: int, directory: Path, announces: re.Pattern[str]
) -> AsyncIterator[tuple[re.Match[str], int]]:
    """A program on one core; yields the match of its announcement, and its session."""
    log = directory / "output.log"
    first_its_number = ["sh", "-c", 'ulimit -n "$(ulimit -Hn)"; echo process $$; exec "$@"', "sh"]
    program = Program(name, [*pinned(core), *first_its_number, *command], announces, log)
    async with running(program) as (announced,):
        yield announced, int(log.read_text(encoding="utf-8").split(maxsplit=2)[1])


async def _ready(name: str, port: int, directory: Path) -> None:
    question = {"model": "sim", "messages": [{"role": "user", "content": "ready?"}]}
    said = "nothing"
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as client:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READY_SECONDS):
                while True:
                    try:
                        answer = await client.post(
                            "/v1/chat/completions", json=question, headers={"authorization": f"Bearer {key_of(0)}"}
                        )
                    except httpx.HTTPError as error:
                        said = repr(error)
                    else:
                        if answer.status_code == 200:
                            return
                        said = answer.text[:500]
                    await asyncio.sleep(0.1)
    log = (directory / "output.log").read_text(encoding="utf-8")[-2000:]
    raise ProcessFailed(f"{name} did not serve within {_READY_SECONDS:g} s; it answered {said}, and said:\n{log}")


async def _unexpected(target: _Target) -> dict[str, int]:
    """How requests ended by the gateway's own account, if not as they should."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{target.admin}", timeout=60) as admin:
        outcomes = outcomes_in((await admin.get("/metrics")).text)
    return {reason: number for reason, number in outcomes.items() if reason not in EXPECTED}


def outcomes_in(metrics: str) -> dict[str, int]:
    """How requests ended, by reason, of all tenants together."""
    outcomes: dict[str, int] = {}
    for reason, number in _OUTCOME.findall(metrics):
        outcomes[reason] = outcomes.get(reason, 0) + int(float(number))
    return outcomes
