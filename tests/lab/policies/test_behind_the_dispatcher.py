"""Every policy of the table behind the product's dispatcher: what must hold whatever the order is.

Nothing is lost or dispatched twice, a tenant's requests go as they came, nobody waits beside a free slot (but for a
rate limit), logs are valid, and the same events give the same decisions.
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import Phase, find, given, settings
from support.policy_runs import Arrive, Event, Run, events

from fairpool_lab.errors import LogInvalid
from fairpool_lab.policies import POLICIES, PolicyFactory
from fairpool_lab.policies.arrival_order import ArrivalOrder
from fairpool_lab.policies.queues import TenantQueues
from fairpool_lab.policies.round_robin import RoundRobin
from fairpool_lab.policies.virtual_token_counter import VirtualTokenCounter

MAY_HOLD_BACK = {"rpm"}


def played(factory: PolicyFactory, sequence: list[Event], *, may_hold_back: bool = False) -> Run:
    run = Run(factory, may_hold_back=may_hold_back)
    run.play(sequence)
    return run


@pytest.mark.parametrize("name", POLICIES)
@given(sequence=events())
@settings(max_examples=30)
def test_what_must_hold_after_every_event(name, sequence):
    runs = [played(POLICIES[name].factory, sequence, may_hold_back=name in MAY_HOLD_BACK) for _ in range(2)]
    order = runs[0].dispatched()
    assert len(set(order)) == len(order)
    assert runs[0].lines == runs[1].lines


class LastComeFirst(RoundRobin):
    """Broken: a tenant's newest request goes."""

    def dispatch(self):
        for queue in self.queues.values():
            queue.move_to_end(next(reversed(queue)), last=False)
        return super().dispatch()


class KeepsWhatWasWithdrawn(ArrivalOrder):
    """Broken: a withdrawn request goes all the same."""

    def remove(self, tenant, request):
        pass


class Dawdles(RoundRobin):
    """Broken: it lets every other free slot go by."""

    asked = 0

    def dispatch(self):
        self.asked += 1
        return super().dispatch() if self.asked % 2 else None


class LosesTheLast(TenantQueues):
    """Broken: of a tenant with several requests it drops the newest."""

    def choose(self):
        tenant = next(iter(self.queues))
        if len(self.queues[tenant]) > 1:
            self.queues[tenant].popitem()
        return tenant


class ChargesWhatItCounts(VirtualTokenCounter):
    """Broken: the log says what the policy counted at dispatch, not what SFQ would have charged."""

    def dispatch(self):
        decision = super().dispatch()
        if decision is None:
            return None
        return msgspec.structs.replace(decision, charge=self.meter(decision.tenant) - decision.start_tag)


@pytest.mark.parametrize("broken", [LastComeFirst, KeepsWhatWasWithdrawn, Dawdles, LosesTheLast, ChargesWhatItCounts])
def test_a_broken_policy_is_caught(broken):
    def caught(sequence):
        try:
            played(broken, sequence).dispatched()
        except (AssertionError, KeyError, LogInvalid):
            return True
        return False

    find(events(), caught, settings=settings(max_examples=300, phases=[Phase.generate], derandomize=True))


def test_a_policy_that_remembers_other_runs_is_caught():
    taken = []

    class Remembers(RoundRobin):
        """Broken: what it does depends on what others of its kind have done."""

        def took(self, decision):
            taken.append(decision)
            if len(taken) % 3:
                super().took(decision)

    sequence = [*(Arrive(tenant, 10, 10) for tenant in "aaaaaaabbbb")]
    assert played(RoundRobin, sequence).lines == played(RoundRobin, sequence).lines
    assert played(Remembers, sequence).lines != played(Remembers, sequence).lines
