"""An order as studies set several beside each other: a policy, and what estimates costs for it."""

from __future__ import annotations

import msgspec

from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import Run, Scenario, simulate


class Order(msgspec.Struct, frozen=True):
    """One line of a table."""

    title: str
    policy: str
    estimator: str = "TenantAverage"

    def run(self, scenario: Scenario) -> Run:
        """A scenario under it."""
        return simulate(scenario, POLICIES[self.policy].factory)
