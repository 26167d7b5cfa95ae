"""The bound: does any tenant ever get further ahead of another than two requests, on any trace, whatever is tried?

Two questions, as DESIGN §4 puts them. In charges, at dispatch: on every trace that is given, and on adversaries. In
true cost, at completion, where D slots make the bound `(D + 1) (c_i/w_i + c_j/w_j)`: at 1 to 512 slots, with costs that
are known in advance and with estimates, and behind an engine that completes in the worst order. Every pair of tenants
and every interval counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairpool_lab.studies.bound import measured, page
from fairpool_lab.studies.study import Given, Listed, Made, Traces, Walk


def _make(given: Sequence[Given], walk: Walk) -> Made:
    found = measured.study(given, walk)
    return Made(found, page.page(found), {page.DRAWING: page.drawing(found)})


LISTED: Final = Listed("bound", "gaps over their bound, on traces and on adversaries", Traces.SOME, _make)
