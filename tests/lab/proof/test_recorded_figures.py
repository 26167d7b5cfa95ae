"""The figures of a run, beside those that were recorded: whatever changes them was meant to, or is a regression.

They hang on the order, the estimates, admission, placement, the simulator and the measures alike. If a change is meant,
say why in its commit, and record anew: `python tests/lab/proof/test_recorded_figures.py`.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

import pytest

from fairpool_lab.cli import main

RECORDED = Path(__file__).with_name("figures.json")

RUNS = {
    "one server, true costs": ("--engine", "fixed:1400", "--estimator", "oracle", "--weights", "ranked"),
    "one server, estimates": ("--engine", "fixed:1400", "--weights", "ranked"),
    "an A10G": ("--engine", "a10g"),
    "two A100s, twice as fast": ("--engine", "a100", "--endpoints", "2", "--slots", "4", "--speed", "2"),
}

FIGURES = (
    *("completed", "seconds", "tokens_per_second", "utilisation", "greatest_difference", "jain", "gap_over_bound"),
    *("pairs", "exceeded", "greatest_service_difference", "mean_service_difference", "first_token"),
)


def figures(name: str) -> dict[str, float]:
    """What the product's order makes of the trace in one run."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["lab", "run", "--json", "--policy", "sfq", *RUNS[name]]) == 0
    (outcome,) = json.loads(said.getvalue())["policies"]
    first = outcome["first_token"]
    return {figure: outcome[figure] for figure in FIGURES} | {
        "first_token": first["p50"],
        "first_token_p99": first["p99"],
    }


@pytest.mark.parametrize("name", RUNS)
def test_a_run_gives_the_figures_that_were_recorded(name):
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))[name]
    assert figures(name) == pytest.approx(recorded, rel=1e-6)


def test_a_change_of_one_part_in_ten_thousand_would_be_noticed():
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))["an A10G"]
    assert {**recorded, "jain": recorded["jain"] * 1.0001} != pytest.approx(recorded, rel=1e-6)


if __name__ == "__main__":
    told = json.dumps({name: figures(name) for name in RUNS}, indent=1)
    RECORDED.write_text(told + "\n", encoding="utf-8")
    sys.stdout.write(f"{told}\n")
