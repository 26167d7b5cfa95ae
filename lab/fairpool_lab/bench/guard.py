"""The guard against getting slower: the ratios of `make bench-quick` against those that were recorded.

A ratio is worse only if the median over all rounds is, by more than the machine's noise makes of it. As long as one
seems to be, more pairs are measured, up to a bound: noise passes, what got slower stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from fairpool_lab.bench.goals import GUARDED
from fairpool_lab.bench.results import Results, spread
from fairpool_lab.errors import FileInvalid, OutputInvalid

RECORDED: Final = Path(__file__).with_name("recorded.json")
TOLERANCE: Final = 1.25
"""By how much a ratio may be worse."""


def ratios(results: Results) -> dict[str, float]:
    """The median of each ratio that was measured."""
    rounds = list(results.rounds())
    found = {name: spread(rounds, figure) for name, (figure, _) in GUARDED.items()}
    return {name: over.median for name, over in found.items() if over is not None}


def worse(results: Results, recorded: Mapping[str, float]) -> list[str]:
    """What got worse, or could not be compared, a sentence each."""
    measured, sentences = ratios(results), []
    for name, before in recorded.items():
        if name not in GUARDED:
            sentences.append(f"{name}: recorded, and no longer measured; record anew")
        elif name not in measured:
            sentences.append(f"{name}: not measured this time")
        else:
            more_is_better = GUARDED[name][1]
            factor = before / measured[name] if more_is_better else measured[name] / before
            if factor > TOLERANCE:
                sentences.append(f"{name}: {measured[name]:.3f}, and {before:.3f} was recorded")
    return sentences


def read(path: Path = RECORDED) -> dict[str, float]:
    """What was recorded; nothing if nothing was yet."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, float])
    except FileNotFoundError:
        return {}
    except msgspec.MsgspecError as error:
        raise FileInvalid(str(path), None, f"is no record of ratios: {error}") from error


def record(results: Results, path: Path = RECORDED) -> None:
    """Take what was measured as what is to be kept."""
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(ratios(results)), indent=2) + b"\n")
    except OSError as error:
        raise OutputInvalid(f"{path} cannot be written: {error.strerror}") from error
