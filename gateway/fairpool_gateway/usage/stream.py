"""Reading usage out of a stream of events.

Engines tell it in different ways: once after the last choice (vLLM), so far in each event (vLLM with
`continuous_usage_stats`), in the last event of a choice (llama.cpp's text completions), or once after each choice
(llama.cpp's chat with `n > 1`). So figures given with a choice are kept for that choice, the last one counts, and they
are added up; figures given without one are for all, unless there are as many of them as choices that finished. A
prompt that several choices share is read once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from fairpool_gateway.cost import Used
from fairpool_gateway.usage.answers import MISREAD, ResponsesEvent, StreamChunk, StreamEvent, gave_up, says_something
from fairpool_gateway.usage.reading import Reading
from fairpool_gateway.usage.sse import EventSplitter


class StreamReader:
    """Reads a stream whose events are of one kind."""

    __slots__ = ("_decode", "_splitter", "_tally")

    def __init__(self, kind: type[StreamEvent]) -> None:
        self._decode = _DECODERS[kind]
        self._splitter = EventSplitter()
        self._tally = _Tally()

    def feed(self, data: bytes) -> None:
        """Count the events that are complete now."""
        self._count(self._splitter.feed(data))

    def finish(self) -> Reading:
        """What the stream said, after its last byte."""
        self._count(self._splitter.finish())
        return self._tally.reading()

    def _count(self, events: list[bytes]) -> None:
        for data in events:
            try:
                event = self._decode(data)
            except MISREAD:
                continue
            if isinstance(event, StreamChunk):
                self._tally.add_chunk(event)
            else:
                self._tally.add_response_event(event)


_DECODERS: Final[dict[type[StreamEvent], Callable[[bytes], StreamEvent]]] = {
    StreamChunk: msgspec.json.Decoder(StreamChunk).decode,
    ResponsesEvent: msgspec.json.Decoder(ResponsesEvent).decode,
}


class _Tally:
    """What the events have told so far; figures are pairs of tokens read and written."""

    __slots__ = ("_events", "_failed", "_finished", "_for_all", "_for_choice", "_times_for_all", "_written_for_all")

    def __init__(self) -> None:
        self._events = 0
        self._failed = False
        self._finished = 0
        self._for_choice: dict[int, tuple[int, int]] = {}
        self._for_all: tuple[int, int] | None = None
        self._times_for_all = 0
        self._written_for_all = 0

    def add_chunk(self, chunk: StreamChunk) -> None:
        """Add an event of chat or text completions."""
        for choice in chunk.choices:
            if choice.says_something():
                self._events += 1
            if choice.finish_reason is not None:
                self._finished += 1
                self._failed |= gave_up(choice.finish_reason)
        if chunk.usage is not None and (tokens := chunk.usage.tokens()) is not None:
            if chunk.choices:
                self._for_choice[chunk.choices[0].index] = tokens
            else:
                self._tell(tokens)
        self._failed |= says_something(chunk.error)

    def add_response_event(self, event: ResponsesEvent) -> None:
        """Add an event of `/v1/responses`, the last of which holds the whole response."""
        if event.type.endswith(".delta"):
            self._events += says_something(event.delta)
        elif event.response is not None:
            response = event.response
            if response.usage is not None and (tokens := response.usage.tokens()) is not None:
                self._tell(tokens)
            self._failed |= gave_up(response.status) or says_something(response.error)
        self._failed |= event.type == "error" or says_something(event.error)

    def reading(self) -> Reading:
        """What it all comes to."""
        tokens = self._tokens()
        used = None if tokens is None else Used(*tokens, events=self._events)
        return Reading(used, self._events, self._failed)

    def _tell(self, tokens: tuple[int, int]) -> None:
        self._for_all = tokens
        self._times_for_all += 1
        self._written_for_all += tokens[1]

    def _tokens(self) -> tuple[int, int] | None:
        if self._for_all is not None:
            read, written = self._for_all
            return (read, self._written_for_all if self._times_for_all == self._finished else written)
        if self._for_choice:
            figures = self._for_choice.values()
            return max(read for read, _ in figures), sum(written for _, written in figures)
        return None
