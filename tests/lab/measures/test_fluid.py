"""The fluid reference, by virtual clock and finish tags, gives what progressive filling gives step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from fairpool_lab.measures.fluid import RESOLUTION, Fluid

TENANTS = ("a", "b", "c", "d")
TOLERANCE = 1e-12


class Step(NamedTuple):
    """One event: an arrival or a removal of a cost, service of a cost, or a weight of that size."""

    kind: str
    tenant: str
    size: int


steps = st.lists(
    st.builds(
        Step,
        kind=st.sampled_from(["arrive", "arrive", "serve", "serve", "remove", "reweigh"]),
        tenant=st.sampled_from(TENANTS),
        size=st.integers(1, 30),
    ),
    max_size=30,
)


class Filling:
    """Progressive filling as it is told: everybody backlogged gets service by weight until the first has enough."""

    def __init__(self) -> None:
        self.wanted = dict.fromkeys(TENANTS, Fraction(0))
        self.given = dict.fromkeys(TENANTS, Fraction(0))
        self.weight = dict.fromkeys(TENANTS, 1)

    def play(self, step: Step) -> None:
        match step:
            case Step("arrive", tenant, cost):
                self.wanted[tenant] += cost
            case Step("remove", tenant, cost):
                self.wanted[tenant] -= min(cost, self.wanted[tenant])
            case Step("reweigh", tenant, weight):
                self.weight[tenant] = weight
            case Step("serve", _, cost):
                self.serve(Fraction(cost))

    def serve(self, left: Fraction) -> None:
        while left and (backlogged := [tenant for tenant in TENANTS if self.wanted[tenant]]):
            weights = sum(self.weight[tenant] for tenant in backlogged)
            enough = min(self.wanted[tenant] / self.weight[tenant] for tenant in backlogged)
            step = min(left, enough * weights)
            for tenant in backlogged:
                self.given[tenant] += step * self.weight[tenant] / weights
                self.wanted[tenant] -= step * self.weight[tenant] / weights
            left -= step


def entitled(steps: Sequence[Step], fluid: Fluid) -> dict[str, float]:
    weights = dict.fromkeys(TENANTS, 1)
    for step in steps:
        match step:
            case Step("arrive", tenant, cost):
                fluid.arrive(tenant, cost, weights[tenant])
            case Step("remove", tenant, cost):
                fluid.remove(tenant, cost)
            case Step("reweigh", tenant, weight):
                weights[tenant] = weight
                fluid.reweigh(tenant, weight)
            case Step("serve", _, cost):
                fluid.serve(cost)
    return {tenant: fluid.entitled(tenant) for tenant in TENANTS}


def filled(steps: Sequence[Step]) -> dict[str, float]:
    filling = Filling()
    for step in steps:
        filling.play(step)
    return {tenant: float(given) for tenant, given in filling.given.items()}


class TestProgressiveFilling:
    @given(steps)
    @settings(max_examples=300, deadline=None)
    def test_everybody_is_entitled_to_what_filling_gives(self, steps):
        assert entitled(steps, Fluid()) == pytest.approx(filled(steps), abs=TOLERANCE)

    @pytest.mark.parametrize("broken", [0, 1, 2, 3], ids=lambda number: BROKEN[number].__name__)
    def test_the_comparison_catches(self, broken):
        def disagrees(steps: list[Step]) -> bool:
            return entitled(steps, BROKEN[broken]()) != pytest.approx(filled(steps), abs=TOLERANCE)

        assert find(steps, disagrees, settings=settings(max_examples=3000, database=None, phases=[Phase.generate]))


class NeverStopsAtAFinish(Fluid):
    """Who has enough goes on counting while the service lasts."""

    def serve(self, cost):
        before = self._v
        super().serve(0)
        if self._backlogged:
            self._v = before + cost * RESOLUTION // self._weights


class SavesUpIdleTime(Fluid):
    """An arrival continues at the old finish tag, not at the clock."""

    def arrive(self, tenant, cost, weight):
        known = self._tenants.get(tenant)
        finish = known.finish if known else 0
        super().arrive(tenant, cost, weight)
        if known and finish < self._v:
            self._finish(tenant, finish + cost * RESOLUTION // weight)


class KeepsWhatIsWithdrawn(Fluid):
    """A removal changes nothing."""

    def remove(self, tenant, cost):
        pass


class KeepsTheFinishTag(Fluid):
    """A new weight leaves the finish tag where it was."""

    def reweigh(self, tenant, weight):
        known = self._tenants.get(tenant)
        finish = known.finish if known else 0
        super().reweigh(tenant, weight)
        if tenant in self._backlogged:
            self._finish(tenant, finish)


BROKEN: list[Callable[[], Fluid]] = [
    NeverStopsAtAFinish,
    SavesUpIdleTime,
    KeepsWhatIsWithdrawn,
    KeepsTheFinishTag,
]


class TestInWords:
    def test_a_light_tenant_is_entitled_to_what_it_asks_and_no_more(self):
        """Splitting each dispatch by the weights of those who wait would give the light tenant three times that."""
        fluid = Fluid()
        fluid.arrive("heavy", 100, 1)
        fluid.arrive("light", 5, 1)
        for _ in range(3):
            fluid.serve(10)
        assert fluid.entitled("light") == 5
        assert fluid.entitled("heavy") == 25

    def test_weights_divide_what_everybody_wants(self):
        fluid = Fluid()
        for tenant, weight in (("one", 1), ("two", 2), ("four", 4)):
            fluid.arrive(tenant, 1000, weight)
        fluid.serve(70)
        assert [fluid.entitled(tenant) for tenant in ("one", "two", "four")] == pytest.approx([10, 20, 40])

    def test_service_beyond_all_demand_is_nobodys(self):
        fluid = Fluid()
        fluid.arrive("a", 3, 1)
        fluid.serve(10)
        fluid.arrive("b", 4, 1)
        assert (fluid.entitled("a"), fluid.entitled("b")) == (3, 0)

    def test_a_stranger_is_entitled_to_nothing(self):
        assert Fluid().entitled("nobody") == 0

    def test_memory_follows_the_tenants_not_the_events(self):
        fluid = Fluid()
        for number in range(10_000):
            fluid.arrive(TENANTS[number % 4], 2, 1)
            fluid.serve(1)
        assert len(fluid._finishes) < 100

    def test_rounding_loses_nothing_that_shows(self):
        fluid, asked = Fluid(), Counter()
        for number in range(5_000):
            tenant, cost = f"t{number % 97}", 1 + number * 7919 % 1000
            fluid.arrive(tenant, cost, 1 + number % 97 * 10)
            asked[tenant] += cost
            fluid.serve(cost)
        fluid.serve(1)
        assert sum(map(fluid.entitled, asked)) == pytest.approx(asked.total(), rel=1e-15)
