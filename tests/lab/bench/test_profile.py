"""`make bench-profile`: every part of the gateway that is at work is told, and together they are all of it."""

import sys

import pytest
from rich.console import Console

from fairpool_lab.bench.profile import Profile, profile, table
from fairpool_lab.bench.sampled import LOOP, WRITING, Sampler, Samples
from fairpool_lab.bench.workloads import SIXTY_FOUR

ORDER = "admission, order, placement and their figures"
COST = "what it will cost: its body and the estimate"


async def test_the_parts_of_a_gateway_at_work_are_all_of_its_time(tmp_path):
    found = await profile(SIXTY_FOUR.rehearsed(), tmp_path)
    shares = dict(found.parts)
    assert {LOOP, WRITING} < shares.keys()
    assert sum(shares.values()) == pytest.approx(1)
    assert found.number > 0
    assert found.microseconds > 0


def test_a_part_is_told_by_the_innermost_function_that_belongs_to_one():
    sampler = Sampler()

    def frame_of(module, then=None):
        """A function of this module, that calls another one, or has the sampler look."""
        names = {"__name__": module, "then": then or (lambda: sampler(0, sys._getframe(1)))}
        exec("def work():\n    then()", names)
        return names["work"]

    frame_of("fairpool_gateway.dispatcher", frame_of("fairpool_gateway.cost.body", frame_of("msgspec")))()
    frame_of("fairpool_gateway.dispatcher")()
    frame_of("elsewhere")()
    assert dict(sampler.counts) == {COST: 1, ORDER: 1, LOOP: 1}


def test_what_takes_most_is_shown_first_with_what_it_is_of_each():
    found = Profile(SIXTY_FOUR, Samples({COST: 1, ORDER: 3}, seconds=0.001), number=100)
    console = Console(width=120)
    with console.capture() as shown:
        console.print(table(found))
    lines = [line.split() for line in shown.get().splitlines() if "%" in line]
    assert [(" ".join(words), time, share) for *words, time, share in lines] == [
        (ORDER, "7.5", "75%"),
        (COST, "2.5", "25%"),
        ("all", "10.0", "100%"),
    ]
