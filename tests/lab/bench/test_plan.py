"""Plans: each takes no longer than it says, starts what it measures, and measures what is judged."""

from __future__ import annotations

from dataclasses import replace

from support.bench import decided, measured, results, seen

from fairpool_lab.bench import workloads
from fairpool_lab.bench.goals import GOALS, GUARDED
from fairpool_lab.bench.peers import NGINX, SGLANG
from fairpool_lab.bench.plan import Plan, quick, whole


def test_each_takes_no_longer_than_it_says():
    for plan, most in ((whole(), 40 * 60), (quick(), 4 * 60)):
        assert plan.takes < most
        assert plan.takes < 60 * plan.minutes
    assert f"{whole().measurements} measurements in 5 rounds: about" in whole().said()


def test_everything_that_is_measured_is_started():
    for plan in (whole(), quick()):
        started = {"direct", *(subject.name for subject in plan.subjects)}
        assert {name for name, _ in plan.pairs} == started


def test_what_the_guard_compares_is_measured_by_each_and_what_the_goals_do_by_the_whole_one():
    guarded = [figure for figure, _ in GUARDED.values()]
    for plan, figures in ((quick(), guarded), (whole(), guarded + [goal.figure for goal in GOALS])):
        found = results(measured(name, each.name, 1, seen(events=1, p50=1, p99=1)) for name, each in plan.pairs)
        found.decided = [decided(1)] * plan.scheduler
        (one,) = found.rounds()
        for figure in figures:
            figure(one)


def test_what_no_goal_is_about_is_measured_in_fewer_rounds_and_everything_in_the_first():
    plan = whole()
    assert plan.of_round(1) == list(plan.pairs)
    assert {name for name, _ in plan.pairs} - {name for name, _ in plan.of_round(plan.rounds)} == plan.fewer.keys()
    assert not plan.fewer.keys() & {"direct", NGINX.name, SGLANG.name, "fairpool", "crowded"}
    counted = sum(len(plan.of_round(number)) for number in range(1, plan.rounds + 1))
    assert plan.measurements == counted + plan.rounds


def test_more_rounds_follow_only_while_there_is_doubt():
    sure, doubtful = (Plan((), (), rounds=2, doubt=lambda _, it=it: it, most=4) for it in (False, True))
    assert [sure.goes_on(number, results([])) for number in range(3)] == [True, True, False]
    assert [doubtful.goes_on(number, results([])) for number in range(5)] == [True] * 4 + [False]


def test_a_rehearsal_meets_everything_once_and_for_a_moment():
    rehearsed = whole().rehearsed()
    assert [(name, each.name) for name, each in rehearsed.pairs] == [(name, each.name) for name, each in whole().pairs]
    assert rehearsed.rounds == 1
    assert {each.seconds for _, each in rehearsed.pairs} == {0.5}
    assert rehearsed.pairs[0][1] == replace(workloads.ONE, warmup=0.5, seconds=0.5)
