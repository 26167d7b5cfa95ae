"""docs/operator.md lists every argument of the operator and every metric that it shows."""

import re
from dataclasses import fields

from prometheus_client.parser import text_string_to_metric_families
from support.pages import PAGES, section

from fairpool_operator import metrics
from fairpool_operator.main import _parser

PAGE = PAGES / "operator.md"
PREFIX = "fairpool_operator"


def test_every_argument_is_there():
    [commands] = [action for action in _parser()._actions if isinstance(action.choices, dict)]
    known = {option for action in commands.choices["run"]._actions for option in action.option_strings}
    listed = re.findall(r"^\| (`--.+?) \|", section(PAGE, "How it is run"), re.MULTILINE)
    assert set(re.findall(r"--[a-z-]+", " ".join(listed))) == known - {"-h", "--help"}


def test_every_metric_is_there():
    gauges = metrics.Gauges(True, True, *[0] * (len(fields(metrics.Gauges)) - 2))
    text = metrics.exposition(metrics.Tally(), lambda: gauges)().decode()
    shown = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in text_string_to_metric_families(text)
        if family.name.startswith(PREFIX)
    }
    rows = re.findall(r"^\| (`.+?`) \| ", section(PAGE, "What it shows"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    assert {name if name.startswith(PREFIX) else PREFIX + name for name in named} == shown
