"""Progress: what is measured now, and how long the rest takes at the pace so far."""

from __future__ import annotations

import io

from fairpool_lab.bench.progress import Progress


def test_the_rest_is_what_was_expected_and_then_what_the_pace_makes_of_it():
    said, times = io.StringIO(), iter((1000.0, 1020.0, 1090.0))
    progress = Progress(100.0, file=said, clock=lambda: next(times))
    for what, seconds in (("a", 10.0), ("b", 80.0), ("c", 10.0)):
        progress.begin(what, seconds)
    assert said.getvalue().splitlines() == ["1:40 left: a", "3:00 left: b", "0:10 left: c"]


def test_more_than_was_expected_is_no_time_less_than_none():
    said = io.StringIO()
    progress = Progress(10.0, file=said, clock=iter((0.0, 10.0, 20.0)).__next__)
    for what in ("a", "b", "c"):
        progress.begin(what, 10.0)
    assert said.getvalue().splitlines()[-1] == "0:00 left: c"
