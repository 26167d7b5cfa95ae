"""What no tenant may gain by, in short: tricks that fair order gives nothing for, each paid for by some other order.

And what errors of estimates do to shares, and what carry makes good of it.
"""

from __future__ import annotations

import pytest
from support import sfq_broken
from support.carry_broken import OnlyWhatIsWhole
from support.controls import control

from fairpool_gateway import charging
from fairpool_lab import traces
from fairpool_lab.policies import POLICIES
from fairpool_lab.studies import calibration, gaming
from fairpool_lab.studies.foretelling import WAYS

DEFAULT = WAYS[0]
CARRYING = next(way for way in WAYS if way.name == "TenantAverage, carry")
CONSTANT = next(way for way in WAYS if way.name == "constant")

LITTLE = 0.05
"""Of a share: in so short a time one request more or less is as much."""

TRUE = 0.015
"""A share error that is little where a tenant has some 30 requests."""

CONTROLS = {
    "split": POLICIES["equinox"].factory,
    "padded": POLICIES["round-robin"].factory,
    "leave and return": control(sfq_broken.ResetOnReturn),
    "one at a time": POLICIES["vtc"].factory,
    "cancel and resubmit": control(sfq_broken.ResetOnRemoval),
}
"""By trick, an order that pays for it."""


def gains(trick, way):
    (played,) = (each for each in gaming.TRICKS if each.name == trick)
    return gaming.gain(played, way, lasts=80.0)


@pytest.mark.parametrize("trick", [*CONTROLS, "none"])
def test_the_products_order_gives_nothing_for_it(trick):
    assert gains(trick, DEFAULT) <= LITTLE


@pytest.mark.parametrize("trick", CONTROLS)
def test_some_other_order_does(trick):
    assert gains(trick, DEFAULT._replace(order=CONTROLS[trick])) > LITTLE


def test_carry_gives_nothing_for_cancelling_what_runs_and_estimates_alone_do(monkeypatch):
    assert gains("cancelled", CARRYING) <= LITTLE
    assert gains("cancelled", DEFAULT) > 0.5
    monkeypatch.setattr(charging, "Carry", OnlyWhatIsWhole)
    assert gains("cancelled", CARRYING) > LITTLE


def test_with_carry_a_real_trace_gets_its_shares_and_by_estimates_alone_it_does_not():
    trace = calibration.limited(traces.read(traces.EXCERPT))
    off = {way.name: calibration.foretold(trace, 8, way).share_error for way in (DEFAULT, CARRYING, CONSTANT)}
    assert off[CARRYING.name] <= TRUE < min(off[DEFAULT.name], off[CONSTANT.name])
