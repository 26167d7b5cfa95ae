"""The tables of a comparison: nothing is cut short, and what finds no room is named."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from fairpool_lab import traces
from fairpool_lab.comparison import engines, runs, setup, tables


@pytest.fixture(scope="module")
def outcomes():
    trace = traces.read(traces.EXCERPT)
    chosen = setup.Setup(trace, engines.named("fixed:1400"), 1, 1, setup.weights("ranked", trace), "oracle")
    quiet = Console(file=io.StringIO())
    return [result.outcome for result in runs.of_each(setup.policies(["arrival-order", "sfq"]), chosen, quiet)]


def printed(outcomes, width):
    console = Console(file=io.StringIO(), width=width)
    for outcome in outcomes:
        console.print(tables.of_tenants(outcome, console))
    console.print(tables.of_policies(outcomes, console))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_narrow_table_leaves_out_what_matters_least_and_says_so(outcomes, width):
    said = printed(outcomes, width)
    assert max(len(line) for line in said.splitlines()) <= width
    assert "…" not in said
    assert said.count("No room here for") == 3
    for heading in ("entitled", "received", "gap /", "share"):
        assert heading in said


def test_a_wide_table_has_everything(outcomes):
    said = printed(outcomes, 160)
    assert "No room" not in said
    for heading in ("entitled", "longest", "slower", "Jain's", "pairs beyond", "Max", "prompts"):
        assert heading in said


def test_a_tenants_name_is_never_taken_for_markup(outcomes):
    odd = tuple(replace(each, tenant="[red]x") for each in outcomes[0].tenants)
    assert "[red]x" in printed([replace(outcomes[0], tenants=odd)], 160)
