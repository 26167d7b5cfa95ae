"""Of several operators one writes: however slow their messages, whenever they freeze, wherever their clocks stand."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.api_server import ApiServer, kubeconfig
from support.fake_time import on_fake_time
from support.scripted_endpoint import PATIENCE

from fairpool_operator.cluster import LEASE, Cluster, connect
from fairpool_operator.errors import Conflict, NotLeading
from fairpool_operator.lease import Claim, Leadership

SPEC = {"holderIdentity": "other", "renewTime": "t0", "leaseDurationSeconds": 15}


class TestAClaim:
    def test_takes_a_lease_that_nobody_holds(self):
        assert Claim("me").may_take({}, 0.0)
        assert Claim("me").may_take({**SPEC, "holderIdentity": ""}, 0.0)

    def test_takes_back_what_it_held_before(self):
        assert Claim("other").may_take(SPEC, 0.0)

    def test_waits_until_the_holder_was_silent_for_its_duration(self):
        claim = Claim("me")
        assert not claim.may_take(SPEC, 100.0)
        assert not claim.may_take(SPEC, 114.9)
        assert claim.may_take(SPEC, 115.0)

    def test_waits_again_when_the_holder_renewed_it(self):
        claim = Claim("me")
        assert not claim.may_take(SPEC, 100.0)
        assert not claim.may_take({**SPEC, "renewTime": "t1"}, 114.0)
        assert not claim.may_take({**SPEC, "renewTime": "t1"}, 128.9)
        assert claim.may_take({**SPEC, "renewTime": "t1"}, 129.0)

    def test_holds_for_two_thirds_of_the_duration_from_the_sending_of_its_renewal(self):
        claim = Claim("me", 15.0)
        assert not claim.holds(0.0)
        claim.renewed(100.0)
        assert claim.holds(109.9)
        assert not claim.holds(110.0)

    def test_makes_a_lease_that_nobody_made_yet(self):
        assert Claim("me").may_make(0.0)

    def test_makes_one_that_vanished_only_after_its_holder_must_have_missed_it(self):
        claim = Claim("me")
        assert not claim.may_take(SPEC, 100.0)
        assert not claim.may_make(114.0)
        assert not claim.may_make(128.9)
        assert claim.may_make(129.0)

    def test_makes_its_own_again_at_once(self):
        claim = Claim("other")
        assert claim.may_take(SPEC, 100.0)
        assert claim.may_make(100.1)

    def test_that_may_be_lost_holds_nothing(self):
        claim = Claim("me")
        claim.renewed(100.0)
        claim.lost()
        assert not claim.holds(100.0)


class Trusting(Claim):
    """Counts from when it heard of its renewal, as if messages took no time."""

    late = 0.0

    def renewed(self, sent: float) -> None:
        self.held_until = sent + self.late + self.duration


class Grasping(Claim):
    """Takes a Lease as soon as it looks old by the holder's clock and its own."""

    def may_take(self, spec, now):
        holder = spec.get("holderIdentity") or ""
        return holder in {"", self.identity} or now >= float(spec.get("renewTime") or 0) + self.duration


@dataclass
class Candidate:
    claim: Claim
    offset: float
    """How far its clock is ahead of the world's."""


def two_never_lead(make: type[Claim], offsets: list[float], steps: list[tuple[int, float, float, float]]) -> None:
    """Candidates look and renew as told: who, how long after the step before, how long each message takes."""
    candidates = [Candidate(make(f"c{number}"), offset) for number, offset in enumerate(offsets)]
    lease, version, world = dict[str, object](), 0, 0.0
    flights: list[tuple[float, float, Candidate, float, int]] = []
    for who, pause, there, back in steps:
        until = world + pause
        while flights and min(flights, key=lambda flight: flight[0])[0] <= until:
            flight = min(flights, key=lambda flight: flight[0])
            flights.remove(flight)
            arrives, answered, candidate, sent, on = flight
            if on != version:
                continue
            version += 1
            lease = {"holderIdentity": candidate.claim.identity, "renewTime": str(sent), "leaseDurationSeconds": 15}
            if isinstance(candidate.claim, Trusting):
                candidate.claim.late = answered - arrives
            candidate.claim.renewed(sent)
            leading = [each.claim.identity for each in candidates if each.claim.holds(arrives + each.offset)]
            assert len(leading) <= 1, f"{leading} lead at {arrives}"
        world = until
        candidate = candidates[who % len(candidates)]
        now = world + candidate.offset
        if candidate.claim.holds(now) or candidate.claim.may_take(lease, now):
            flights.append((world + there, world + there + back, candidate, now, version))


OFFSETS = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=3)
STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.floats(0.0, 40.0), st.floats(0.0, 8.0), st.floats(0.0, 8.0)), max_size=40
)


class TestAtNoTimeDoTwoLead:
    @given(OFFSETS, STEPS)
    @settings(max_examples=300)
    def test_whatever_their_clocks_say_and_however_slow_their_messages_are(self, offsets, steps):
        two_never_lead(Claim, offsets, steps)

    def test_a_claim_that_forgets_how_long_its_message_took_is_caught(self):
        # The first one's renewal is under way for 8 s, and it believes itself the holder for 8 s more than it is.
        steps = [(0, 0.0, 0.0, 8.0), (1, 1.0, 0.0, 0.0), (1, 15.5, 0.0, 0.0), (1, 1.0, 0.0, 0.0)]
        two_never_lead(Claim, [0.0, 0.0], steps)
        with pytest.raises(AssertionError, match="lead"):
            two_never_lead(Trusting, [0.0, 0.0], steps)

    def test_a_claim_that_compares_clocks_is_caught(self):
        steps = [(0, 0.0, 0.0, 0.0), (1, 1.0, 0.0, 0.0), (1, 1.0, 0.0, 0.0)]
        two_never_lead(Claim, [0.0, 1000.0], steps)
        with pytest.raises(AssertionError, match="lead"):
            two_never_lead(Grasping, [0.0, 1000.0], steps)


PATH = LEASE.path("inference", "fairpool-operator")
METADATA = {"namespace": "inference", "name": "fairpool-operator", "resourceVersion": "7"}


@contextlib.asynccontextmanager
async def campaigning(directory):
    """A server, and a candidate that has asked it for the Lease."""
    async with ApiServer.serving() as server:
        cluster = Cluster(await connect(kubeconfig(directory, server.url)), seconds=PATIENCE)
        leadership = Leadership(cluster, "inference", "fairpool-operator", "me")
        led = asyncio.Event()
        campaign = asyncio.create_task(leadership.campaign(lambda _: led.set()))
        try:
            yield server, leadership, led, await server.next()
        finally:
            campaign.cancel()
            await asyncio.wait([campaign], timeout=PATIENCE)
            await cluster.aclose()


async def created(server, asked, led):
    """Let the candidate make the Lease, of which there is none yet."""
    await asked.refuse(404, "not found")
    asked = await server.next()
    assert (asked.method, asked.path) == ("POST", PATH.removesuffix("/fairpool-operator"))
    made = json.loads(asked.body)
    assert made["spec"]["holderIdentity"] == "me"
    await asked.answer(201, {**made, "metadata": METADATA})
    await led.wait()


class Leases:
    """An API server that has one Lease, or none, and takes a change of its newest version alone."""

    def __init__(self, spec=None):
        self.there = spec and {"metadata": METADATA, "spec": spec}
        self.made_at = []
        self._versions = itertools.count(8)

    async def get(self, kind, namespace, name):
        return self.there

    async def create(self, kind, wanted):
        self.made_at.append(asyncio.get_running_loop().time())
        return self.keep(wanted)

    async def replace(self, kind, wanted):
        if wanted["metadata"] != self.there["metadata"]:
            raise Conflict("the object has been modified")
        return self.keep(wanted)

    def keep(self, lease):
        """This is the newest version of it."""
        self.there = {**lease, "metadata": {**METADATA, "resourceVersion": str(next(self._versions))}}
        return self.there


class SlowLeases(Leases):
    """One that takes a change at once, and says so 4 s later."""

    async def create(self, kind, wanted):
        return await self.late(await super().create(kind, wanted))

    async def replace(self, kind, wanted):
        return await self.late(await super().replace(kind, wanted))

    async def late(self, answer):
        await asyncio.sleep(4.0)
        return answer


@contextlib.asynccontextmanager
async def candidate(leases):
    """One that asks for the Lease every 5 s, from now on."""
    leadership = Leadership(leases, "inference", "fairpool-operator", "me", duration=15.0)
    campaign = asyncio.create_task(leadership.campaign(lambda _: None))
    try:
        yield leadership
    finally:
        campaign.cancel()
        await asyncio.wait([campaign])


class TestACandidate:
    def test_writes_no_more_once_its_renewal_meets_another_holder_though_its_time_is_not_over(self):
        async def main():
            leases, led = Leases(), []
            async with candidate(leases) as leadership:
                for _ in range(3):
                    await asyncio.sleep(3.0)
                    led.append(leadership.held)
                    leases.keep({"spec": SPEC})
            return led

        assert on_fake_time(main()) == [True, False, False]

    def test_writes_for_two_thirds_of_the_duration_from_the_sending_of_what_is_answered_late(self):
        async def main():
            led = []
            async with candidate(SlowLeases()) as leadership:
                await asyncio.sleep(0.5)
                for second in range(24):
                    led += [second] if leadership.held else []
                    await asyncio.sleep(1.0)
            return led

        # Made at 0, and renewed at 9 and at 18; each is heard of 4 s later.
        assert on_fake_time(main()) == [*range(4, 10), *range(13, 19), 22, 23]

    def test_that_misses_the_lease_leaves_its_holder_the_time_to_miss_it_too(self):
        async def main():
            leases = Leases(SPEC)
            async with candidate(leases):
                await asyncio.sleep(3.0)
                leases.there = None
                await asyncio.sleep(60.0)
            return leases.made_at

        missed = 5.0
        assert on_fake_time(main()) == [missed + 15.0]


class TestAtItsEnd:
    async def test_the_one_that_leads_gives_the_lease_up_in_the_version_that_it_holds(self, tmp_path):
        async with campaigning(tmp_path) as (server, leadership, led, asked):
            await created(server, asked, led)
            leadership.guard()
            releasing = asyncio.create_task(leadership.release())
            given_up = await server.next()
            # While the answer is under way nothing is written any more: another may have taken the Lease by now.
            with pytest.raises(NotLeading):
                leadership.guard()
            await given_up.answer(200, {})
            await releasing
            left = json.loads(given_up.body)
            assert (given_up.method, given_up.path, left["metadata"]) == ("PUT", PATH, METADATA)
            assert (left["spec"]["holderIdentity"], left["spec"]["leaseDurationSeconds"]) == ("", 1)
            assert Claim("other").may_take(left["spec"], 0.0)

    async def test_one_that_may_not_give_it_up_ends_all_the_same(self, tmp_path):
        async with campaigning(tmp_path) as (server, leadership, led, asked):
            await created(server, asked, led)
            releasing = asyncio.create_task(leadership.release())
            await (await server.next()).refuse(409, "another has it")
            await releasing
            assert not leadership.held

    async def test_one_that_does_not_lead_gives_up_nothing(self, tmp_path):
        async with campaigning(tmp_path) as (server, leadership, _, asked):
            await asked.answer(200, {"metadata": METADATA, "spec": SPEC})
            await leadership.release()
            assert server.asked == 0
