"""The dispatcher: the loop of §7.1 as a state machine, so that every interleaving can be tested on fake time.

Events go in (receive, arrive, cancel, complete, endpoints, listed, configure, tick), each with the time it happened;
actions come out (grant a slot, refuse), to be carried out in order. It knows neither HTTP nor tasks. What always holds
after every event: either nobody waits or no slot is free; a slot that was taken is given back exactly once. Whose head
goes next is decided once per dispatch, however many slots came free (§5.2), and its cost is fixed at that moment
(§5.1). A request whose attempt failed before its first byte may try another endpoint: it goes ahead of the order, since
its turn has been, and is not charged again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from fairpool_gateway.admission import Admission, TurnedAway, Upload
from fairpool_gateway.charging import Charging
from fairpool_gateway.config import PoolConfig
from fairpool_gateway.cost import Estimator, Used
from fairpool_gateway.decision_log import DecisionLog
from fairpool_gateway.endpoints import Endpoint, Endpoints, EndpointSpec, Slot
from fairpool_gateway.errors import ModelNotFound, NoEndpoint, Refused
from fairpool_gateway.health import PROBE, SUSPICIOUS
from fairpool_gateway.models import judge
from fairpool_gateway.ordering import OrderingFactory
from fairpool_gateway.placement import choose
from fairpool_gateway.request import DONE, IN_FLIGHT, RETRYING, WAITING, Request, State
from fairpool_gateway.retries import MOST_OTHERS, RetryBudget
from fairpool_gateway.sfq import Decision, Scheduler
from fairpool_gateway.tallies import Counts, Tallies

__all__ = ["Action", "Dispatcher", "Grant", "Refuse", "Request", "State"]


class Grant(msgspec.Struct, frozen=True):
    """The request may now be sent to the endpoint."""

    request: Request
    endpoint: Endpoint


class Refuse(msgspec.Struct, frozen=True):
    """The request waits no longer, and this is what its tenant is told."""

    request: Request
    refusal: Refused


Action = Grant | Refuse


class Dispatcher:
    """The three layers of one pool, admission, ordering and placement, and what goes between them."""

    def __init__(
        self,
        config: PoolConfig,
        *,
        ordering: OrderingFactory[Request] = Scheduler,
        estimator: Estimator | None = None,
        log: DecisionLog | None = None,
    ) -> None:
        self.config = config
        self.models = config.models
        self._served = frozenset(config.models)
        self.tallies: Tallies[Request] = Tallies(config)
        self.endpoints = Endpoints()
        self.estimator = estimator or Estimator(config.cost.model())
        self.charging = Charging(config, self.estimator)
        self.admission: Admission[Request] = Admission(config)
        self.ordering = ordering(
            self.charging.price,
            weights=config.weights(),
            default_weight=config.default_weight,
            max_tenants=config.authentication.max_tenants,
        )
        self._level = False
        self._retrying: OrderedDict[Request, float] = OrderedDict()
        self._retry_budget = RetryBudget()
        self._log = log

    @property
    def counts(self) -> Counts:
        """What has happened so far in the whole pool."""
        return self.tallies.total()

    @property
    def retrying(self) -> int:
        """How many requests wait to be tried on another endpoint."""
        return len(self._retrying)

    def receive(self, now: float, upload: Upload, piece: bytes) -> list[Action]:
        """A piece of a body came; afterwards the upload says whether it may go on."""
        if not upload.body:
            upload.tenant = self.ordering.identify(upload.tenant)
        return self._turn_away(now, self.admission.receive(now, upload, piece))

    def release(self, upload: Upload) -> None:
        """The body has come, or never will."""
        self.admission.release(upload)

    def arrive(self, now: float, request: Request) -> list[Action]:
        """A request wants a slot."""
        request.tenant = tenant = self.ordering.identify(request.tenant)
        request.tally = self.tallies.of(tenant)
        request.tally.counts.arrived += 1
        request.arrived = now
        try:
            turned_away = self.admission.enter(now, tenant, request, request.size)
        except Refused as refusal:
            return [self._refuse(request, refusal)]
        actions = self._turn_away(now, turned_away)
        request.state = WAITING
        if self.charging.carry is not None and self.ordering.lags(tenant):
            self.charging.carry.rejoined(tenant)
        self.ordering.arrive(tenant, request)
        self._level = False
        if self._log:
            estimate = self.estimator.estimate(tenant, request.shape)
            self._log.arrive(now, tenant, self.ordering.weight(tenant), request.id, estimate)
        return actions + self._fill(now)

    def cancel(self, now: float, request: Request, *, seen: Used | None = None) -> list[Action]:
        """The request's client left: it gives up its place, or at once its slot, and was `seen` to use so much."""
        if request.state is WAITING:
            self.admission.leave(request)
            self._remove(now, request)
            return []
        if request.state is RETRYING:
            del self._retrying[request]
            request.state = DONE
            return []
        return self.complete(now, request, None, seen=seen)

    def complete(self, now: float, request: Request, used: Used | None, *, seen: Used | None = None) -> list[Action]:
        """The request needs its slot no longer. `used` is None where it failed, or told no usage: see `cancel`."""
        if request.state is not IN_FLIGHT or request.slot is None:
            return []
        request.state = DONE
        self._give_back(now, request, request.slot, used)
        self.charging.ended(request, used, seen)
        return self._fill(now)

    def connect_failed(self, now: float, request: Request) -> list[Action]:
        """No connection to the request's endpoint could be made; the request itself has yet to be retried or ended."""
        if request.slot is None:
            return []
        endpoint = request.slot.endpoint
        endpoint.health.connect_failed(now, may_eject=self.endpoints.others_than(endpoint))
        return self._fill(now)

    def answered(self, now: float, status: int, request: Request) -> list[Action]:
        """The request's endpoint began its answer, or failed to, which its tenant sees as a 502 or a 504."""
        if request.slot is None:
            return []
        endpoint = request.slot.endpoint
        if status not in SUSPICIOUS and endpoint.health.spotless:
            return []
        endpoint.health.answered(now, status, request.tenant, may_eject=self.endpoints.others_than(endpoint))
        return self._fill(now)

    def ended(self, now: float, request: Request, *, aborted: bool) -> list[Action]:
        """The request's endpoint brought its answer to an end, or gave it up."""
        if request.slot is None:
            return []
        endpoint = request.slot.endpoint
        if not aborted and endpoint.health.spotless:
            return []
        may_eject = self.endpoints.others_than(endpoint)
        endpoint.health.ended(now, request.tenant, aborted=aborted, may_eject=may_eject)
        return self._fill(now)

    def probed(self, now: float, endpoint: Endpoint, status: int | None) -> list[Action]:
        """The gateway itself asked an endpoint whether it is well. `status` is None where nothing answered."""
        may_eject = self.endpoints.others_than(endpoint)
        if status is None:
            endpoint.health.connect_failed(now, may_eject=may_eject)
        else:
            endpoint.health.answered(now, status, PROBE, may_eject=may_eject)
        return self._fill(now)

    def may_retry(self, request: Request, *, lost: bool) -> bool:
        """Whether the attempt in flight, which failed before its first byte, may be repeated elsewhere.

        `lost`: its connection was lost after all of it was sent.
        """
        if request.slot is None or (lost and request.lost) or len(request.tried) >= MOST_OTHERS:
            return False
        tried = (*request.tried, request.slot.endpoint)
        return self._retry_budget.allows and any(
            endpoint not in tried and not endpoint.is_out for endpoint in self.endpoints
        )

    def retry(self, now: float, request: Request, *, lost: bool) -> list[Action]:
        """Repeat a failed attempt elsewhere, which `may_retry` has allowed."""
        if request.state is not IN_FLIGHT or request.slot is None:
            return []
        request.state = RETRYING
        request.tried = (*request.tried, request.slot.endpoint)
        request.lost = request.lost or lost
        self._retrying[request] = now
        self._retry_budget.spend()
        request.tally.counts.retried += 1
        self._give_back(now, request, request.slot, None)
        return self._fill(now)

    def replace_endpoints(self, now: float, specs: Iterable[EndpointSpec]) -> list[Action]:
        """These are the endpoints from now on; what is in flight on others goes on to its end."""
        self.endpoints.replace(specs)
        return self._judge_models(now)

    def listed(self, now: float, endpoint: Endpoint, models: frozenset[str] | None) -> list[Action]:
        """An endpoint was asked which models it serves. `models` is None where it does not say."""
        endpoint.asked = True
        endpoint.models = models
        return self._judge_models(now)

    def serves(self, model: str) -> bool:
        """Whether requests for this model may wait; all may while nobody knows what is served."""
        return not self._served or model in self._served

    def configure(self, now: float, config: PoolConfig) -> list[Action]:
        """These are the rules from now on; no meter moves (§5.1), and nothing is dropped but what waits suspended."""
        self._reweigh(now, self.config, config)
        self.charging.configure(self.config, config)
        self.config = config
        self.tallies.configure(config)
        return self._turn_away(now, self.admission.configure(config)) + self._judge_models(now)

    def tick(self, now: float) -> list[Action]:
        """Time has passed: endpoints that were out for long enough are tried, and who waited too long is refused.

        In this order, so that no removal comes before a free slot finds nobody backlogged.
        """
        self.endpoints.tick(now)
        actions = self._fill(now)
        ready = any(not endpoint.is_out for endpoint in self.endpoints)
        actions += self._turn_away(now, self.admission.expire(now, endpoints=ready))
        return actions + self._expire_retries(now)

    def next_tick(self) -> float | None:
        """When `tick` is due next; None if there is nothing to wait for."""
        since = next(iter(self._retrying.values()), None)
        due = (
            self.admission.next_expiry(),
            self.endpoints.next_return(),
            None if since is None else since + self.config.queue.timeout,
        )
        return min((moment for moment in due if moment is not None), default=None)

    def _judge_models(self, now: float) -> list[Action]:
        """See anew which models are served and by whom; who waited for another while nobody knew is told so."""
        known, self.models = bool(self.models), judge(self.config.models, self.endpoints)
        self._served = frozenset(self.models)
        self.endpoints.rely_on_who_is_left()
        actions: list[Action] = []
        if self.models and not known:
            actions = self._turn_away(now, self.admission.review(self._not_served))
        return actions + self._fill(now)

    def _not_served(self, request: Request) -> Refused | None:
        model = request.shape.model
        return None if not model or self.serves(model) else ModelNotFound.of(model, request.tenant)

    def _fill(self, now: float) -> list[Action]:
        """Dispatch while a slot is free and somebody waits, deciding anew for each (§7.1), till all is level (§2.5)."""
        actions: list[Action] = self._place_retries() if self._retrying else []
        while not self._level and (endpoint := choose(self.endpoints)) is not None:
            before = self.ordering.v
            decision = self.ordering.dispatch()
            if decision is None:
                self._level = not self.ordering.waiting and self.charging.begin_anew()
                if self._log and self.ordering.v != before:
                    self._log.reset(now, self.ordering.v)
                break
            actions.append(self._grant(now, decision, endpoint))
        return actions

    def _place_retries(self) -> list[Action]:
        """Those who had their turn go first, the oldest first, to endpoints that they have not failed on."""
        actions: list[Action] = []
        for request in list(self._retrying):
            if (endpoint := choose(self.endpoints, besides=request.tried)) is not None:
                del self._retrying[request]
                request.state = IN_FLIGHT
                request.slot = endpoint.take(request.estimate)
                request.tally.in_flight += 1
                actions.append(Grant(request, endpoint))
        return actions

    def _expire_retries(self, now: float) -> list[Action]:
        late = [request for request, since in self._retrying.items() if now >= since + self.config.queue.timeout]
        for request in late:
            del self._retrying[request]
        return [
            self._refuse(request, NoEndpoint("No other endpoint came free for another try. Retry later."))
            for request in late
        ]

    def _give_back(self, now: float, request: Request, slot: Slot, used: Used | None) -> None:
        slot.give_back()
        request.tally.gave_back()
        if self._log:
            self._log.complete(now, request.tenant, request.id, slot.endpoint.spec.id, used)

    def _grant(self, now: float, decision: Decision[Request], endpoint: Endpoint) -> Grant:
        request = decision.request
        request.state = IN_FLIGHT
        self.charging.charged(request, decision.cost)
        request.slot = endpoint.take(request.estimate)
        self._retry_budget.earn()
        request.dispatched = now
        request.waited = self.admission.dispatched(now, request)
        request.tally.dispatched(request, request.waited, decision.cost)
        if self._log:
            self._log.dispatch(now, decision, request.id, self.ordering.v, endpoint.spec.id, request.estimate)
        return Grant(request, endpoint)

    def _turn_away(self, now: float, turned_away: TurnedAway[Request]) -> list[Action]:
        """Refuse those who have lost their places."""
        for request, _ in turned_away:
            self._remove(now, request)
        return [self._refuse(request, refusal) for request, refusal in turned_away]

    def _refuse(self, request: Request, refusal: Refused) -> Refuse:
        request.state = DONE
        return Refuse(request, refusal)

    def _remove(self, now: float, request: Request) -> None:
        """Take a waiting request out of the order; no slot came free, so nothing is dispatched and no meter moves."""
        request.state = DONE
        self.ordering.remove(request.tenant, request)
        request.tally.counts.removed += 1
        if self._log:
            self._log.remove(now, request.tenant, request.id)

    def _reweigh(self, now: float, old: PoolConfig, new: PoolConfig) -> None:
        before, after = old.weights(), new.weights()
        for tenant in sorted(before.keys() | after.keys()):
            if before.get(tenant) != after.get(tenant):
                self.ordering.reweigh(tenant, after.get(tenant))
                if self._log:
                    self._log.weight(now, tenant, after.get(tenant, new.default_weight))
        if old.default_weight != new.default_weight:
            self.ordering.reweigh_default(new.default_weight)
            if self._log:
                self._log.weight(now, None, new.default_weight)
