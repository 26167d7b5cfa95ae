"""Reading a decision log, so that every figure of fairness is computed from the log alone and from nothing else.

What is read here is whole and makes sense: a header comes first, events are numbered without gaps, a request that
leaves a queue was waiting in it, and each charge is what its cost and weight give. Anything else is refused with
the file and the line, so a verdict never rests on a log that was cut off or edited. `stream` keeps only the
requests that wait; `read` keeps all events, for measures that look ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fairpool_gateway.decision_log import Arrive, Complete, Dispatch, Header, Remove, Reset, Weight
from fairpool_gateway.sfq import LEAST_WEIGHT, MOST_WEIGHT
from fairpool_lab.errors import LogInvalid

Event = Arrive | Dispatch | Remove | Complete | Weight | Reset

_Line = Header | Event


@dataclass(frozen=True, slots=True)
class Log:
    """A whole decision log."""

    header: Header
    events: tuple[Event, ...]


def read(source: Path | Iterable[bytes]) -> Log:
    """Read a log whole, from its file or from its lines.

    Raises:
        LogInvalid: with the file and the line.
    """
    if not isinstance(source, Path):
        header, events = stream(source)
        return Log(header, tuple(events))
    try:
        with source.open("rb") as lines:
            header, events = stream(lines, str(source))
            return Log(header, tuple(events))
    except OSError as error:
        raise LogInvalid(str(source), None, f"cannot be read: {error.strerror}") from error


def stream(lines: Iterable[bytes], name: str = "log") -> tuple[Header, Iterator[Event]]:
    """Read a log as it passes; each event is checked when it is asked for.

    Raises:
        LogInvalid: with the file and the line, from here or from the iterator.
    """
    numbered = _decoded(lines, name)
    _, header = next(numbered, (0, None))
    if header is None:
        raise LogInvalid(name, None, "is empty: a decision log starts with a header")
    if not isinstance(header, Header):
        raise LogInvalid(name, 1, "the first line is not a header: the beginning of the log is missing")
    if problem := _header_problem(header):
        raise LogInvalid(name, 1, problem)
    return header, _checked(numbered, header, name)


def _decoded(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, _Line]]:
    decode = msgspec.json.Decoder(_Line).decode
    for number, line in enumerate(lines, 1):
        try:
            yield number, decode(line)
        except msgspec.ValidationError as error:
            raise LogInvalid(name, number, f"not a line of a decision log: {error}") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            cut_off = not line.endswith(b"\n")
            problem = "the last line is cut off: its writer was stopped" if cut_off else f"not JSON: {error}"
            raise LogInvalid(name, number, problem) from error


def _checked(numbered: Iterator[tuple[int, _Line]], header: Header, name: str) -> Iterator[Event]:
    waiting: dict[str, str] = {}
    for seq, (number, event) in enumerate(numbered):
        if isinstance(event, Header):
            raise LogInvalid(name, number, "a second header: a log holds one run")
        if event.seq != seq:
            raise LogInvalid(name, number, f"event {seq} is expected here, not {event.seq}: lines are missing or moved")
        if problem := _queue_problem(event, waiting) or _number_problem(event, header.q):
            raise LogInvalid(name, number, problem)
        yield event


def _header_problem(header: Header) -> str | None:
    if header.q < 1:
        return f"q is the number of units per token, at least 1, not {header.q}"
    return next(filter(None, map(_weight_problem, (header.default_weight, *header.weights.values()))), None)


def _queue_problem(event: Event, waiting: dict[str, str]) -> str | None:
    """What is wrong with who waits, given the requests that do, each with its tenant; keeps these up to date."""
    match event:
        case Arrive(tenant=tenant, request=request):
            if request in waiting:
                return f"request {request} arrives but waits already"
            waiting[request] = tenant
        case Dispatch(tenant=tenant, request=request) | Remove(tenant=tenant, request=request):
            if waiting.pop(request, None) != tenant:
                return f"request {request} of tenant {tenant} leaves the queue but did not wait in it"
    return None


def _number_problem(event: Event, q: int) -> str | None:
    if isinstance(event, Arrive | Dispatch) and event.cost < 0:
        return f"a cost is at least 0, not {event.cost}"
    if isinstance(event, Arrive | Dispatch | Weight) and (problem := _weight_problem(event.weight)):
        return problem
    if isinstance(event, Dispatch) and event.charge != max(1, -(-event.cost * q // event.weight)):
        return f"a charge of {event.charge} units is not what cost {event.cost} and weight {event.weight} give"
    return None


def _weight_problem(weight: int) -> str | None:
    in_range = LEAST_WEIGHT <= weight <= MOST_WEIGHT
    return None if in_range else f"a weight is {LEAST_WEIGHT} to {MOST_WEIGHT}, not {weight}"
