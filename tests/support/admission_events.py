"""Random events for admission, played beside the plainest bookkeeping, which says what must hold after each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from support.config import pool_config

from fairpool_gateway.admission import Admission, TurnedAway, Upload
from fairpool_gateway.config import PoolConfig
from fairpool_gateway.errors import QueueFull

TENANTS = ("a", "b", "c", "d")
OWN = {"maxRequests": 5, "maxBytes": 500}
"""What each of them may have; `d` may have more."""


def bounded(max_requests: int, max_bytes: int) -> PoolConfig:
    """A pool with these bounds."""
    tenants: list[dict[str, Any]] = [{"name": name} for name in TENANTS]
    tenants[-1]["queue"] = {"maxRequests": 100, "maxBytes": 10_000}
    queue = {"maxRequests": max_requests, "maxBytes": max_bytes, "maxRequestBytes": 100, "perTenant": OWN}
    return pool_config(tenants=tenants, queue=queue)


@dataclass(frozen=True)
class Enter:
    """A request comes whole."""

    tenant: str
    size: int


@dataclass(frozen=True)
class Piece:
    """A piece comes of one of the tenant's bodies, or of a new one."""

    tenant: str
    size: int
    place: int


@dataclass(frozen=True)
class Go:
    """One of those that wait leaves."""

    place: int


@dataclass(frozen=True)
class End:
    """One of the bodies has come, or never will."""

    place: int


@dataclass(frozen=True)
class Bound:
    """The pool's bounds are changed."""

    max_requests: int
    max_bytes: int


Event = Enter | Piece | Go | End | Bound

_tenants = st.sampled_from(TENANTS)
_sizes = st.integers(1, 100)
_fillings: st.SearchStrategy[list[Event]] = st.sampled_from([
    [],
    [Enter("d", 75)] * 8,
    [Enter("d", 100), Enter("c", 100)] * 3,
    [Piece("d", 100, 0)] * 6,
    [Piece("d", 100, 9), Enter("d", 50)] * 4,
])  # fmt: skip
_further: st.SearchStrategy[Event] = st.one_of(
    st.builds(Enter, _tenants, _sizes),
    st.builds(Enter, _tenants, _sizes),
    st.builds(Piece, _tenants, _sizes, st.integers(0, 3)),
    st.builds(Go, st.integers(0, 9)),
    st.builds(End, st.integers(0, 9)),
    st.builds(Bound, st.integers(1, 12), st.integers(100, 800)),
)
events: st.SearchStrategy[list[Event]] = st.builds(lambda first, then: [*first, *then], _fillings, st.lists(_further))
"""Most begin with a pool that one tenant has filled, or two, for that is where something has to be given up."""


@dataclass(eq=False)
class Waiting:
    """A request that waits."""

    tenant: str
    size: int


@dataclass
class Book:
    """What is here, in the order in which it came."""

    waiting: list[Waiting] = field(default_factory=list)
    uploads: list[Upload] = field(default_factory=list)

    def requests_of(self, tenant: str) -> int:
        """How many requests of the tenant wait."""
        return sum(each.tenant == tenant for each in self.waiting)

    def bytes_of(self, tenant: str) -> int:
        """What the tenant holds."""
        return sum(each.size for each in self.waiting if each.tenant == tenant) + sum(
            len(each.body) for each in self.uploads if each.tenant == tenant
        )

    def tenants(self) -> set[str]:
        """Who has something here."""
        return {each.tenant for each in self.waiting} | {each.tenant for each in self.uploads}


class Play:
    """Plays events on an admission, and asserts after each what must hold."""

    def __init__(self, kind: type[Admission[Waiting]] = Admission) -> None:
        self.config = bounded(8, 600)
        self.admission = kind(self.config)
        self.book = Book()
        self.requests_given_up = self.uploads_given_up = 0

    def run(self, events: list[Event]) -> Play:
        """All of them."""
        for event in events:
            match event:
                case Enter(tenant, size):
                    self.enter(tenant, size)
                case Piece(tenant, size, place):
                    self.piece(tenant, size, place)
                case Go(place) if self.book.waiting:
                    self.admission.leave(self.book.waiting.pop(place % len(self.book.waiting)))
                case End(place) if self.book.uploads:
                    self.admission.release(self.book.uploads.pop(place % len(self.book.uploads)))
                case Bound(max_requests, max_bytes):
                    self.config = bounded(max_requests, max_bytes)
                    assert self.admission.configure(self.config) == []
            self.check_counts()
        return self

    def enter(self, tenant: str, size: int) -> bool:
        """A request comes; returns whether it got in."""
        made = Waiting(tenant, size)
        before = self.state()
        try:
            turned_away = self.admission.enter(0.0, tenant, made, size)
        except QueueFull:
            self.check_refused(before, tenant, 1, size)
            return False
        self.book.waiting.append(made)
        self.check_room(before, tenant, 1, size, turned_away)
        return True

    def piece(self, tenant: str, size: int, place: int) -> None:
        """A piece of a body comes."""
        mine = [each for each in self.book.uploads if each.tenant == tenant]
        upload = mine[place] if place < len(mine) else Upload(tenant)
        before = self.state()
        turned_away = self.admission.receive(0.0, upload, b"x" * size)
        if upload.refusal is not None:
            assert not turned_away
            assert not upload.body
            self.check_refused(before, tenant, 0, size)
            self.book.uploads = [each for each in self.book.uploads if each is not upload]
            return
        if upload not in self.book.uploads:
            self.book.uploads.append(upload)
        self.check_room(before, tenant, 0, size, turned_away)

    def state(self) -> State:
        """What is held now, in figures."""
        return State(
            {tenant: (self.book.requests_of(tenant), self.book.bytes_of(tenant)) for tenant in self.book.tenants()},
            {upload: len(upload.body) for upload in self.book.uploads},
        )

    def check_refused(self, before: State, tenant: str, requests: int, size: int) -> None:
        """Only who would exceed its own bound is refused, or more than its part of a bound that is reached."""
        queue = self.config.queue
        own = self.config.own_queues().get(tenant, queue.per_tenant)
        mine, n = before.held.get(tenant, (0, 0)), len(before.held.keys() | {tenant})
        assert (
            mine[0] + requests > own.max_requests
            or mine[1] + size > own.max_bytes
            or (requests and before.requests + 1 > queue.max_requests and (mine[0] + 1) * n > queue.max_requests)
            or (before.bytes + size > queue.max_bytes and (mine[1] + size) * n > queue.max_bytes)
        ), f"{tenant} was refused with {mine} of {n} tenants"

    def check_room(self, before: State, tenant: str, requests: int, size: int, lost: TurnedAway[Waiting]) -> None:
        """Who came has room for it; only who held more than its part gave anything up, the newest first."""
        queue = self.config.queue
        own = self.config.own_queues().get(tenant, queue.per_tenant)
        n = len(before.held.keys() | {tenant})
        given_up = [request for request, _ in lost]
        assert all(isinstance(refusal, QueueFull) for _, refusal in lost)
        stopped = [each for each in self.book.uploads if each.refusal is not None]
        self.book.uploads = [each for each in self.book.uploads if each.refusal is None]
        for each in given_up:
            assert each is [one for one in self.book.waiting if one.tenant == each.tenant][-1], "not the newest"
            self.book.waiting.remove(each)
        self.requests_given_up += len(given_up)
        self.uploads_given_up += len(stopped)
        now = self.state()
        lacked_places = requests > 0 and before.requests + requests > queue.max_requests
        lacked_bytes = before.bytes + size > queue.max_bytes
        sizes = [each.size for each in given_up] + [before.uploads[each] for each in stopped]
        assert not sizes or lacked_places or lacked_bytes, "nothing was missing"
        assert lacked_bytes or len(given_up) + len(stopped) <= 1, "one place was missing"
        assert lacked_places or before.bytes + size - sum(sizes) + max(sizes, default=0) > min(
            queue.max_bytes, before.bytes + size - 1
        ), "less would have been enough"
        for loser in {each.tenant for each in (*given_up, *stopped)}:
            requests_then = now.held.get(loser, (0, 0))[0] + 1
            assert loser != tenant
            assert (lacked_places and requests_then * n > queue.max_requests) or (
                lacked_bytes and before.held[loser][1] * n > queue.max_bytes
            ), f"{loser} gave up though it held no more than its part"
        assert now.requests <= max(queue.max_requests, before.requests)
        assert now.bytes <= max(queue.max_bytes, before.bytes)
        assert now.held[tenant][0] <= own.max_requests
        assert now.held[tenant][1] <= own.max_bytes

    def check_counts(self) -> None:
        """The counts are those of what is here, and a tenant that has nothing here costs nothing."""
        state = self.state()
        assert (self.admission.waiting, self.admission.bytes) == (state.requests, state.bytes)
        assert set(self.admission._held) == set(state.held)


@dataclass(frozen=True)
class State:
    """What each tenant holds, requests and bytes, and each body on its way in."""

    held: dict[str, tuple[int, int]]
    uploads: dict[Upload, int]

    @property
    def requests(self) -> int:
        """Of all."""
        return sum(requests for requests, _ in self.held.values())

    @property
    def bytes(self) -> int:
        """Of all."""
        return sum(size for _, size in self.held.values())
