"""The command `python -m fairpool_lab.engine`."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from dataclasses import fields

import uvloop

from fairpool_lab.engine.batching import Limits
from fairpool_lab.engine.faults import Fault
from fairpool_lab.engine.server import run
from fairpool_lab.engine.settings import EngineSettings
from fairpool_lab.engine.tokens import Language
from fairpool_lab.errors import LabError


def settings_from(arguments: Sequence[str] | None) -> EngineSettings:
    """Read the command line.

    Raises:
        LabError: an argument that no engine can be built from.
    """
    parser = argparse.ArgumentParser(
        prog="python -m fairpool_lab.engine",
        description="A simulated inference engine that speaks what vLLM speaks. Times are simulated seconds.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    engine, limits, language = EngineSettings(), Limits(), Language()
    parser.add_argument("--host", default=engine.host, help="address to listen on")
    parser.add_argument("--port", type=int, default=engine.port, help="port; 0 lets the kernel choose")
    parser.add_argument("--model", action="append", help="a model's name; may be repeated (default: sim)")
    parser.add_argument("--api-key", help="the key without which /v1 answers 401")
    parser.add_argument("--speed", type=float, default=engine.speed, help="simulated seconds per second")
    parser.add_argument("--tokens-per-event", type=int, default=engine.tokens_per_event, help="tokens per SSE event")
    parser.add_argument("--max-num-queued-reqs", type=int, help="as many may wait inside; beyond it, 503")
    parser.add_argument("--keep-alive", type=int, default=engine.keep_alive, help="idle seconds of a connection")
    parser.add_argument("--fault", help="what goes wrong from the start, KIND[:ARGUMENT]")
    for field in fields(Limits):
        value = getattr(limits, field.name)
        parser.add_argument(_flag(field.name), type=type(value), default=value, help="see Limits")
    for name in ("seed", "bytes_per_token", "mean_output_tokens"):
        value = getattr(language, name)
        parser.add_argument(_flag(name), type=type(value), default=value, help="see Language")
    given = parser.parse_args(arguments)
    return EngineSettings(
        models=tuple(given.model or engine.models),
        host=given.host,
        port=given.port,
        speed=given.speed,
        tokens_per_event=given.tokens_per_event,
        limits=Limits(**{field.name: getattr(given, field.name) for field in fields(Limits)}),
        language=Language(given.seed, given.bytes_per_token, given.mean_output_tokens),
        max_num_queued_reqs=given.max_num_queued_reqs,
        api_key=given.api_key,
        keep_alive=given.keep_alive,
        fault=None if given.fault is None else Fault.parse(given.fault),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one engine; returns the exit status."""
    try:
        settings = settings_from(arguments)
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        uvloop.run(run(settings))
    except LabError as error:
        sys.stderr.write(f"engine: {error}\n")
        return 2
    return 0


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


if __name__ == "__main__":
    sys.exit(main())
