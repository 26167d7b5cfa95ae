"""Goals and guarded ratios: what is compared with what, within one round, and which way is worse."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.bench import decided, measured, results, seen

from fairpool_lab.bench import guard, workloads
from fairpool_lab.bench.goals import GOALS, GUARDED, reached
from fairpool_lab.errors import FileInvalid

SUBJECTS = ("direct", "nginx", "sglang-router", "fairpool", "crowded")


def run(**better):
    """A run of two rounds, the second twice as slow for all; `better` is by how much the gateway beats its peers."""
    better = {"rate": 1.0, "latency": 1.0, "cpu": 1.0} | better
    every = []
    for number in (1, 2):
        for subject in SUBJECTS:
            ours = subject in {"fairpool", "crowded"}
            slow = number * (0.001 if subject == "direct" else 1.0)
            for workload in workloads.ALL:
                saw = seen(
                    per_second=1000 / slow * (better["rate"] if ours else 1.0),
                    p50=100.0 * slow / (better["latency"] if ours else 1.0),
                    p99=900.0 * slow / (better["latency"] if ours else 1.0),
                    events=1000,
                    lateness=400.0 * slow,
                )
                cpu = slow / (better["cpu"] if ours else 1.0)
                every.append(measured(subject, workload.name, number, saw, cpu=cpu))
    return results(every, decided=[decided(1), decided(2)])


def verdicts(found):
    return [goal.met(over.median) for goal, over in reached(found) if over is not None]


class TestGoals:
    def test_each_is_the_ratio_of_what_one_round_measured(self):
        for goal, over in reached(run()):
            if goal.says.startswith("(") and "lateness" not in goal.says:
                assert over.least == pytest.approx(1.0, rel=0.01), goal.says
                assert over.greatest == pytest.approx(1.0, rel=0.01), goal.says

    def test_all_are_met_by_a_gateway_that_is_fast_enough_and_missed_by_one_that_is_not(self):
        assert verdicts(run(rate=1.5, latency=2.1, cpu=1.5)) == [True] * len(GOALS)
        slow = run(rate=0.5, latency=0.1, cpu=0.9)
        missed = [goal.says[:3] for goal, over in reached(slow) if not goal.met(over.median)]
        assert missed == ["(a)", "(a)", "(b)", "(b)", "(c)"]

    def test_what_only_the_gateway_itself_is_compared_with_is_judged_too(self):
        found = run()
        for number, each in enumerate(found.measured):
            if each.subject == "crowded":
                slower = replace(each.seen, per_second=each.seen.per_second * 0.8)
                found.measured[number] = replace(each, seen=slower)
            if (each.subject, each.workload) == ("fairpool", "d"):
                later = replace(each.seen.latency, p99=each.seen.latency.p99 * 2.1)
                found.measured[number] = replace(each, seen=replace(each.seen, latency=later))
        missed = [goal.says[:3] for goal, over in reached(found) if not goal.met(over.median)]
        assert missed[-3:] == ["(d)", "(e)", "(f)"]

    def test_a_scheduler_that_is_too_slow_and_a_load_that_is_hardly_faster_than_the_gateway_are_told(self):
        found = run()
        found.decided = [decided(1, faster=0.9), decided(2, faster=0.9)]
        for number, each in enumerate(found.measured):
            if each.subject == "direct":
                found.measured[number] = replace(each, seen=replace(each.seen, per_second=1900.0 / each.round))
        missed = [goal.says for goal, over in reached(found) if not goal.met(over.median)]
        alone = [says.partition(" alone")[0] for says in missed if "alone" in says]
        assert alone == ["the scheduler"] * 2 + ["load and endpoint"]

    def test_what_was_left_out_is_not_measured_rather_than_met(self):
        found = run()
        found.measured = [each for each in found.measured if each.subject != "sglang-router"]
        assert [over is None for goal, over in reached(found)] == ["sglang" in goal.says for goal in GOALS]


class TestGuard:
    def test_what_is_as_it_was_recorded_is_not_worse(self, tmp_path):
        guard.record(run(), tmp_path / "recorded.json")
        recorded = guard.read(tmp_path / "recorded.json")
        assert recorded.keys() == GUARDED.keys()
        assert guard.worse(run(), recorded) == []

    @pytest.mark.parametrize(
        ("better", "named"),
        [("rate", ["requests/s"]), ("cpu", ["processor time per request", "processor time per event"])],
    )
    def test_what_got_worse_is_named_with_both_figures_and_less_than_the_tolerance_is_noise(self, better, named):
        recorded = guard.ratios(run())
        assert guard.worse(run(**{better: 0.85}), recorded) == []
        assert guard.worse(run(**{better: 2.0}), recorded) == []
        said = guard.worse(run(**{better: 0.7}), recorded)
        assert [each.partition(" at ")[0] for each in said] == named
        assert all("1.000 was recorded" in each for each in said)

    def test_what_could_not_be_measured_is_said(self):
        found = run()
        recorded = guard.ratios(found)
        found.measured = [each for each in found.measured if each.subject != "nginx"]
        assert [said.rpartition(": ")[2] for said in guard.worse(found, recorded)] == ["not measured this time"] * 3
        assert "record anew" in guard.worse(run(), {"something else": 1.0})[0]

    def test_nothing_recorded_is_nothing_to_compare_with(self, tmp_path):
        assert guard.read(tmp_path / "nowhere") == {}
        (tmp_path / "odd").write_text("[1]")
        with pytest.raises(FileInvalid, match="no record of ratios"):
            guard.read(tmp_path / "odd")
