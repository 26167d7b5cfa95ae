"""Sends a trace through a gateway with the official client, each request at its time, and accounts for every one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import openai

from fairpool_lab.traces import TraceRequest

_CLIENT_SECONDS = 300.0
"""Longer than any run: nothing is given up by the client."""

WORD = "fair"
"""With a space five bytes, so a little more than a token of the simulated engine."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one request: the tokens its answer reported, or the error the client raised."""

    tenant: str
    streamed: bool
    output_tokens: int
    error: str | None


async def replay(
    trace: Sequence[TraceRequest],
    *,
    base_url: str,
    model: str,
    keys: Mapping[str, str],
    compression: float,
    on_answer: Callable[[Answer], None],
) -> list[Answer]:
    """Send every request of the trace `compression` times faster than it was recorded; every second one streams.

    Args:
        trace: requests in order of arrival.
        base_url: the gateway's, with `/v1`.
        model: what to ask for.
        keys: each tenant's API key.
        compression: seconds of the trace that pass in one second.
        on_answer: called once for each request, as soon as it ended.
    """
    loop = asyncio.get_running_loop()
    began, first = loop.time(), trace[0].arrival
    async with (
        openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=_CLIENT_SECONDS) as shared,
        asyncio.TaskGroup() as tasks,
    ):
        clients = {tenant: shared.with_options(api_key=key) for tenant, key in keys.items()}

        async def send(request: TraceRequest, *, stream: bool) -> Answer:
            answer = await _send(clients[request.tenant], request, model, stream=stream)
            on_answer(answer)
            return answer

        sent = []
        for number, request in enumerate(trace):
            due = began + (request.arrival - first) / compression
            await asyncio.sleep(max(0.0, due - loop.time()))
            sent.append(tasks.create_task(send(request, stream=number % 2 == 1)))
    return [task.result() for task in sent]


def content(request: TraceRequest) -> str:
    """What the one message of a request says: a word for each token of the prompt that the trace recorded."""
    return f"{WORD} " * request.input_tokens


async def _send(client: openai.AsyncOpenAI, request: TraceRequest, model: str, *, stream: bool) -> Answer:
    """One request; the engine is told to generate exactly as many tokens as the trace recorded."""
    messages: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": content(request)}]
    exactly = {"ignore_eos": True}
    tokens = 0
    try:
        if stream:
            events = await client.chat.completions.create(
                model=model,
                messages=messages,
                max_tokens=request.output_tokens,
                stream=True,
                stream_options={"include_usage": True},
                extra_body=exactly,
            )
            async for event in events:
                if event.usage is not None:
                    tokens = event.usage.completion_tokens
        else:
            answer = await client.chat.completions.create(
                model=model, messages=messages, max_tokens=request.output_tokens, extra_body=exactly
            )
            tokens = answer.usage.completion_tokens if answer.usage else 0
    except openai.OpenAIError as error:
        return Answer(request.tenant, stream, tokens, f"{type(error).__name__}: {error}")
    if tokens != request.output_tokens:
        return Answer(request.tenant, stream, tokens, f"{tokens} of {request.output_tokens} tokens came")
    return Answer(request.tenant, stream, tokens, None)
