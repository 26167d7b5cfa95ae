"""A policy behind the real dispatcher, on fake time: events in, each checked for what must hold of every policy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from hypothesis import strategies as st
from support.dispatchers import WEIGHTS, config, spec

from fairpool_gateway.cost import Shape, Used
from fairpool_gateway.decision_log import DecisionLog, Dispatch
from fairpool_gateway.dispatcher import Action, Dispatcher, Grant, Request, State
from fairpool_gateway.placement import choose
from fairpool_lab import decisions
from fairpool_lab.policies import Policy, PolicyFactory, Sight

TENANTS = ("a", "b", "c", "stranger")


class Arrive(NamedTuple):
    tenant: str
    input_tokens: int
    output_tokens: int


class Cancel(NamedTuple):
    """The client of one of the requests that have not ended leaves: of the one at this place, modulo their number."""

    place: int


class Progress(NamedTuple):
    """The engine computes the prompt of a request in flight, or the next of its output tokens."""

    place: int
    output_tokens: int


class Complete(NamedTuple):
    """A request in flight is computed to its end, and completes or fails."""

    place: int
    failed: bool


class Reweigh(NamedTuple):
    weights: dict[str, int]


class Tick(NamedTuple):
    seconds: float


Event = Arrive | Cancel | Progress | Complete | Reweigh | Tick


def events() -> st.SearchStrategy[list[Event]]:
    places = st.integers(0, 7)
    arrive = st.builds(Arrive, st.sampled_from(TENANTS), st.integers(1, 3000), st.integers(0, 500))
    likely = [
        *[arrive] * 6,
        *[st.builds(Complete, places, st.booleans())] * 4,
        *[st.builds(Progress, places, st.integers(0, 100))] * 3,
        *[st.builds(Tick, st.floats(0.0, 40.0))] * 2,
        st.builds(Cancel, places),
        st.builds(Reweigh, st.dictionaries(st.sampled_from(TENANTS), st.sampled_from((1, 2, 7, 100, 1000)))),
    ]
    return st.lists(st.integers(0, len(likely) - 1).flatmap(likely.__getitem__), min_size=10, max_size=60)


class Sized(Request):
    """A request, with what an engine will find it to be, and what it has computed of it."""

    __slots__ = ("computed", "generated", "input_tokens", "output_tokens")

    def __init__(self, number: int, event: Arrive) -> None:
        shape = Shape(
            model="sim",
            stream=False,
            text_bytes=4 * event.input_tokens,
            input_tokens=0,
            choices=1,
            max_tokens=None,
            generates=True,
        )
        super().__init__(f"r{number}", event.tenant, shape, 1)
        self.input_tokens = event.input_tokens
        self.output_tokens = event.output_tokens
        self.computed = self.generated = 0

    @property
    def cached(self) -> int:
        return self.input_tokens // 3


class Run:
    """One policy, three slots on two endpoints, and the checks."""

    def __init__(self, factory: PolicyFactory[Any], *, may_hold_back: bool) -> None:
        self._may_hold_back = may_hold_back
        self._made: list[Policy[Any]] = []
        self.lines: list[bytes] = []
        self.now = 0.0
        self._arrived = 0
        self._waiting: list[Sized] = []
        self._in_flight: list[Sized] = []

        def ordering(price: Any, **pool: Any) -> Policy[Any]:
            sight = Sight[Any](
                input_tokens=lambda request: request.input_tokens,
                output_tokens=lambda request: request.output_tokens,
                cached=lambda request: request.cached,
            )
            self._made.append(factory(price, sight=sight, **pool))
            return self._made[0]

        log = DecisionLog(self.lines.append, pool="p", weights=WEIGHTS, default_weight=100)
        self.dispatcher = Dispatcher(config(timeout="1000s"), ordering=ordering, log=log)
        self.policy = self._made[0]
        self._carry_out(self.dispatcher.replace_endpoints(0.0, [spec(0, 2), spec(1, 1)]))

    def play(self, events: Iterable[Event]) -> None:
        """All events, and then whatever it takes until nobody waits and nothing runs."""
        for event in events:
            self._play(event)
            self._check()
        while self._waiting or self._in_flight:
            self._play(Complete(0, False) if self._in_flight else Tick(60.0))
            self._check()

    def dispatched(self) -> list[str]:
        """The requests in the order in which they went, of a log that `decisions` has found valid."""
        return [event.request for event in decisions.read(self.lines).events if isinstance(event, Dispatch)]

    def _play(self, event: Event) -> None:
        self.policy.advance(self.now)
        match event:
            case Arrive():
                self._arrived += 1
                request = Sized(self._arrived, event)
                self._waiting.append(request)
                self._carry_out(self.dispatcher.arrive(self.now, request))
            case Cancel(place) if known := [*self._waiting, *self._in_flight]:
                self._cancel(known[place % len(known)])
            case Progress(place, tokens) if self._in_flight:
                self._compute(self._in_flight[place % len(self._in_flight)], tokens)
            case Complete(place, failed) if self._in_flight:
                self._complete(self._in_flight[place % len(self._in_flight)], failed=failed)
            case Reweigh(weights):
                self._carry_out(self.dispatcher.configure(self.now, config(weights, timeout="1000s")))
            case Tick(seconds):
                self.now += seconds
                self.policy.advance(self.now)
                self._carry_out(self.dispatcher.tick(self.now))

    def _cancel(self, request: Sized) -> None:
        if request in self._waiting:
            self._waiting.remove(request)
        else:
            self._in_flight.remove(request)
            self.policy.finished(request)
        self._carry_out(self.dispatcher.cancel(self.now, request))

    def _compute(self, request: Sized, tokens: int) -> None:
        if not request.computed:
            request.computed = request.input_tokens - request.cached
            self.policy.progressed(request, request.computed, 0)
        tokens = min(tokens, request.output_tokens - request.generated)
        request.generated += tokens
        self.policy.progressed(request, 0, tokens)

    def _complete(self, request: Sized, *, failed: bool) -> None:
        if not failed:
            self._compute(request, request.output_tokens)
        self._in_flight.remove(request)
        self.policy.finished(request)
        used = None if failed else Used(request.input_tokens, request.output_tokens)
        self._carry_out(self.dispatcher.complete(self.now, request, used))

    def _carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            assert isinstance(action, Grant)
            request = action.request
            assert isinstance(request, Sized)
            assert request in self._waiting, f"{request.id} is dispatched but does not wait"
            assert request is next(other for other in self._waiting if other.tenant == request.tenant), "not FIFO"
            self._waiting.remove(request)
            self._in_flight.append(request)

    def _check(self) -> None:
        assert self.policy.waiting == len(self._waiting) == sum(meter.waiting for meter in self.policy.meters())
        assert all(request.state is State.WAITING for request in self._waiting)
        assert all(request.state is State.IN_FLIGHT for request in self._in_flight)
        if self._waiting and choose(self.dispatcher.endpoints) is not None:
            due = self.policy.next_change()
            assert self._may_hold_back, "somebody waits beside a free slot"
            assert due is not None, "held back for ever"
            assert due > self.now
