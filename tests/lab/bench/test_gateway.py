"""`make bench-quick`: its tables can be read on any terminal, what failed is named, and what it starts it also ends."""

from __future__ import annotations

import io
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as replace_struct
from rich.console import Console
from support.bench import measured, results, seen, times
from support.gateway import running_gateway
from support.processes import descendants, held
from support.tenant import pool_over

from fairpool_lab import processes
from fairpool_lab.bench import compiled, gateway, shown, stage, workloads
from fairpool_lab.bench.machine import free_port, pinned, tool
from fairpool_lab.bench.peers import NGINX
from fairpool_lab.bench.plan import Plan
from fairpool_lab.bench.progress import Progress
from fairpool_lab.bench.results import Results
from fairpool_lab.bench.subjects import GATEWAY, Place, Subject
from fairpool_lab.bench.workloads import Kind, Workload
from fairpool_lab.errors import FileInvalid, MachineLacks
from fairpool_lab.processes import Program, running

TOOLS = all(shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in ("nginx", "taskset"))


def no_such_thing() -> Path:
    raise MachineLacks("there is no such thing")


BROKEN = Subject("broken", "a peer that cannot be had", no_such_thing, lambda *_: ())
TWIN = Subject(
    "twin",
    "a peer that is as fast as can be: a second endpoint",
    lambda: compiled.program("backend"),
    lambda program, place: [str(program), "--port", str(place.port)],
)
BRIEF = replace(workloads.SIXTY_FOUR, seconds=0.3, warmup=0.1)
IMPOSSIBLE = Workload("x", "no load at all", ("closed", "--connections", "none"), 0.1)
FLEETING = Subject(
    "fleeting",
    "a peer that ends while others are measured",
    lambda: compiled.program("backend"),
    lambda program, place: ["timeout", "1", str(program), "--port", str(place.port)],
)


def printed(shows: Any) -> list[str]:
    said = io.StringIO()
    Console(file=said, width=80).print(shows)
    assert "…" not in said.getvalue()
    assert max(map(len, said.getvalue().splitlines())) <= 80
    return said.getvalue().splitlines()


class TestTables:
    def test_of_whole_answers_the_medians_are_shown_in_80_columns(self):
        found = results(
            measured("direct", "a-64", number, seen(per_second=1_170_000 + number, p50=10_000, p99=1_000_000))
            for number in (1, 2, 3)
        )
        row = next(line for line in printed(shown.table(found, workloads.SIXTY_FOUR)) if "direct" in line)
        assert row.split() == ["direct", "1,170,002", "10.0", "1,000", "5,000", "1,024"]

    def test_of_streams_the_cost_and_the_lateness_of_events(self):
        late = seen(events=50_000, lateness=1_500.0)
        found = results([measured("sglang-router", "c-200", 1, late, cpu=1.0)])
        row = next(line for line in printed(shown.table(found, workloads.STREAMS)) if "sglang" in line)
        assert row.split() == ["sglang-router", "2.00", "1.50", "1.50", "0.000", "1,024"]

    def test_a_subject_that_answered_nothing_has_no_figures_but_what_failed(self):
        nothing = replace_struct(seen(errors={"cut": 1000}), event_lateness=times(count=0), first_byte=times(count=0))
        found = results([measured("sglang-router", "c-1000", 1, nothing)])
        row = next(line for line in printed(shown.table(found, workloads.MORE_STREAMS)) if "sglang" in line)
        assert row.split() == ["sglang-router", "1,024", "1,000"]

    def test_the_worst_figures_fit_too(self):
        late = replace_struct(seen(events=1, lateness=9_999_999.0), first_byte=times(p99=99_999_999.0))
        found = results([measured("sglang-router", "c-1000", 1, late, cpu=1.0)])
        row = next(line for line in printed(shown.table(found, workloads.MORE_STREAMS)) if "sglang" in line)
        assert row.split() == ["sglang-router", "100,000", "10,000", "10,000", "100,000", "1,024"]

    def test_goals_and_ratios_fit_whether_they_were_measured_or_not(self):
        for found in (results([]), results([measured("fairpool", "c-200", 1, seen(lateness=138_000.0))])):
            assert any("(f)" in line for line in printed(shown.goals(found)))
            printed(shown.ratios(found))


class TestFailures:
    def test_each_is_named_by_kind_and_round(self):
        found = results(
            [
                measured("fairpool", "a-64", 1, seen(errors={"cut": 0})),
                measured("fairpool", "a-64", 2, seen(errors={"cut": 0, "lost": 2})),
                measured("nginx", "a-64", 2, seen(errors={"lost": 3})),
            ]
        )
        assert found.failures(["fairpool"]) == ["fairpool, a-64, round 2: {'lost': 2}"]
        found.unexpected = {"upstream_failed": 2}
        assert found.failures([]) == ["the gateway counts {'upstream_failed': 2}"]

    async def test_what_the_gateway_counts_is_read_from_its_metrics(self):
        async with running_gateway(pool_over()) as running_one:
            for name, reason in (("a", "answered"), ("b", "answered"), ("c", "queue_full")):
                running_one.gateway.tally_of(name).outcomes[reason] += 2
            said = (await running_one.admin("/metrics")).text
        assert stage.outcomes_in(said) == {"answered": 4, "queue_full": 2}

    def test_what_the_machine_lacks_is_said_before_anything_starts(self, monkeypatch, capsys):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
        assert gateway.main(["--quick"]) == 2
        assert "two cores are needed" in capsys.readouterr().out
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
        monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
        assert gateway.main(["--quick"]) == 2
        assert "apt-get install" in capsys.readouterr().out


class TestFiles:
    def test_results_come_back_as_they_were_written(self, tmp_path):
        found = results([measured("nginx", "a-64", 1, seen())])
        found.write(tmp_path / "out" / "bench.json")
        assert Results.read(tmp_path / "out" / "bench.json") == found

    def test_a_file_of_something_else_is_refused(self, tmp_path):
        (tmp_path / "other.json").write_text("{}")
        with pytest.raises(FileInvalid, match="no result of a benchmark"):
            Results.read(tmp_path / "other.json")


@pytest.mark.skipif(not TOOLS, reason="needs nginx and taskset")
async def test_nginx_pinned_to_a_core_ends_with_its_workers_without_being_killed(tmp_path, monkeypatch):
    killed = []
    monkeypatch.setattr(processes.os, "killpg", lambda *arguments: killed.append(arguments))
    place = Place(tmp_path, free_port(), free_port(), free_port())
    command = [*pinned(min(os.sched_getaffinity(0))), *NGINX.command(tool("nginx", "nginx-light"), place)]
    async with running(Program("nginx", command, NGINX.announces, tmp_path / "log")):
        children = descendants(os.getpid())
        assert len(children) == 2  # the master and its worker
    with held(children) as staying:
        assert staying() == []
    assert killed == []


@pytest.mark.skipif(not TOOLS, reason="needs nginx and taskset")
def test_nginx_tells_its_version():
    assert "nginx/1." in stage.described(NGINX, tool("nginx", "nginx-light"))


def test_a_whole_run_measures_each_subject_and_ends_what_it_started(tmp_path, monkeypatch, capsys):
    options = ("streams", "--connections", "5", "--events", "20")
    streams = Workload("c-5", "few streams", options, 0.2, 0.0, "events=20 rate=100 ", Kind.STREAM)
    pairs = [(name, BRIEF) for name in ("direct", "twin", "broken", "fleeting", "fairpool")]
    pairs += [("twin", IMPOSSIBLE), ("fairpool", streams)]

    def once(found):
        return found.measured[-1].round == 1

    monkeypatch.setattr(
        gateway,
        "quick",
        lambda: Plan((TWIN, BROKEN, FLEETING, GATEWAY), pairs, rounds=1, scheduler=True, doubt=once, most=3),
    )
    file = tmp_path / "bench.json"
    assert gateway.main(["--quick", "--output", str(file)]) == 1
    assert descendants(os.getpid()) == {}
    found = Results.read(file)
    left_out = {"broken": "there is no such thing", "fleeting": "fleeting ended with status 124 while it was needed"}
    assert {name: why.partition(";")[0] for name, why in found.left_out.items()} == left_out
    assert found.unexpected == {}
    failed = "it ended with status 2: none is no number"
    assert [line.partition(" of")[0] for line in found.missing] == [f"twin, x, round {n}: {failed}" for n in (1, 2)]
    assert [each.round for each in found.decided] == [1, 2]
    assert all(rate > 0 for each in found.decided for rate in each.per_second.values())
    staying = [each for each in found.measured if each.subject != "fleeting"]
    met = [("direct", "a-64"), ("twin", "a-64"), ("fairpool", "a-64"), ("fairpool", "c-5")]
    assert [(each.subject, each.workload) for each in staying] == met * 2
    assert [each.round for each in staying] == [1] * 4 + [2] * 4
    assert {each.seen.events for each in staying if each.workload == "c-5"} == {100}
    for each in staying:
        assert each.seen.begun == each.seen.answered > 0
        assert each.memory > 1 << 16
    assert sum(each.cpu_seconds for each in staying if each.subject == "fairpool") > 0
    said = capsys.readouterr()
    assert "broken is left out: there is no such thing" in said.err
    assert "not measured: twin, x, round 1" in said.out


def test_one_that_is_interrupted_ends_what_it_started_and_keeps_what_it_measured(tmp_path, monkeypatch, capsys):
    class UntilTheThird(Progress):
        def begin(self, what, seconds):
            super().begin(what, seconds)
            if what.startswith("round 3"):
                os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(gateway, "Progress", UntilTheThird)
    monkeypatch.setattr(gateway, "quick", lambda: Plan((TWIN,), [("twin", BRIEF)], rounds=9))
    file, path = tmp_path / "bench.json", tmp_path / "performance.md"
    assert gateway.main(["--quick", "--output", str(file), "--page", str(path)]) == 128 + signal.SIGTERM
    assert descendants(os.getpid()) == {}
    assert [each.round for each in Results.read(file).measured] == [1, 2]
    assert not path.exists()
    assert gateway.main(["--from", str(file), "--page", str(path)]) == 0
    assert "in 2 interleaved rounds" in path.read_text()


def test_one_whose_time_is_over_begins_nothing_more_and_says_so(tmp_path, monkeypatch):
    pairs = [("twin", BRIEF), ("twin", replace(BRIEF, seconds=60))]
    monkeypatch.setattr(gateway, "quick", lambda: Plan((TWIN,), pairs, rounds=2, minutes=0.5))
    file = tmp_path / "bench.json"
    assert gateway.main(["--quick", "--output", str(file)]) == 1
    found = Results.read(file)
    assert [(each.workload, each.round) for each in found.measured] == [("a-64", 1)]
    assert found.missing == ["no more than a part of round 1: 0.5 minutes were over"]
