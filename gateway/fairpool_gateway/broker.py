"""The broker: carries events and actions between asyncio tasks and the dispatcher.

Every call runs on one event loop and to its end, so there are no locks. A task that waits for a slot holds one future
and nothing else: no polling, and one timer for the whole queue. What always holds: a request that entered leaves, by
`complete`, by cancellation of the task that waits, or by a refusal; a grant that crosses a cancellation is given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from fairpool_gateway.admission import Upload
from fairpool_gateway.config import PoolConfig
from fairpool_gateway.cost import Used
from fairpool_gateway.dispatcher import Action, Dispatcher, Grant, Request
from fairpool_gateway.endpoints import Endpoint, EndpointSpec
from fairpool_gateway.health import SUSPICIOUS
from fairpool_gateway.request import DONE


class Broker:
    """One pool's dispatcher on the running event loop."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self._loop = asyncio.get_running_loop()
        self._waiters: dict[Request, asyncio.Future[Endpoint]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def receive(self, upload: Upload, piece: bytes) -> None:
        """Keep a piece of a body on its way in; the caller must `release` the upload.

        Raises:
            Refused: there is no room for it, or others needed it more: the upload is over.
        """
        self._carry_out(self.dispatcher.receive(self._loop.time(), upload, piece))
        if upload.refusal is not None:
            raise upload.refusal

    def release(self, upload: Upload) -> None:
        """The body has come, or never will."""
        self.dispatcher.release(upload)

    async def acquire(self, request: Request) -> Endpoint:
        """Wait for a slot, and return the endpoint it is on; the caller must `complete` the request.

        Raises:
            Refused: it may not wait, or waited too long.
        """
        return await self._wait(request, self.dispatcher.arrive(self._loop.time(), request))

    async def retry(self, request: Request, *, lost: bool) -> Endpoint:
        """Give up the attempt in flight, which `may_retry` allowed, and wait for a slot on another endpoint.

        Raises:
            Refused: none came free in time; the request is over.
        """
        return await self._wait(request, self.dispatcher.retry(self._loop.time(), request, lost=lost))

    def may_retry(self, request: Request, *, lost: bool) -> bool:
        """Whether the attempt in flight may be repeated elsewhere; `lost`: after all of the request was sent."""
        return self.dispatcher.may_retry(request, lost=lost)

    def connect_failed(self, request: Request) -> None:
        """No connection to the request's endpoint could be made."""
        self._carry_out(self.dispatcher.connect_failed(self._loop.time(), request))
        self._arm()

    def answered(self, request: Request, status: int) -> None:
        """The request's endpoint began to answer, or failed to, which its tenant sees as a 502 or a 504."""
        self._carry_out(self.dispatcher.answered(self._loop.time(), status, request))
        if status in SUSPICIOUS:
            self._arm()

    def ended(self, request: Request, *, aborted: bool) -> None:
        """The request's endpoint brought its answer to an end, or gave it up."""
        self._carry_out(self.dispatcher.ended(self._loop.time(), request, aborted=aborted))
        if aborted:
            self._arm()

    def probed(self, endpoint: Endpoint, status: int | None) -> None:
        """An endpoint answered its probe, or with None did not."""
        self._carry_out(self.dispatcher.probed(self._loop.time(), endpoint, status))
        self._arm()

    def listed(self, endpoint: Endpoint, models: frozenset[str] | None) -> None:
        """An endpoint said which models it serves, or with None did not."""
        self._carry_out(self.dispatcher.listed(self._loop.time(), endpoint, models))

    def complete(self, request: Request, used: Used | None, *, seen: Used | None = None) -> None:
        """The request needs its place or its slot no longer; only the first call counts.

        `seen` is what one without `used` was seen to use, before it failed or its client left.
        """
        if request.state is DONE:
            return
        now = self._loop.time()
        if used is None:
            self._carry_out(self.dispatcher.cancel(now, request, seen=seen))
        else:
            self._carry_out(self.dispatcher.complete(now, request, used))

    def replace_endpoints(self, specs: Iterable[EndpointSpec]) -> None:
        """These are the endpoints from now on."""
        self._carry_out(self.dispatcher.replace_endpoints(self._loop.time(), specs))

    def configure(self, config: PoolConfig) -> None:
        """These are the rules from now on."""
        self._carry_out(self.dispatcher.configure(self._loop.time(), config))
        self._arm()

    def close(self) -> None:
        """Stop the timer; whatever still waits is the business of its own task."""
        if self._timer is not None:
            self._timer.cancel()

    async def _wait(self, request: Request, actions: list[Action]) -> Endpoint:
        """Carry out what an event brought, and wait until something is done about the request."""
        if len(actions) == 1 and (action := actions[0]).request is request:
            if isinstance(action, Grant):
                return action.endpoint
            raise action.refusal
        waiter: asyncio.Future[Endpoint] = self._loop.create_future()
        self._waiters[request] = waiter
        self._carry_out(actions)
        if waiter.done():
            return waiter.result()
        self._arm()
        try:
            return await waiter
        except asyncio.CancelledError:
            self._waiters.pop(request, None)
            if not waiter.cancelled():
                waiter.exception()  # A refusal crossed the cancellation; nobody is left to be told.
            self.complete(request, None)
            raise

    def _carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            waiter = self._waiters.pop(action.request, None)
            if waiter is None or waiter.done():
                continue
            if isinstance(action, Grant):
                waiter.set_result(action.endpoint)
            else:
                waiter.set_exception(action.refusal)

    def _arm(self) -> None:
        """Have one timer running while anything is due; it may fire early, never late."""
        due = self.dispatcher.next_tick()
        if due is None or (self._timer is not None and self._timer.when() <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._carry_out(self.dispatcher.tick(self._loop.time()))
        self._arm()
