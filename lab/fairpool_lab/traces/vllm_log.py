"""vLLM's request log as a trace: what `vllm serve --enable-log-requests --enable-log-outputs` prints.

A request is three messages, each with the request's id: `Received request ID: …` when it arrives, the prompt's tokens,
and `Generated response ID…` with the answer's. Where tokens are listed has changed; read is all that vLLM has logged
from 0.10.1, the first with --enable-log-outputs, to 0.32.0 (vllm/entrypoints/logger.py, later
vllm/entrypoints/serve/utils/request_logger.py): the prompt's tokens in the first message, or in `Request ID details`;
the answer's in the response, in pieces if it was streamed, or in `Generated response ID details`. Details are printed
with VLLM_LOGGING_LEVEL=DEBUG only, and --max-log-len cuts the lists short.

What 0.32.0 does not log: answers of /v1/completions, and tokens of a stream that made no text.

Lines of several processes may be out of order by a moment. The log tells seconds and no year, and not whose a request
is: all are one tenant's, unless a pattern finds the tenant in the request's id, which is `chatcmpl-` and the
X-Request-Id that came with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fairpool_lab.errors import TraceInvalid
from fairpool_lab.traces.layout import EVERYBODY
from fairpool_lab.traces.request import TraceRequest
from fairpool_lab.traces.table import Numbered

_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_LINE = re.compile(r"\b(?:DEBUG|INFO|WARNING|ERROR) (\d\d-\d\d \d\d:\d\d:\d\d) \[?[^\s\]]+:\d+\] (.*)", re.DOTALL)
_MESSAGE = re.compile(r"(Received request|Request|Generated response) (\S+?):? (?=\S)(.*)", re.DOTALL)
_MAX_TOKENS = re.compile(r"\bmax_tokens=(\d+)")
_PROMPT = re.compile(r".*prompt_token_ids: \[([\d, ]*)\]", re.DOTALL)
_ANSWER = re.compile(r"output_token_ids: [\[(]([\d, ]*)[\])](?:, finish_reason: \S+)?\s*$")
_COUNTED = re.compile(r"<streaming_complete: (\d+) tokens>")

_LEAP_YEAR: Final = 2000
"""The log tells no year; in this one every date exists."""

_YEAR: Final = 366 * 86_400.0

HOW_TO_LOG: Final = (
    "start vLLM with VLLM_LOGGING_LEVEL=DEBUG, --enable-log-requests and --enable-log-outputs, without --max-log-len"
)


def is_line(line: str) -> bool:
    """Whether vLLM logs such lines."""
    return _LINE.search(_COLOUR.sub("", line)) is not None


@dataclass(slots=True)
class _Seen:
    """What was told of one request so far."""

    line: int
    arrival: float
    max_tokens: int | None
    generates: bool
    input_tokens: int | None = None
    output_tokens: int = 0
    counted: int = 0


def requests(lines: Iterable[str], name: str, tenant_of: re.Pattern[str] | None = None) -> Numbered:
    """The requests whose tokens the log tells; those without an answer, which were cancelled or failed, are left out.

    Args:
        lines: the log, other lines among them.
        name: that of the file.
        tenant_of: finds the tenant in a request's id, in its first group.
    """
    seen = _seen(lines)
    if not seen:
        raise TraceInvalid(name, None, f"vLLM logged no request here: {HOW_TO_LOG}")
    answered = {request: told for request, told in seen.items() if told.output_tokens or not told.generates}
    if not answered:
        raise TraceInvalid(name, None, f"the tokens of no answer are told: {HOW_TO_LOG}")
    began = min(told.arrival for told in answered.values())
    for request, told in sorted(answered.items(), key=lambda each: each[1].arrival):
        if told.input_tokens is None:
            raise TraceInvalid(name, told.line, f"request {request} tells no tokens of its prompt: {HOW_TO_LOG}")
        tenant = _tenant(request, tenant_of)
        if tenant is None:
            raise TraceInvalid(name, told.line, f"the pattern finds no tenant in the request's id, {request}")
        arrival = told.arrival - began
        yield told.line, TraceRequest(arrival, tenant, told.input_tokens, told.output_tokens, told.max_tokens)


def _seen(lines: Iterable[str]) -> dict[str, _Seen]:
    seen: dict[str, _Seen] = {}
    early: dict[str, int] = {}
    clock = _Clock()
    for number, line in enumerate(lines, 1):
        logged = _LINE.search(_COLOUR.sub("", line))
        message = logged and _MESSAGE.match(logged[2])
        if not logged or not message:
            continue
        kind, request, text = message.groups()
        match kind:
            case "Received request":
                told = _Seen(number, clock.seconds(logged[1]), _max_tokens(text), "PoolingParams(" not in text)
                told.input_tokens = early.pop(request, None) or _listed(_PROMPT.match(text))
                seen[request] = told
            case "Request" if text.startswith("details: "):
                count = _listed(_PROMPT.match(text))
                if count is not None:
                    early[request] = count
            case "Generated response" if request in seen:
                told = seen[request]
                told.output_tokens += _listed(_ANSWER.search(text)) or 0
                counted = _COUNTED.search(text)
                told.counted += int(counted[1]) if counted else 0
    for told in seen.values():
        told.output_tokens = told.output_tokens or told.counted
    return seen


class _Clock:
    """Seconds since the year began; a date that goes back by half a year is the next year's."""

    def __init__(self) -> None:
        self._last = 0.0
        self._years = 0.0

    def seconds(self, told: str) -> float:
        began = datetime(_LEAP_YEAR, 1, 1, tzinfo=UTC)
        moment = datetime.strptime(f"{_LEAP_YEAR}-{told}", "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        seconds = (moment - began).total_seconds() + self._years
        if self._last - seconds > _YEAR / 2:
            self._years += _YEAR
            seconds += _YEAR
        self._last = seconds
        return seconds


def _listed(found: re.Match[str] | None) -> int | None:
    """How many tokens are listed in what was found, which no words of tenants come behind."""
    return len(re.findall(r"\d+", found[1])) if found else None


def _max_tokens(text: str) -> int | None:
    """The one of the parameters, which come after whatever the tenant said."""
    found = _MAX_TOKENS.findall(text)
    return int(found[-1]) if found else None


def _tenant(request: str, pattern: re.Pattern[str] | None) -> str | None:
    if pattern is None:
        return EVERYBODY
    found = pattern.search(request)
    return (found[1] or None) if found else None
