"""`make bench-profile`: where the gateway's processor time goes, part by part, for a request and for an event.

What always holds: the parts add up to all of it. Figures are those of one run; they say what is worth a look, not what
got faster, which `make bench-counts` and pairs of runs say. Exit status 2 if nothing could be measured.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from fairpool_lab.bench import compiled, sampled
from fairpool_lab.bench.machine import Cores, pinned
from fairpool_lab.bench.results import Seen
from fairpool_lab.bench.rounds import said_by
from fairpool_lab.bench.sampled import Samples
from fairpool_lab.bench.subjects import IN_A_POD
from fairpool_lab.bench.workloads import SIXTY_FOUR, STREAMS, Kind, Workload
from fairpool_lab.errors import Interrupted, LabError, ProcessFailed
from fairpool_lab.processes import Program, run, running

WORKLOADS: Final = (SIXTY_FOUR, STREAMS)

_LISTENS = re.compile(r"listening on 127\.0\.0\.1:(\d+)")


@dataclass(frozen=True, slots=True)
class Profile:
    """What was at work under a workload, and for how many requests or events."""

    workload: Workload
    samples: Samples
    number: int

    @property
    def parts(self) -> list[tuple[str, float]]:
        """The share of each part, what takes most first."""
        counts = self.samples.counts
        return [(part, count / sum(counts.values())) for part, count in Counter(counts).most_common()]

    @property
    def microseconds(self) -> float:
        """Of processor time, for each request or event."""
        return self.samples.seconds * 1e6 / self.number

    @property
    def each(self) -> str:
        """What it is for."""
        return "request" if self.workload.kind is Kind.WHOLE else "event"


async def profile(workload: Workload, directory: Path) -> Profile:
    """Run one workload against a gateway that looks at itself.

    Raises:
        MachineLacks: there is no C compiler.
        ProcessFailed: something did not start, or a request failed.
    """
    cores, samples = Cores.of_this_machine(), directory / "samples.json"
    backend = [*pinned(cores.around), str(compiled.program("backend"))]
    async with running(Program("endpoint", backend, _LISTENS, directory / "endpoint.log")) as (there,):
        own = ["env", *IN_A_POD, *pinned(cores.subject), sys.executable, "-m", sampled.__name__, there[1], str(samples)]
        async with running(Program("gateway", own, _LISTENS, directory / "gateway.log")) as (here,):
            load = [*pinned(cores.around), str(compiled.program("load")), "--port", here[1]]
            seen = await said_by([*load, *workload.command(directory)], workload.takes, Seen)
            if seen.failed:
                raise ProcessFailed(f"requests failed: {seen.failed}")
    counted = msgspec.json.decode(samples.read_bytes(), type=Samples)
    return Profile(workload, counted, seen.begun if workload.kind is Kind.WHOLE else seen.events)


def main() -> int:
    """Measure and print; returns the exit status."""
    console = Console()
    try:
        for workload in WORKLOADS:
            console.print(f"{workload.title}: {workload.takes:.0f} s", style="dim")
            with tempfile.TemporaryDirectory() as directory:
                console.print(table(run(profile(workload, Path(directory)))))
    except Interrupted as error:
        return error.status
    except LabError as error:
        console.print(f"bench-profile: {error}", style="red", markup=False)
        return 2
    return 0


def table(found: Profile) -> Table:
    """A profile, what takes most first."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=found.workload.title, title_justify="left")
    shown.add_column("")
    for column in (f"µs of each {found.each}", "share"):
        shown.add_column(column, justify="right", no_wrap=True)
    for part, share in found.parts:
        shown.add_row(part, f"{share * found.microseconds:.1f}", f"{share:.0%}")
    shown.add_row("all", f"{found.microseconds:.1f}", "100%")
    return shown


if __name__ == "__main__":
    sys.exit(main())
