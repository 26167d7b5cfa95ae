"""Neither a prompt nor a key is ever in what the gateway shows: not in logs, decisions, metrics, debug pages or spans.

One gateway gets every kind of refusal and failure, with marks as prompts, keys, and as whatever else a tenant may
choose freely; then all that it said is searched for the marks.
"""

import asyncio
import contextlib
import io
import json
import logging

import pytest
from support.config import digest_of, key_of
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, until
from support.tenant import QUESTION, pool_over, request_bytes, wire
from support.traces import collector

from fairpool_gateway import errors
from fairpool_gateway.app import protocol, proxy
from fairpool_gateway.app.shutdown import Phase
from fairpool_gateway.decision_log import DecisionLog
from fairpool_gateway.logs import CollapsingHandler, JsonFormatter, TextFormatter, log_unhandled
from fairpool_gateway.tracing import configured

PROMPT = "MARK-PROMPT"
KEY = "MARK-KEY"
ENGINES_OWN = "MARK-ENGINE-CREDENTIAL"
ANSWER = "MARK-ANSWER"
MODEL = "MARK-UNKNOWN-MODEL"
PATH = "MARK-PATH"
TENANT = "MARK-UNKNOWN-TENANT"
MARKS = (PROMPT, KEY, ENGINES_OWN, ANSWER, MODEL, PATH, TENANT)

TENANTS = [
    {"name": "a", "keys": [{"name": "k", "digest": digest_of(KEY)}]},
    {"name": "b"},
    {"name": "gone", "suspend": True, "keys": [{"digest": digest_of(KEY + "-suspended")}]},
    {"name": "old", "keys": [{"digest": digest_of(KEY + "-old"), "notAfter": "2020-01-01T00:00:00Z"}]},
]


def body(**fields):
    return json.dumps(
        {**QUESTION, "messages": [{"role": "user", "content": PROMPT}], "user": PROMPT, **fields}
    ).encode()


def ask(content=None, *headers, key=KEY, **options):
    """One request with marks all over it; a `key` of None sends none."""
    credential = [] if key is None else [b"Authorization: Bearer " + key.encode()]
    content = body() if content is None else content
    return request_bytes(content, *credential, b"x-note: " + PROMPT.encode(), *headers, name=None, **options)


@contextlib.contextmanager
def logged():
    """Everything that is logged, in both forms; held back lines too."""
    streams = io.StringIO(), io.StringIO()
    handlers = [CollapsingHandler(stream) for stream in streams]
    for handler, formatter in zip(handlers, (TextFormatter(), JsonFormatter()), strict=True):
        handler.setFormatter(formatter)
        logging.getLogger().addHandler(handler)
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.DEBUG)
    said = []
    try:
        yield said
    finally:
        logging.getLogger().setLevel(level)
        for handler in handlers:
            logging.getLogger().removeHandler(handler)
            handler.close()
        said += [stream.getvalue() for stream in streams]


async def refusals(gateway):
    """What is refused before an endpoint hears of it."""
    for request in (
        ask(key=None),
        ask(key=KEY + "-wrong"),
        ask(key=KEY + "-old"),
        ask(key=KEY + "-suspended"),
        ask(None, b"x-api-key: " + key_of("b").encode()),
        ask(body(model=MODEL)),
        ask(body(model=[PROMPT])),
        ask(PROMPT.encode()),
        ask(b"[" + body() + b"]"),
        ask(None, b"Content-Encoding: gzip"),
        ask(b"", b"x-long: " + PROMPT.encode() * 6000, framing=b"Expect: nothing"),
        ask(body(messages=[{"role": "user", "content": PROMPT * 1000}])),
        ask(target=f"/v1/{PATH}?key={KEY}"),
        ask(target=f"/v1/../{PATH}"),
    ):
        async with wire(gateway) as line:
            await line.send(request)
            assert 400 <= (await line.answer())[0] <= 499


async def failures(gateway, endpoint):
    """What goes wrong with endpoints and tenants once a request is sent on."""
    mark = ANSWER.encode()
    head = b"HTTP/1.1 200 OK\r\nX-Note: %b\r\n" % mark
    stream = head + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    whole = head + b"Content-Type: application/json\r\nContent-Length: 24\r\n\r\n"
    broken = {
        "closed at once": b"",
        "no HTTP": mark + b" \x00\r\n\r\n",
        "a bad header": b"HTTP/1.1 200 OK\r\n%b\x01: 1\r\n\r\n" % mark,
        "too short": head + b"Content-Length: 99\r\n\r\n" + mark,
        "a bad chunk": head + b"Transfer-Encoding: chunked\r\n\r\n" + mark,
        "half a stream": stream + b"63\r\ndata: " + mark,
        "an error": b"HTTP/1.1 500 %b\r\nContent-Length: 11\r\n\r\n%b" % (mark, mark),
        "odd usage": whole + b'{"usage": "%b"}' % mark,
    }
    for answer in broken.values():
        async with wire(gateway) as line:
            await line.send(ask())
            peer = await endpoint.accept()
            await peer.request()
            if answer:
                await peer.send(answer)
            peer.end()
            await line.send(b"")
            await until(lambda: gateway.in_flight == 0)
            await line.until(b"\r\n\r\n")
    async with wire(gateway) as line:
        await line.send(ask())
        peer = await endpoint.accept()
        await peer.request()
        line.leave()
        await peer.gone()
        await until(lambda: gateway.in_flight == 0)
    async with wire(gateway) as line:
        await line.send(b"POST " + PROMPT.encode() + b" HTTP/9.9\r\n" + KEY.encode() + b"\r\n\r\n")
        await line.rest()


async def faults(gateway, monkeypatch):
    """Faults of the gateway, whose exceptions hold what they failed on."""

    def fail(*about, **_):
        raise ValueError(*about, PROMPT, KEY)

    with monkeypatch.context() as patched:
        patched.setattr(proxy, "read_shape", fail)
        async with wire(gateway) as line:
            await line.send(ask())
            assert (await line.answer())[0] == 500
    loop = asyncio.get_running_loop()
    handler, failed = loop.get_exception_handler(), asyncio.Event()
    loop.set_exception_handler(lambda *about: (log_unhandled(*about), failed.set()))
    loop.call_soon(fail, PROMPT)
    await failed.wait()
    loop.set_exception_handler(handler)


async def too_slow(gateway, monkeypatch):
    """A body that stops coming."""
    with monkeypatch.context() as patched:
        patched.setattr(protocol, "BODY_SECONDS", 0.1)
        async with wire(gateway) as line:
            await line.send(ask()[:-5])
            assert (await line.answer())[0] == 408


async def queued(gateway, endpoint):
    """What waits in vain: too many, and too long."""
    async with contextlib.AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(wire(gateway)) for _ in range(3)]
        for line in lines[:2]:
            await line.send(ask())
        peer = await endpoint.accept()
        await peer.request()
        await lines[2].send(ask())
        assert [(await lines[number].answer())[0] for number in (2, 1)] == [429, 429]
        await peer.answer(ANSWER.encode())
        await lines[0].answer()
        peer.end()


async def edited(gateway, endpoint, pool):
    """What is refused under other configurations, and in the end."""
    trusted = {"type": "TrustedHeader", "header": "x-tenant", "proxyCredential": {"digest": digest_of(KEY)}}
    names = [b"x-fairpool-proxy-credential: " + KEY.encode(), b"x-tenant: " + TENANT.encode()]
    for config, headers in (
        (pool(), ()),
        (pool(authentication=trusted, tenants=[{"name": each["name"]} for each in TENANTS]), names),
        (pool(endpoint, suspend=True), ()),
        (pool(endpoint), ()),
    ):
        gateway.gateway.apply(config)
        async with wire(gateway) as line:
            await line.send(ask(None, *headers))
            await line.answer()
    gateway.gateway.shutdown.phase = Phase.DRAINING
    async with wire(gateway) as line:
        await line.send(ask())
        await line.answer()


@pytest.mark.parametrize("traced", [False, True], ids=["", "traced"])
async def test_no_mark_is_anywhere(traced, monkeypatch, caplog):
    monkeypatch.setenv("ENGINE_KEY", ENGINES_OWN)
    decisions = []

    def pool(*endpoints, **fields):
        common = {
            "tenants": TENANTS,
            "slots": {"perEndpoint": 1},
            "queue": {"timeout": "200ms", "maxRequestBytes": 10_000, "perTenant": {"maxRequests": 1}},
            "timeouts": {"firstByteUnary": "600ms"},
            "endpointCredential": {"fromEnvironment": "ENGINE_KEY"},
        }
        return pool_over(*endpoints, **{**common, **fields})

    with collector() as received, logged() as said:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization={KEY}")
        tracing = configured({"OTEL_EXPORTER_OTLP_ENDPOINT": received.url}, "llama") if traced else None
        async with ScriptedEndpoint.listening() as endpoint:
            config = pool(endpoint)
            log = DecisionLog(decisions.append, pool="llama", weights=config.weights(), default_weight=100)
            async with running_gateway(config, log=log, tracing=tracing) as gateway:
                await refusals(gateway)
                await too_slow(gateway, monkeypatch)
                await queued(gateway, endpoint)
                await failures(gateway, endpoint)
                await faults(gateway, monkeypatch)
                await edited(gateway, endpoint, pool)
                pages = ("/metrics", "/debug/pool", "/debug/tenants", "/debug/requests", "/debug/keys", "/readyz")
                shown = [(await gateway.admin(page)).text for page in pages]
                outcomes = gateway.outcomes
    caplog.clear()
    kinds = {kind.reason for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "reason")}
    assert kinds | {"answered", "answer_broken", "tenant_gone"} == set(outcomes)
    everything = {
        "logs": "".join(said),
        "decisions": b"".join(decisions).decode(),
        "pages": "".join(shown),
        "spans": b"".join(received.raw).decode("latin-1"),
    }
    assert "internal_error" in everything["pages"]
    assert "was refused: queue_full" in everything["logs"]
    assert "ValueError" in everything["logs"]
    assert '"event":"dispatch"' in everything["decisions"]
    assert ("fairpool.reason" in everything["spans"]) == traced
    for where, text in everything.items():
        for mark in MARKS:
            assert mark not in text, where


def test_a_mark_would_be_found():
    with logged() as said:
        logging.getLogger("any").info("asked %s", PROMPT)
    assert all(PROMPT in text for text in said)
