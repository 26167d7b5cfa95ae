"""The engine's ASGI application: vLLM's paths over one runner, and the ways to make it fail.

Plain ASGI, for an engine shares its machine with others and each event should cost little. A request whose client
leaves is taken out of the model at once, whether it waits, runs, streams or is about to answer whole.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

from fairpool_lab.engine import answers, messages
from fairpool_lab.engine.answers import Chat, Completion, Dialect
from fairpool_lab.engine.faults import Fault, FaultBoard, Kind
from fairpool_lab.engine.generation import Generation
from fairpool_lab.engine.messages import Messages
from fairpool_lab.engine.metrics import CONTENT_TYPE, EngineMetrics
from fairpool_lab.engine.replies import JSON, Reply, Send, reply_for
from fairpool_lab.engine.requests import Ask, RequestReader
from fairpool_lab.engine.responses import Responses
from fairpool_lab.engine.runner import Runner
from fairpool_lab.engine.settings import EngineSettings
from fairpool_lab.engine.tokens import token_ids
from fairpool_lab.engine.wire import EXTENSION, Wire
from fairpool_lab.errors import FaultUnknown, Refusal

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

FAULT_HEADER = b"x-engine-fault"
LABEL_HEADER = b"x-engine-label"

_MESSAGES = "/v1/messages"

_STATUS_FAULTS = {
    Kind.TOO_MANY: (429, "Too many requests.", "RateLimitError"),
    Kind.ERROR: (500, "The simulated engine failed, as it was told to.", "InternalServerError"),
    Kind.UNAVAILABLE: (503, "The simulated engine is unavailable, as it was told to be.", "ServiceUnavailableError"),
}


class FaultOrder(msgspec.Struct):
    """The body of `POST /debug/faults`."""

    fault: str | None
    times: int | None = None
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class _Path:
    """A path that reads prompts: how its bodies are read, its ids begin, and its answers look."""

    read: Callable[[bytes], Ask]
    prefix: str
    dialect: Callable[[Ask, str, int], Dialect] | None


class _Request:
    """One HTTP request: its headers, its connection, and its body once read."""

    __slots__ = ("headers", "receive", "send", "wire")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.wire: Wire = scope["extensions"][EXTENSION]
        self.receive = receive
        self.send = send

    def header(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1")

    async def body(self) -> bytes | None:
        """The whole body; None if the client left before it was there."""
        message = await self.receive()
        if message["type"] == "http.request" and not message["more_body"]:
            return message["body"]  # type: ignore[no-any-return] # bytes, by ASGI
        chunks = []
        while message["type"] == "http.request":
            chunks.append(message["body"])
            if not message["more_body"]:
                return b"".join(chunks)
            message = await self.receive()
        return None


class EngineApp:
    """The application.

    Args:
        settings: what the engine was told.
        runner: its inside.
        faults: what is set to go wrong.
        set_fault: carries out an order of `/debug/faults`.
    """

    def __init__(
        self,
        settings: EngineSettings,
        runner: Runner,
        faults: FaultBoard,
        set_fault: Callable[[Fault | None, int | None, bool], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._runner = runner
        self._faults = faults
        self._set_fault = set_fault
        self._created = int(time.time())
        self._metrics = EngineMetrics(runner, settings.models[0])
        self._reader = reader = RequestReader(settings.models, settings.language, settings.limits.max_model_len)
        self._count = 0
        self._seed = settings.language.seed
        self._event_seconds = settings.tokens_per_event * settings.limits.step_base / settings.speed
        self._paths = {
            "/v1/chat/completions": _Path(reader.chat, "chatcmpl-", Chat),
            "/v1/completions": _Path(reader.completion, "cmpl-", Completion),
            "/v1/responses": _Path(reader.responses, "resp_", Responses),
            _MESSAGES: _Path(reader.messages, "chatcmpl-", Messages),
            "/v1/embeddings": _Path(reader.embedding, "embd-", None),
        }
        empty = (b"", b"text/plain")
        self._probes: dict[str, Callable[[], tuple[bytes, bytes]]] = {
            "/health": lambda: empty,
            "/ping": lambda: empty,
            "/version": lambda: (b'{"version":"%s"}' % answers.VERSION.encode(), JSON[1]),
            "/v1/models": lambda: (
                answers.models(settings.models, settings.limits.max_model_len, self._created),
                JSON[1],
            ),
            "/metrics": lambda: (self._metrics.render(), CONTENT_TYPE.encode()),
            "/debug/tokens": lambda: (msgspec.json.encode(runner.tokens()), JSON[1]),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = _Request(scope, receive, send)
        method: str = scope["method"]
        where: str = scope["path"]
        reply = Reply(send)
        try:
            if where.startswith("/v1/") and not self._is_authorized(request):
                await reply.whole(b'{"error":"Unauthorized"}', status=401)
            elif (path := self._paths.get(where)) is not None:
                await (self._answer(request, path) if method == "POST" else _method_not_allowed(reply, b"POST"))
            elif (probe := self._probes.get(where)) is not None:
                await (self._probe(request, where, probe) if method == "GET" else _method_not_allowed(reply, b"GET"))
            elif where == "/tokenize" and method == "POST":
                await self._tokenize(request, reply)
            elif where == "/debug/faults" and method == "POST":
                await self._order(request, reply)
            else:
                await reply.whole(b'{"detail":"Not Found"}', status=404)
        except Refusal as refusal:
            await reply.whole(_refusal(where, refusal), status=refusal.status)

    async def _answer(self, request: _Request, path: _Path) -> None:
        body = await request.body()
        if body is None:
            return
        fault = self._fault(request)
        if fault is not None and await self._fail(fault, request):
            return
        _check_content_type(request)
        ask = path.read(body)
        generation = self._runner.submit(ask, request.header(LABEL_HEADER) or ask.label)
        request.wire.watch(lambda: self._runner.abort(generation))
        self._count += 1
        reply = self._reply(fault, request)
        identity = path.prefix + (request.header(b"x-request-id") or self._identity())
        try:
            if path.dialect is None:
                await self._embed(reply, generation, identity)
            elif ask.stream:
                await _stream(reply, generation, path.dialect(ask, identity, int(time.time())))
            else:
                await _whole(reply, generation, path.dialect(ask, identity, int(time.time())))
        finally:
            request.wire.watch(None)
            self._runner.abort(generation)

    async def _embed(self, reply: Reply, generation: Generation, identity: str) -> None:
        await generation.progress()
        if not generation.gone:
            drawn = [choice.drawn for choice in generation.choices]
            await reply.whole(answers.embeddings(generation.ask, identity, int(time.time()), drawn))

    async def _probe(self, request: _Request, where: str, probe: Callable[[], tuple[bytes, bytes]]) -> None:
        fault = None if where.startswith("/debug/") else self._faults.take(probe=True)
        if fault is not None and await self._fail(fault, request):
            return
        body, content_type = probe()
        await self._reply(fault, request).whole(body, headers=((b"content-type", content_type),) if body else ())

    async def _tokenize(self, request: _Request, reply: Reply) -> None:
        body = await request.body()
        if body is None:
            return
        text, count = self._reader.tokenize(body)
        await reply.whole(
            msgspec.json.encode(
                {
                    "count": count,
                    "max_model_len": self._settings.limits.max_model_len,
                    "tokens": token_ids(text, count),
                    "token_strs": None,
                }
            )
        )

    async def _order(self, request: _Request, reply: Reply) -> None:
        body = await request.body()
        if body is None:
            return
        try:
            order = msgspec.json.decode(body, type=FaultOrder)
            fault = None if order.fault is None else Fault.parse(order.fault)
        except (msgspec.MsgspecError, FaultUnknown) as error:
            raise Refusal(400, str(error)) from None
        await self._set_fault(fault, order.times, order.everywhere)
        await reply.whole(msgspec.json.encode({"fault": None if fault is None else str(fault)}))

    def _fault(self, request: _Request) -> Fault | None:
        if named := request.header(FAULT_HEADER):
            try:
                return Fault.parse(named)
            except FaultUnknown as error:
                raise Refusal(400, str(error), param=FAULT_HEADER.decode()) from None
        return self._faults.take()

    async def _fail(self, fault: Fault, request: _Request) -> bool:
        """Do what goes wrong before there is an answer; returns whether that was all."""
        if fault.kind is Kind.REFUSE:
            await request.wire.reset()
            return True
        if fault.kind is Kind.HANG_BEFORE:
            return await request.wire.hang(fault.argument)
        if fault.kind in _STATUS_FAULTS:
            status, message, kind = _STATUS_FAULTS[fault.kind]
            headers = [JSON]
            if fault.argument is not None:
                headers.append((b"retry-after", f"{fault.argument:g}".encode()))
            await Reply(request.send).whole(answers.error(status, message, kind), status=status, headers=headers)
            return True
        return False

    def _reply(self, fault: Fault | None, request: _Request) -> Reply:
        return reply_for(fault, request.send, request.wire, self._seed + self._count, self._event_seconds)

    def _is_authorized(self, request: _Request) -> bool:
        key = self._settings.api_key
        return key is None or request.header(b"authorization") == f"Bearer {key}"

    def _identity(self) -> str:
        return blake2b(b"%d %d" % (self._seed, self._count), digest_size=8).hexdigest()


def _refusal(where: str, refusal: Refusal) -> bytes:
    if where == _MESSAGES:
        return messages.error(refusal.kind, refusal.message)
    return answers.error(refusal.status, refusal.message, refusal.kind, refusal.param)


async def _stream(reply: Reply, generation: Generation, dialect: Dialect) -> None:
    await reply.start()
    if opening := dialect.opening():
        await reply.write(opening, last=False)
    await generation.progress()
    events = dialect.begin()
    while not generation.gone:
        events += generation.events(dialect)
        if not generation.unfinished:
            await reply.write(events + dialect.end(generation.answered()), last=True)
            return
        if events:
            await reply.write(events, last=False)
        await generation.progress()
        events = b""


async def _whole(reply: Reply, generation: Generation, dialect: Dialect) -> None:
    await generation.progress()
    if not generation.gone:
        await reply.whole(dialect.whole(generation.answered()))


async def _method_not_allowed(reply: Reply, allowed: bytes) -> None:
    await reply.whole(b'{"detail":"Method Not Allowed"}', status=405, headers=((b"allow", allowed), JSON))


def _check_content_type(request: _Request) -> None:
    media_type = request.header(b"content-type").partition(";")[0].strip().lower()
    if media_type != "application/json":
        message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
        raise Refusal(400, message, kind="Bad Request")
