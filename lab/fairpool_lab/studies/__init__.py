"""Studies: questions about orders of requests, each answered by one command that makes a page in `docs/studies`.

A study measures, keeps its figures as JSON beside the page, and writes the page from them. So every number of a page
can be had again by the command that stands in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fairpool_lab.studies import bound, calibration_page, headline, isolation, price_page, truth_page, weights
from fairpool_lab.studies.study import Given, Listed, Made, Traces, Walk, quietly

__all__ = ["STUDIES", "Given", "Listed", "Made", "Traces", "Walk", "quietly"]

_LISTED: Final = (
    bound.LISTED,
    headline.LISTED,
    weights.LISTED,
    isolation.LISTED,
    calibration_page.LISTED,
    price_page.LISTED,
    truth_page.LISTED,
)

STUDIES: Final[Mapping[str, Listed]] = MappingProxyType({listed.name: listed for listed in _LISTED})
"""Every study by its name."""
