"""What tokens take is found again in times that were made from it, and nothing is found where nothing is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool_lab.comparison.calibration import Observed, Rates, observed, rates
from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import Ask, FixedService, Scenario, simulate

REQUESTS = [(10, 5), (400, 3), (20, 90), (1000, 10), (5, 1), (300, 300), (77, 14), (640, 128), (2, 200), (90, 9)]


def timed(input_rate, output_rate, fixed):
    return [Observed(i, o, input_rate * i + output_rate * o + fixed) for i, o in REQUESTS]


seconds = st.floats(1e-5, 0.1)


@given(seconds, seconds, st.floats(0, 2))
def test_rates_are_found_again(input_rate, output_rate, fixed):
    fit = rates(timed(input_rate, output_rate, fixed))
    assert (fit.input, fit.output) == (pytest.approx(input_rate, rel=1e-3), pytest.approx(output_rate, rel=1e-3))
    assert fit.fixed == pytest.approx(fixed, abs=1e-3)
    assert fit.explained == pytest.approx(1)
    assert fit.error == pytest.approx(0, abs=1e-6)


def test_times_that_are_anothers_explain_little():
    straight = timed(0.001, 0.03, 0.1)
    mixed = [
        each._replace(seconds=other.seconds) for each, other in zip(straight, straight[3:] + straight[:3], strict=True)
    ]
    fit = rates(mixed)
    assert fit is None or fit.explained < 0.5


def test_no_rate_is_ever_negative():
    faster_the_longer = [Observed(i, o, 10 - 0.009 * i + 0.01 * o) for i, o in REQUESTS]
    fit = rates(faster_the_longer)
    assert fit.input == 0
    assert min(fit.output, fit.fixed) >= 0


@pytest.mark.parametrize(
    "requests",
    [[], timed(0.1, 0.1, 0)[:9], [Observed(10, 10, 1.0)] * 50, [Observed(0, 0, 1.0)] * 20],
    ids=["none", "few", "all alike", "empty"],
)
def test_where_nothing_can_be_told_nothing_is(requests):
    assert rates(requests) is None


@pytest.mark.parametrize(
    ("ratio", "weights"),
    [
        (1, (1, 1)),
        (2, (1, 2)),
        (2.5, (2, 5)),
        (30, (1, 30)),
        (0.5, (2, 1)),
        (1.02, (1, 1)),
        (5000, (1, 1000)),
        (1e-5, (1000, 1)),
    ],
)
def test_weights_are_the_least_that_are_near_the_ratio(ratio, weights):
    assert Rates(0.001, 0.001 * ratio, 0.0, 1.0, 0.0, 100).weights() == weights


def test_a_token_that_takes_nothing_weighs_nothing():
    assert Rates(0.0, 0.01, 0.0, 1.0, 0.0, 100).weights() == (0, 1)
    assert Rates(0.01, 0.0, 0.0, 1.0, 0.0, 100).weights() == (1, 0)


def test_a_log_tells_what_its_server_was_made_of():
    asks = [Ask(number * 1.0, "a", *size) for number, size in enumerate(REQUESTS * 3)]
    run = simulate(
        Scenario(lambda: FixedService(1000.0, lambda used: used.input + 5 * used.output), asks), POLICIES["sfq"].factory
    )
    fit = rates(observed(run.log.events))
    assert (fit.observed, fit.weights()) == (30, (1, 5))
    assert fit.input == pytest.approx(0.001)
