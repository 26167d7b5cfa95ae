"""Reading usage out of a stream of events.

Engines tell it in different ways: once after the last choice (vLLM), so far in each event (vLLM with
`continuous_usage_stats`), in the last event of a choice (llama.cpp's text completions), or once after each choice
(llama.cpp's chat with `n > 1`). So figures given with a choice are kept for that choice, the last one counts, and they
are added up; figures given without one are for all, unless there are as many of them as choices that finished. A
prompt that several choices share is read once. Anthropic's streams tell what was read at their start and what was
written at their end; what is told there of what was read, too, may leave out what was cached.
"""

from __future__ import annotations

import msgspec

from fairpool_gateway.cost import Used
from fairpool_gateway.usage.answers import MISREAD, Event, Piece, Response, Usage, Verdict, says_something
from fairpool_gateway.usage.reading import Reading
from fairpool_gateway.usage.sse import EventSplitter

_decode = msgspec.json.Decoder(Event).decode
_decode_piece = msgspec.json.Decoder(Piece).decode
_decode_message = msgspec.json.Decoder(Response).decode


class StreamReader:
    """Reads one stream of any API."""

    __slots__ = ("_splitter", "_tally")

    def __init__(self) -> None:
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
                event = _decode(data)
                if event.type is None or event.choices:
                    self._tally.add_chunk(event)
                else:
                    self._tally.add_typed(event, event.type)
            except MISREAD:
                continue


class _Tally:
    """What the events have told so far; figures are pairs of tokens read and written."""

    __slots__ = (
        "_events",
        "_finished",
        "_for_all",
        "_for_choice",
        "_read_at_start",
        "_times_for_all",
        "_verdict",
        "_written_for_all",
    )

    def __init__(self) -> None:
        self._events = 0
        self._finished = 0
        self._for_choice: dict[int, tuple[int, int]] = {}
        self._for_all: tuple[int, int] | None = None
        self._read_at_start = 0
        self._times_for_all = 0
        self._verdict = Verdict()
        self._written_for_all = 0

    def add_chunk(self, chunk: Event) -> None:
        """Add an event of chat or text completions."""
        for choice in chunk.choices:
            if choice.says_something():
                self._events += 1
            if choice.finish_reason is not None:
                self._finished += 1
                self._verdict.look_at(choice.finish_reason)
        if not chunk.choices:
            self._tell_usage(chunk.usage)
        elif chunk.usage is not None and (tokens := chunk.usage.tokens()) is not None:
            self._for_choice[chunk.choices[0].index] = tokens
        self._verdict.failed |= says_something(chunk.error)

    def add_typed(self, event: Event, kind: str) -> None:
        """Add an event that says what it is."""
        self._verdict.failed |= kind == "error" or says_something(event.error)
        if kind.endswith(".delta"):
            self._events += says_something(event.delta)
        elif kind == "content_block_delta":
            self._events += _decode_piece(event.delta).says_something()
        elif kind == "message_start":
            self._read_at_start = _read(_decode_message(event.message).usage)
        elif kind == "message_delta":
            self._end_message(event)
        elif event.response is not None:
            response = event.response
            self._tell_usage(response.usage)
            self._verdict.look_at(response.status)
            self._verdict.failed |= says_something(response.error)
        else:
            self._tell_usage(event.usage)

    def reading(self) -> Reading:
        """What it all comes to."""
        tokens = self._tokens()
        used = None if tokens is None else Used(*tokens, events=self._events)
        return Reading(used, self._events, self._verdict.failed, self._verdict.aborted)

    def _end_message(self, event: Event) -> None:
        written = None if event.usage is None else event.usage.written()
        read = max(self._read_at_start, _read(event.usage))
        if written is not None and read:
            self._tell((read, written))
        if says_something(event.delta):
            self._verdict.look_at(_decode_piece(event.delta).stop_reason)

    def _tell_usage(self, usage: Usage | None) -> None:
        if usage is not None and (tokens := usage.tokens()) is not None:
            self._tell(tokens)

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


def _read(usage: Usage | None) -> int:
    """The tokens read, 0 if they are not told."""
    tokens = None if usage is None else usage.tokens()
    return 0 if tokens is None else tokens[0]
