"""The verdict holds when it should, and each condition fails when, and only when, what it asks for is missing."""

from __future__ import annotations

import dataclasses
import io
import re

import pytest
from rich.console import Console
from support.outcomes import ANSWERS, WEIGHTS, in_miniature

from fairpool_lab.demo.outcome import Outcome, outcome, verdict
from fairpool_lab.demo.show import judge

FAIR_GAP, ARRIVAL_GAP, SHARES, TOGETHER, THROUGHPUT, LOST = range(6)


@pytest.fixture(scope="module")
def arrival(tmp_path_factory) -> Outcome:
    return in_miniature("arrival order", tmp_path_factory.mktemp("arrival"))


@pytest.fixture(scope="module")
def fair(tmp_path_factory) -> Outcome:
    return in_miniature("fair", tmp_path_factory.mktemp("fair"))


def failing(arrival: Outcome, fair: Outcome) -> set[int]:
    """Which conditions fail, after seeing that what is printed and what is returned say the same."""
    holds, said = judged(arrival, fair)
    found = {number for number, check in enumerate(verdict(arrival, fair)) if not check.holds}
    assert holds == (not found)
    assert (said.count("  FAILS  "), said.count("  holds  ")) == (len(found), 6 - len(found))
    return found


def judged(arrival: Outcome, fair: Outcome) -> tuple[bool, str]:
    said = io.StringIO()
    holds = judge(arrival, fair, Console(file=said, width=400))
    return holds, said.getvalue()


def test_every_condition_holds_of_a_fair_run_beside_one_in_arrival_order(arrival, fair):
    assert failing(arrival, fair) == set()


def test_a_fair_run_that_was_none_fails_by_its_gaps_and_its_shares(arrival):
    assert failing(arrival, arrival) == {FAIR_GAP, SHARES}


def test_arrival_order_that_keeps_the_bound_fails_by_its_gaps_and_its_shares(fair):
    assert failing(fair, fair) == {ARRIVAL_GAP, SHARES}


def test_the_runs_exchanged_fail_by_gaps_and_shares(arrival, fair):
    assert failing(fair, arrival) == {FAIR_GAP, ARRIVAL_GAP, SHARES}


@pytest.mark.parametrize(
    ("measure", "of_fair", "fails"),
    [("gaps", True, FAIR_GAP), ("gaps", False, ARRIVAL_GAP), ("charged", True, SHARES), ("charged", False, SHARES)],
)
def test_each_of_these_fails_alone(arrival, fair, measure, of_fair, fails):
    if of_fair:
        fair = dataclasses.replace(fair, **{measure: getattr(arrival, measure)})
    else:
        arrival = dataclasses.replace(arrival, **{measure: getattr(fair, measure)})
    assert failing(arrival, fair) == {fails}


@pytest.mark.parametrize("order", ["arrival order", "fair"])
def test_too_little_contention_fails_in_either_run(tmp_path, arrival, fair, order):
    light = in_miniature(order, tmp_path, slots=16).contention
    runs = {"arrival order": arrival, "fair": fair}
    runs[order] = dataclasses.replace(runs[order], contention=light)
    assert failing(runs["arrival order"], runs["fair"]) == {TOGETHER}


def test_without_contention_nothing_was_at_stake(tmp_path):
    idle = [in_miniature(order, tmp_path, slots=100) for order in ("arrival order", "fair")]
    assert failing(*idle) == {ARRIVAL_GAP, TOGETHER}


def test_a_fair_run_that_gets_less_done_fails(tmp_path, arrival, fair):
    slower = in_miniature("fair", tmp_path, tokens_per_second=270.0).throughput
    assert failing(arrival, dataclasses.replace(fair, throughput=slower)) == {THROUGHPUT}


@pytest.mark.parametrize("order", ["arrival order", "fair"])
@pytest.mark.parametrize(
    "answers", [[*ANSWERS[:-1], dataclasses.replace(ANSWERS[-1], error="APIError: gone")], ANSWERS[:-1]]
)
def test_one_request_lost_fails_in_either_run_whether_the_client_raised_or_not(tmp_path, arrival, fair, order, answers):
    runs = {"arrival order": arrival, "fair": fair, order: in_miniature(order, tmp_path, answers)}
    assert failing(runs["arrival order"], runs["fair"]) == {LOST}


def test_runs_in_which_nothing_was_ever_dispatched_are_judged_too(tmp_path, fair):
    path = tmp_path / "nothing.decisions.jsonl"
    path.write_bytes(fair.path.read_bytes().splitlines(keepends=True)[0])
    refused = [dataclasses.replace(answer, error="AuthenticationError: wrong key") for answer in ANSWERS]
    nothing = outcome("fair", path, refused, len(ANSWERS))
    assert failing(nothing, nothing) >= {ARRIVAL_GAP, TOGETHER, LOST}


def test_each_error_is_told_once(tmp_path, arrival):
    refused = [dataclasses.replace(answer, error="APIError: [engine] gone") for answer in ANSWERS]
    _, said = judged(arrival, in_miniature("fair", tmp_path, refused))
    assert said.count("lost in fair: APIError: [engine] gone") == 1


def test_table_and_verdict_fit_80_columns_without_a_figure_cut_short(arrival, fair):
    said = io.StringIO()
    judge(arrival, fair, Console(file=said, width=80))
    assert "…" not in said.getvalue()
    assert max(map(len, said.getvalue().splitlines())) <= 80
    for tenant, weight in WEIGHTS.items():
        assert len(re.findall(rf"^ {tenant} +{weight} .* \d+\.\d\d +\d+\.\d\d *$", said.getvalue(), re.MULTILINE)) == 2
