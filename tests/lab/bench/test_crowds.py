"""The benchmark of crowds: its table can be read on any terminal, and what does not hold is said and fails it."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from fairpool_lab.bench import load
from fairpool_lab.bench.load import faults_of, table
from fairpool_lab.crowds import members
from fairpool_lab.crowds.neighbour import Answer
from fairpool_lab.crowds.scenarios import SCENARIOS
from fairpool_lab.crowds.stage import Snapshot
from fairpool_lab.crowds.trial import Trial
from fairpool_lab.errors import MachineLacks

MIB = 1 << 20
REST = Snapshot(rss=64 * MIB, descriptors=21, connections=1, tasks=9, waiting=0, in_flight=0, held=0, buffered=0)
ANSWERED = [Answer(asked=float(number), seconds=0.001 * number, status=200, fresh=False) for number in range(1, 101)]
GOOD = Trial(
    before=REST,
    standing=replace(REST, rss=1500 * MIB, descriptors=10_021, connections=10_001),
    after=replace(REST, rss=65 * MIB, connections=2, tasks=11),
    peak=1600 * MIB,
    allowed=2000 * MIB,
    alone=ANSWERED,
    beside=[replace(answer, seconds=10 * answer.seconds) for answer in ANSWERED],
    statuses={"wait": {0: 10_000}},
    cpu=0.5,
)


def test_the_table_fits_80_columns_without_a_figure_cut_short():
    said = io.StringIO()
    Console(file=said, width=80).print(table([(scenario, GOOD) for scenario in SCENARIOS.values()]))
    assert "…" not in said.getvalue()
    rows = [line.split() for line in said.getvalue().splitlines()]
    assert ["wait", "10,000", "1536", "2000", "1", "50", "/", "99", "500", "/", "990"] in rows
    assert all(any(row[: len(name.split())] == name.split() for row in rows) for name in SCENARIOS)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, None),
        ({"peak": 2065 * MIB}, "memory grew by 2001 MiB, where 2000 MiB are allowed"),
        ({"beside": [replace(ANSWERED[0], status=0)]}, "the neighbour was not answered 1 times"),
        ({"alone": [replace(ANSWERED[0], status=502)]}, "the neighbour was not answered 1 times"),
        ({"after": replace(REST, descriptors=40)}, "not all came back"),
        ({"after": replace(REST, connections=40)}, "not all came back"),
        ({"after": replace(REST, tasks=40)}, "not all came back"),
        ({"after": replace(REST, in_flight=40)}, "not all came back"),
        ({"after": replace(REST, waiting=40)}, "not all came back"),
        ({"after": replace(REST, held=MIB)}, "not all came back"),
        ({"after": replace(REST, buffered=MIB)}, "not all came back"),
    ],
)
def test_what_does_not_hold_is_said(changed, said):
    faults = faults_of(replace(GOOD, **changed))
    assert len(faults) == (said is not None)
    assert all(fault.startswith(said) for fault in faults)


def test_too_few_descriptors_are_said_before_anybody_connects(monkeypatch):
    monkeypatch.setattr(members.resource, "getrlimit", lambda _: (1024, 4096))
    with pytest.raises(MachineLacks, match="10256 file descriptors are needed, and `ulimit -Hn` allows 4096"):
        members.allow_descriptors(10_000)


def test_what_cannot_be_had_is_said_and_fails_it(monkeypatch, capsys):
    async def lacks(*_):
        raise MachineLacks("descriptors are needed")

    monkeypatch.setattr(load, "_measure", lacks)
    assert load.main() == 2
    assert "descriptors are needed" in capsys.readouterr().out
