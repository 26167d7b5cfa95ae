"""The hot path: an ASGI callable in front of FastAPI that takes a tenant's request to an endpoint and back.

What always holds, on every way out: the slot is given back once, the upstream exchange is closed, and the tenant gets
either the endpoint's answer byte for byte or a refusal in the documented form. Nothing is queued and no state is made
before credential, body and model are found good. A tenant that leaves ends its request at once, waiting or running.
A request that is cancelled for any other reason has outlasted the time in which the gateway drains: its tenant is told.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import partial
from typing import Any

from fairpool_gateway.app import headers
from fairpool_gateway.app.answers import Answer
from fairpool_gateway.app.attempts import answer
from fairpool_gateway.app.connection import connection_of
from fairpool_gateway.app.dialect import Dialect, dialect_of
from fairpool_gateway.app.events import WholeEvents, can_be_appended_to
from fairpool_gateway.app.gateway import Gateway
from fairpool_gateway.app.routes import INTERNAL_ERROR
from fairpool_gateway.app.shutdown import DRAINING, SERVING, closing
from fairpool_gateway.cost import Api, Shape, read_shape
from fairpool_gateway.dispatcher import Request
from fairpool_gateway.endpoints import Endpoint
from fairpool_gateway.errors import (
    Draining,
    InternalError,
    ModelNotFound,
    PoolSuspended,
    Refused,
    TenantGone,
    UpstreamError,
)
from fairpool_gateway.tallies import ANSWER_BROKEN, ANSWERED, TENANT_GONE
from fairpool_gateway.tracing import Trace
from fairpool_gateway.upstream import Response, Timeouts, request_head
from fairpool_gateway.usage import UsageReader, usage_reader

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger(__name__)


class Proxy:
    """Takes the requests for the paths that reach endpoints; hands everything else on to `others`."""

    def __init__(self, gateway: Gateway, others: AsgiApp) -> None:
        self._gateway = gateway
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One ASGI request."""
        shutdown = self._gateway.shutdown
        if shutdown.phase is not SERVING:
            shutdown.arrived()
            send = closing(send)
        if scope["type"] == "http" and scope["method"] == "POST" and (api := self._gateway.apis.get(scope["path"])):
            await _Exchange(self._gateway, api, scope, receive, send).run()
        else:
            await self._others(scope, receive, send)


class _Exchange:
    """One tenant's request, from its headers to the last byte of its answer."""

    def __init__(self, gateway: Gateway, api: Api, scope: Scope, receive: Receive, send: Send) -> None:
        self._gateway = gateway
        self._api = api
        self._scope = scope
        self._receive = receive
        self._send = send
        self._dialect = dialect_of(scope["path"])
        self._connection = connection_of(scope)
        self._tenant_left = False
        self._made_id = gateway.new_request_id()
        self._id = headers.request_id(scope["headers"], self._made_id)
        self._tenant: str | None = None
        self._request: Request | None = None
        self._body = b""
        self._status = 0
        self._trace: Trace | None = None
        if gateway.tracing is not None:
            self._trace = gateway.tracing.begin(scope["headers"], api, scope["path"], self._id)

    async def run(self) -> None:
        """Answer the tenant, whatever happens."""
        outcome = Draining.reason
        try:
            outcome = await self._serve()
        except TenantGone:
            outcome = TENANT_GONE
            self._count(outcome)
        except Refused as refusal:
            outcome = refusal.reason
            await self._refuse(refusal)
        except asyncio.CancelledError:
            await self._fail(Draining.now())
        except Exception:
            outcome = InternalError.reason
            log.exception("a fault of the gateway ended request %s", self._id.decode())
            await self._fail(InternalError(INTERNAL_ERROR))
        finally:
            if self._trace is not None:
                self._trace.end(self._tenant, outcome, self._status)

    async def _serve(self) -> str:
        """Have an endpoint answer; returns how that ended."""
        gateway, scope = self._gateway, self._scope
        if gateway.shutdown.phase is DRAINING:
            raise Draining.now()
        tenant = self._tenant = gateway.identify(scope["headers"])
        if gateway.config.suspend:
            raise PoolSuspended.of(gateway.config.pool)
        shape = await self._read_body(tenant)
        if not gateway.broker.dispatcher.serves(shape.model) and (shape.model or self._api is not Api.EXTRA):
            raise ModelNotFound.of(shape.model, tenant)
        request = self._request = Request(self._made_id, tenant, shape, len(self._body), self._id)
        if self._trace is not None:
            self._trace.waits(request)
        task = asyncio.current_task(gateway.loop)
        assert task is not None
        self._connection.watch(partial(self._leave, task))
        try:
            endpoint = await gateway.broker.acquire(request)
            return await self._forward(request, endpoint)
        except asyncio.CancelledError:
            if not self._tenant_left:
                raise
            task.uncancel()
            raise TenantGone from None
        finally:
            self._connection.watch(None)
            gateway.broker.complete(request, None)

    async def _read_body(self, tenant: str) -> Shape:
        """Have the body, and return what it says about its cost."""
        bodies, config, given = self._gateway.bodies, self._gateway.config, self._scope["headers"]
        read = partial(read_shape, self._api, may_overtake=config.overtaking == "Allow")
        most = config.queue.max_request_bytes
        body = self._connection.body_at_hand()
        if body is not None:
            self._body = body
            return bodies.at_hand(body, given, read=read, most=most)
        receive = self._connection.in_time(self._receive)
        self._body, shape = await bodies.read(tenant, given, receive, read=read, most=most)
        return shape

    def _leave(self, task: asyncio.Task[Any]) -> None:
        """The tenant's connection closed: end whatever is being done for it."""
        self._tenant_left = True
        task.cancel()

    async def _forward(self, request: Request, endpoint: Endpoint) -> str:
        """Send the request to its endpoint, or where that fails to others, and pass the answer on."""
        gateway, path, timeouts, trace = self._gateway, self._target(), self._timeouts(request.shape), self._trace

        async def send(to: Endpoint) -> Response:
            target, body = gateway.target_of(to.spec), self._body
            sent = headers.for_endpoint(
                self._scope["headers"], target.authority.encode(), len(body), self._id, gateway.credential
            )
            if trace is None:
                head = request_head(b"POST", path, sent)
                return await gateway.client.send(target, head, body, timeouts, once=request.lost)
            head = request_head(b"POST", path, trace.sends(to.spec, sent))
            try:
                response = await gateway.client.send(target, head, body, timeouts, once=request.lost)
            except UpstreamError as error:
                trace.failed(error)
                raise
            trace.answered(response.status)
            return response

        response = await answer(gateway.broker, request, endpoint, send)
        self._body = b""  # It is sent to nobody else from now on, and the answer may take its time.
        try:
            return await self._pass_on(request, response)
        finally:
            response.close()

    async def _pass_on(self, request: Request, response: Response) -> str:
        """The answer as it comes; one that breaks ends so that the tenant notices. Returns which of both it did."""
        events = WholeEvents() if can_be_appended_to(response.headers) else None
        self._status = response.status
        answer_headers = headers.for_tenant(
            response.headers, self._id, self._dialect.id_headers, status=response.status
        )
        answer_headers.append((b"server-timing", self._timing(request)))
        # The slot goes back at the endpoint's last byte, whether a slow tenant has taken it or not.
        reader = self._usage_reader(response)
        response.watch(reader.feed, lambda: self._ended(request, response, reader))
        await self._connection.drained()
        # The first byte of the body is here already, or its end: no head waits longer than for what is done with that.
        leaving = self._gateway.shutdown.phase is not SERVING
        passed_on = self._connection.answer(response.status, answer_headers, close=leaving)

        def take(data: bytes) -> bool:
            last = response.complete
            if events is not None:
                data = events.last(data) if last else events.take(data)
            if data or last:
                passed_on.piece(data, last=last)
            else:
                passed_on.release()
            return self._connection.takes_more

        try:
            while not await response.pass_to(take):
                await self._connection.drained()
        except UpstreamError as error:
            endpoint = request.slot and request.slot.endpoint.spec.id
            given_id = self._id.decode()
            fields = {"request": given_id, "tenant": request.tenant, "endpoint": endpoint}
            log.warning("the answer to %s broke on %s: %s", given_id, endpoint, error, extra=fields)
            return await self._break_off(passed_on, events, str(error))
        except asyncio.CancelledError:
            if self._tenant_left:
                raise
            return await self._break_off(passed_on, events, "this gateway shut down before its end")
        request.tally.outcomes[ANSWERED] += 1
        return ANSWERED

    async def _break_off(self, passed_on: Answer, events: WholeEvents | None, why: str) -> str:
        """End an answer that has no end, so that its tenant notices."""
        self._count(ANSWER_BROKEN)
        self._connection.watch(None)
        if events is None:
            await self._connection.cut()
        else:
            passed_on.piece(events.broken(self._dialect.broken(f"The stream broke: {why}")), last=True)
        return ANSWER_BROKEN

    def _usage_reader(self, response: Response) -> UsageReader:
        content_type = headers.first(response.headers, b"content-type") or b""
        content_encoding = headers.first(response.headers, b"content-encoding") or b""
        return usage_reader(content_type, content_encoding)

    def _ended(self, request: Request, response: Response, reader: UsageReader) -> None:
        """The endpoint sent its last byte, or broke off."""
        used = seen = None
        broker = self._gateway.broker
        if response.status == 200:
            reading = reader.finish()
            seen = reading.used or broker.dispatcher.estimator.from_events(
                request.tenant, request.shape, reading.events
            )
            if response.complete:
                if reading.aborted:
                    self._tell_aborted(request)
                if reading.aborted or not reading.failed:
                    broker.ended(request, aborted=reading.aborted)
                if not reading.failed:
                    used = seen
        if self._trace is not None:
            self._trace.finished(used)
        broker.complete(request, used, seen=seen)

    def _tell_aborted(self, request: Request) -> None:
        endpoint = request.slot and request.slot.endpoint.spec.id
        given_id = self._id.decode()
        fields = {"request": given_id, "tenant": request.tenant, "endpoint": endpoint}
        log.warning("endpoint %s gave up its answer to request %s", endpoint, given_id, extra=fields)

    def _count(self, outcome: str) -> None:
        self._gateway.tally_of(self._tenant).outcomes[outcome] += 1

    async def _refuse(self, refusal: Refused) -> None:
        self._gateway.refused(refusal, self._tenant, self._id)
        self._status = refusal.status
        more = [] if self._request is None else [(b"server-timing", self._timing(self._request))]
        await send_refusal(self._send, refusal, self._id, self._dialect, more)

    async def _fail(self, refusal: Refused) -> None:
        """End what the gateway cannot finish: with an answer, or where one has begun by breaking it off."""
        if self._status:
            self._count(refusal.reason)
            await self._connection.cut()
        else:
            await self._refuse(refusal)

    def _timing(self, request: Request) -> bytes:
        """For how many ms the request waited in the queue, and how long it took from its slot to the first byte."""
        now = self._gateway.loop.time()
        if request.dispatched is None:
            return b"queue;dur=%d" % int(1000 * (now - request.arrived))
        return b"queue;dur=%d, engine;dur=%d" % (int(1000 * request.waited), int(1000 * (now - request.dispatched)))

    def _target(self) -> bytes:
        """The path as it was found to be allowed, not as it was written, and the query without credentials."""
        query = headers.query_for_endpoint(self._scope["query_string"], self._scope["headers"])
        path = self._scope["path"].encode()
        return b"%b?%b" % (path, query) if query else path

    def _timeouts(self, shape: Shape) -> Timeouts:
        timeouts = self._gateway.config.timeouts
        return Timeouts(
            connect=timeouts.connect,
            first_byte=timeouts.first_byte if shape.stream else timeouts.first_byte_unary,
            idle=timeouts.idle,
        )


async def send_refusal(
    send: Send, refusal: Refused, request_id: bytes, dialect: Dialect, more: Iterable[tuple[bytes, bytes]]
) -> None:
    """Answer with a refusal, in the form that the tenant's client reads, and with more headers than its own."""
    body = dialect.refusal(refusal)
    await send(
        {
            "type": "http.response.start",
            "status": refusal.status,
            "headers": [
                *refusal.headers(spread=random.random()),  # noqa: S311 - guards nothing
                *((name, request_id) for name in dialect.id_headers),
                (b"content-length", b"%d" % len(body)),
                *more,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})
