"""What the gateway logs: one line for each record, in text or JSON, and of a flood of one kind one line a second.

What always holds: neither a prompt nor a credential is ever in it. Messages of the gateway's own hold none. Those of
other exceptions might quote what they choke on, so of these only the type and the places in the code are written.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import msgspec

from fairpool_gateway.errors import GatewayError
from fairpool_gateway.floods import Floods

FIELDS: Final = ("request", "tenant", "reason", "endpoint")
"""What a record may hold beside its message, by the names that `extra` gives; in JSON each is a field."""

_QUIET: Final = ("uvicorn", "watchfiles", "asyncio", "httpx", "urllib3", "opentelemetry")
"""Libraries of which only warnings are wanted."""

_COUNT: Final = "count"


def set_up(stream: TextIO, form: str, level: str, *, quiet: Iterable[str] = ()) -> None:
    """Log to a stream from now on, as `text` or `json`, whatever has at least this level; of `quiet` only warnings."""
    handler = CollapsingHandler(stream)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    least = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=least, handlers=[handler])
    for library in (*_QUIET, *quiet):
        logging.getLogger(library).setLevel(max(least, logging.WARNING))


class CollapsingHandler(logging.StreamHandler[TextIO]):
    """Writes records, but those of a flood once a second and with their number.

    Records are of one kind if the same line of code made them, for the same reason. What is held back at the end of
    a flood is written by a thread that lives only so long.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._floods: Floods[logging.LogRecord] = Floods()
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, or hold it back; called with the handler's lock held."""
        kind = (record.name, record.levelno, record.msg, getattr(record, "reason", None))
        number = self._floods.take(self._clock(), kind, record)
        if number:
            self._write(record, number)
        elif self._timer is None:
            self._wait()

    def close(self) -> None:
        """Write what is held back."""
        self.acquire()
        try:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            for record, number in self._floods.settle(self._clock(), all_of_them=True):
                self._write(record, number)
            super().close()
        finally:
            self.release()

    def _write(self, record: logging.LogRecord, number: int) -> None:
        setattr(record, _COUNT, number)
        super().emit(record)

    def _wait(self) -> None:
        due = self._floods.next_settling()
        if due is not None:
            self._timer = threading.Timer(max(0.0, due - self._clock()), self._settle)
            self._timer.daemon = True
            self._timer.start()

    def _settle(self) -> None:
        self.acquire()
        try:
            self._timer = None
            for record, number in self._floods.settle(self._clock()):
                self._write(record, number)
            self._wait()
        finally:
            self.release()


class TextFormatter(logging.Formatter):
    """Lines for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Time in UTC, level, where it comes from, the message, and how many of its kind it stands for."""
        number = getattr(record, _COUNT, 1)
        line = f"{_time(record)} {record.levelname} {record.name} {record.getMessage()}"
        if number > 1:
            line += f" ({number} of this kind)"
        told = _exception(record)
        return f"{line}\n{told}" if told else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for programs."""

    def format(self, record: logging.LogRecord) -> str:
        """The same as in text, and the record's own fields."""
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}
        if (number := getattr(record, _COUNT, 1)) > 1:
            line[_COUNT] = number
        if told := _exception(record):
            line["exception"] = told
        return msgspec.json.encode(line).decode()


def log_unhandled(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An event loop's exception handler: says what failed, and not, as asyncio's own, what it failed on."""
    what, in_callback, _ = context["message"].partition(" in callback ")
    logging.getLogger("asyncio").error(what + in_callback.rstrip(), exc_info=context.get("exception"))


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _exception(record: logging.LogRecord) -> str:
    """Where an exception came from, and those behind it; what it says only if it is of the gateway's own tree."""
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    told: list[str] = []
    error: BaseException | None = record.exc_info[1]
    while error is not None:
        says = f": {error}" if isinstance(error, GatewayError) else ""
        places = "".join(traceback.format_tb(error.__traceback__))
        told.append(f"Traceback (most recent call last):\n{places}{type(error).__qualname__}{says}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\nwhich came of\n".join(told)
