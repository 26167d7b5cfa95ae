"""Spans, as an OTLP receiver gets them: three for a request, the engine below the last, and none where nobody asks."""

import asyncio
import contextlib
import json
import re
import subprocess
import sys

import openai
import pytest
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, refusing_port, until
from support.tenant import QUESTION, pool_over, request_bytes, tenant, wire
from support.traces import collector

from fairpool_gateway.tracing import configured

TRACE_ID, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = b"traceparent: 00-%s-%s-01" % (TRACE_ID.encode(), CALLER.encode())


@contextlib.asynccontextmanager
async def traced(config, monkeypatch, **environment):
    """A gateway whose spans are all in the collector once the block has ended."""
    with collector() as received:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": received.url, **environment}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        tracing = configured(environment, config.pool)
        assert tracing is not None
        async with running_gateway(config, tracing=tracing) as gateway:
            yield gateway, received


def traceparent(head):
    """Trace, parent and flags in what an endpoint got."""
    return re.search(rb"^traceparent: 00-(\w{32})-(\w{16})-(\w\w)\r$", head, re.MULTILINE | re.IGNORECASE).groups()


class TestARequest:
    async def test_has_a_span_of_its_own_one_for_its_wait_and_one_for_the_engine(self, monkeypatch):
        async with running_engine() as engine:
            async with traced(pool_over(engine.url), monkeypatch) as (gateway, received), tenant(gateway) as client:
                answer = await client.chat.completions.with_raw_response.create(**QUESTION)
            used = answer.parse().usage
            request, queue, upstream = (received.named(n) for n in ("POST /v1/chat/completions", "queue", "chat sim"))
            assert [span.kind for span in (request, queue, upstream)] == ["server", "internal", "client"]
            assert {span.trace_id for span in received.spans} == {request.trace_id}
            assert (request.parent_id, queue.parent_id, upstream.parent_id) == ("", request.span_id, request.span_id)
            assert request.start <= queue.start <= queue.end <= upstream.start < upstream.end <= request.end
            assert request.attributes == {
                "http.request.method": "POST",
                "http.route": "/v1/chat/completions",
                "http.response.status_code": 200,
                "fairpool.pool": "llama",
                "fairpool.tenant": "a",
                "fairpool.request_id": answer.headers["x-request-id"],
                "fairpool.reason": "answered",
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "sim",
                "gen_ai.usage.input_tokens": used.prompt_tokens,
                "gen_ai.usage.output_tokens": used.completion_tokens,
            }
            assert queue.attributes.keys() == {"fairpool.tenant", "fairpool.cost"}
            (endpoint,) = gateway.dispatcher.endpoints
            assert upstream.attributes == {
                "http.response.status_code": 200,
                "server.address": endpoint.spec.host,
                "server.port": endpoint.spec.port,
                "fairpool.tenant": "a",
                "fairpool.endpoint": endpoint.spec.id,
                "fairpool.attempt": 1,
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "sim",
                "gen_ai.request.stream": False,
                "gen_ai.request.max_tokens": QUESTION["max_tokens"],
                "gen_ai.usage.input_tokens": used.prompt_tokens,
                "gen_ai.usage.output_tokens": used.completion_tokens,
            }
            assert upstream.events == ["first byte"]
            assert not any(span.failed for span in received.spans)

    async def test_of_a_stream_ends_with_its_last_byte(self, monkeypatch):
        async with ScriptedEndpoint.listening() as endpoint:
            async with traced(pool_over(endpoint), monkeypatch) as (gateway, received), wire(gateway) as line:
                await line.send(request_bytes(json.dumps({**QUESTION, "stream": True}).encode()))
                peer = await endpoint.accept()
                await peer.request()
                await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
                await line.until(b"a\r\n")
                await asyncio.sleep(0.05)
                await peer.send(b"0\r\n\r\n")
                await line.until(b"0\r\n\r\n")
            for name in ("chat sim", "POST /v1/chat/completions"):
                assert received.named(name).end - received.named(name).start >= 50_000_000

    async def test_is_the_service_that_the_environment_names(self, monkeypatch):
        for environment, name in ({}, "fairpool-gateway"), ({"OTEL_SERVICE_NAME": "llama-gateway"}, "llama-gateway"):
            async with traced(pool_over(), monkeypatch, **environment) as (gateway, received), wire(gateway) as line:
                await line.send(request_bytes(name=None))
                await line.head()
            assert received.spans[0].resource["service.name"] == name


class TestTheEngine:
    async def test_is_told_that_its_parent_is_the_exchange_with_it(self, monkeypatch):
        async with ScriptedEndpoint.listening() as endpoint:
            async with traced(pool_over(endpoint), monkeypatch) as (gateway, received), wire(gateway) as line:
                await line.send(request_bytes(None, PARENT, b"tracestate: vendor=1"))
                peer = await endpoint.accept()
                head, _ = await peer.request()
                await peer.answer()
                await line.answer()
            upstream = received.named("chat sim")
            assert traceparent(head) == (TRACE_ID.encode(), upstream.span_id.encode(), b"01")
            assert head.lower().count(b"traceparent:") == 1
            assert b"tracestate: vendor=1\r\n" in head
            request = received.named("POST /v1/chat/completions")
            assert (request.trace_id, request.parent_id) == (TRACE_ID, CALLER)

    @pytest.mark.parametrize(
        "headers",
        [(b"traceparent: nonsense", b"tracestate: vendor=1"), (PARENT, PARENT, b"tracestate: vendor=1")],
        ids=["nonsense", "twice"],
    )
    async def test_gets_a_trace_of_ours_where_the_callers_cannot_be_read(self, headers, monkeypatch):
        async with ScriptedEndpoint.listening() as endpoint:
            async with traced(pool_over(endpoint), monkeypatch) as (gateway, received), wire(gateway) as line:
                await line.send(request_bytes(None, *headers))
                peer = await endpoint.accept()
                head, _ = await peer.request()
                await peer.answer()
                await line.answer()
            assert received.named("POST /v1/chat/completions").parent_id == ""
            assert traceparent(head)[0].decode() == received.spans[0].trace_id != TRACE_ID
            assert b"tracestate" not in head.lower()

    async def test_is_told_not_to_record_what_the_caller_does_not_record(self, monkeypatch):
        async with ScriptedEndpoint.listening() as endpoint:
            async with traced(pool_over(endpoint), monkeypatch) as (gateway, received), wire(gateway) as line:
                await line.send(request_bytes(None, PARENT[:-2] + b"00"))
                peer = await endpoint.accept()
                head, _ = await peer.request()
                await peer.answer()
                await line.answer()
            assert traceparent(head)[::2] == (TRACE_ID.encode(), b"00")
            assert received.spans == []

    @pytest.mark.parametrize("headers", [(PARENT, b"tracestate: a=1,b=2"), (b"traceparent: nonsense",), ()])
    async def test_gets_what_the_tenant_sent_where_nobody_traces(self, headers):
        async with ScriptedEndpoint.listening() as endpoint, running_gateway(pool_over(endpoint)) as gateway:
            async with wire(gateway) as line:
                await line.send(request_bytes(None, *headers))
                peer = await endpoint.accept()
                head, _ = await peer.request()
                await peer.answer()
                await line.answer()
            lines = [line for line in head.split(b"\r\n") if line.lower().startswith(b"trace")]
            assert lines == list(headers)


class TestFailures:
    async def test_a_refusal_is_one_span_with_its_reason(self, monkeypatch):
        async with traced(pool_over(), monkeypatch) as (gateway, received), tenant(gateway) as client:
            with pytest.raises(openai.NotFoundError):
                await client.chat.completions.create(**{**QUESTION, "model": "unknown"})
        (span,) = received.spans
        assert (span.attributes["fairpool.reason"], span.attributes["fairpool.tenant"]) == ("model_not_found", "a")
        assert span.attributes["http.response.status_code"] == 404
        assert not span.failed

    async def test_who_waits_in_vain_has_a_queue_span_that_says_so(self, monkeypatch):
        config = pool_over(queue={"timeout": "50ms"})
        async with traced(config, monkeypatch) as (gateway, received), tenant(gateway) as client:
            with pytest.raises(openai.InternalServerError):
                await client.chat.completions.create(**QUESTION)
        assert received.named("queue").attributes == {"fairpool.tenant": "a", "fairpool.reason": "no_endpoint"}
        assert received.named("queue").end - received.named("queue").start >= 45_000_000
        request = received.named("POST /v1/chat/completions")
        assert (request.attributes["fairpool.reason"], request.failed) == ("no_endpoint", True)
        assert request.attributes["error.type"] == "503"

    async def test_each_try_on_an_endpoint_has_its_span(self, monkeypatch):
        async with running_engine() as engine:
            config = pool_over(f"http://{refusing_port()}", engine.url)
            async with traced(config, monkeypatch) as (gateway, received), tenant(gateway) as client:
                await client.chat.completions.create(**QUESTION)
            failed, answered = sorted(
                (span for span in received.spans if span.kind == "client"), key=lambda span: span.start
            )
            assert [span.attributes["fairpool.attempt"] for span in (failed, answered)] == [1, 2]
            assert (failed.failed, failed.attributes["error.type"]) == (True, "ConnectFailed")
            assert not answered.failed
            assert received.named("POST /v1/chat/completions").attributes["fairpool.reason"] == "answered"

    async def test_an_answer_that_breaks_off_fails_and_one_that_is_not_wanted_ends(self, monkeypatch):
        async with ScriptedEndpoint.listening() as endpoint:
            async with traced(pool_over(endpoint), monkeypatch) as (gateway, received):
                for breaks in (True, False):
                    async with wire(gateway) as line:
                        await line.send(request_bytes())
                        peer = await endpoint.accept()
                        await peer.request()
                        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na")
                        await line.head()
                        if breaks:
                            peer.reset()
                            await line.rest()
                        else:
                            line.leave()
                            await peer.gone()
                            await until(lambda: gateway.in_flight == 0)
            broken, left = (span for span in received.spans if span.kind == "server")
            assert (broken.attributes["fairpool.reason"], broken.failed) == ("answer_broken", True)
            assert (left.attributes["fairpool.reason"], left.failed) == ("tenant_gone", False)
            assert len(received.spans) == 6


class TestWhetherItIsWanted:
    @pytest.mark.parametrize(
        "environment",
        [
            {},
            {"OTEL_SERVICE_NAME": "llama"},
            {"OTEL_EXPORTER_OTLP_ENDPOINT": " "},
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "True"},
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
        ],
    )
    def test_no(self, environment, caplog):
        assert configured(environment, "llama") is None
        assert not caplog.records

    @pytest.mark.parametrize(
        ("environment", "said"),
        [
            ({"OTEL_TRACES_EXPORTER": "zipkin"}, "can be otlp or none here, not zipkin"),
            ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "asks for grpc"),
        ],
    )
    def test_yes_but_it_cannot_be_had_which_is_said(self, environment, said, caplog):
        assert configured(environment, "llama") is None
        assert said in caplog.text

    def test_yes_but_the_extra_is_not_installed(self, monkeypatch, caplog):
        monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
        monkeypatch.delitem(sys.modules, "fairpool_gateway.tracing.spans", raising=False)
        assert configured({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, "llama") is None
        assert "pip install '.[tracing]' in a checkout" in caplog.text

    @pytest.mark.parametrize("endpoint", [None, "http://127.0.0.1:1"])
    def test_nothing_of_the_sdk_is_loaded_unless_it_is(self, endpoint):
        environment = {} if endpoint is None else {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
        code = (
            "import sys, fairpool_gateway.main\n"
            f"tracing = fairpool_gateway.tracing.configured({environment}, 'llama')\n"
            "print(any(name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter')) for name in sys.modules))"
        )
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=20)
        assert said.stdout.strip() == str(endpoint is not None)
