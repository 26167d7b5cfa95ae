"""Which column of a table means what: the layouts that public traces have, and one's own by name.

A table is a CSV file with a line of names, or a file with a JSON object a line. It is recognised by its columns; others
are ignored. `max_tokens` and `hash_ids` are read in any of them, where they are there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from fairpool_lab.errors import OptionInvalid

MAX_TOKENS: Final = "max_tokens"
PREFIX: Final = "hash_ids"

EXAMPLE: Final = "arrival_ms=when,tenant=user,input_tokens=in,output_tokens=out"
"""An option that names columns."""

_NAMED = 12
"""Columns that a message names, of a table that may have hundreds."""

EVERYBODY: Final = "all"
"""Whose requests are where a trace does not tell."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns a table has.

    Attributes:
        arrival: when requests arrived: a number, or a date with a time.
        input_tokens: what they read.
        output_tokens: what they wrote.
        tenant: whose they are; None where the table does not tell.
        ticks: how many of `arrival`'s numbers make a second.
        found_in: where such tables come from.
    """

    arrival: str
    input_tokens: str
    output_tokens: str
    tenant: str | None
    ticks: int = 1
    found_in: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that such a table must have."""
        return (self.arrival, *([self.tenant] if self.tenant else []), self.input_tokens, self.output_tokens)


OWN: Final = Layout("arrival_s", "input_tokens", "output_tokens", tenant="tenant", found_in="one's own traces")

LAYOUTS: Final = (
    OWN,
    replace(OWN, tenant="client", found_in="the lab's excerpt of the VTC artifact's trace, and samples of ServeGen"),
    Layout(
        "TIMESTAMP",
        "ContextTokens",
        "GeneratedTokens",
        tenant=None,
        found_in="Azure's LLM inference traces (github.com/Azure/AzurePublicDataset)",
    ),
    Layout(
        "timestamp",
        "input_length",
        "output_length",
        tenant=None,
        ticks=1000,
        found_in="Mooncake's traces (github.com/kvcache-ai/Mooncake), with the prompts' blocks of 512 tokens",
    ),
)


def recognised(columns: Iterable[str], wanted: Layout | None = None) -> Layout:
    """The layout of a table with these columns, or the one that is wanted, if it has its columns.

    Raises:
        ValueError: with the columns that it lacks, or with one that it has twice.
    """
    columns = list(columns)
    for layout in (wanted,) if wanted else LAYOUTS:
        if set(layout.columns) <= set(columns):
            for column in (*layout.columns, MAX_TOKENS, PREFIX):
                if columns.count(column) > 1:
                    raise ValueError(f"the column {column} is there twice, and only one of them can be meant")
            return layout
    there = ", ".join(columns[:_NAMED]) + (", …" if len(columns) > _NAMED else "")
    there = f"its columns are {there}" if columns else "it names no columns"
    if wanted:
        raise ValueError(f"the column {next(c for c in wanted.columns if c not in columns)} is missing: {there}")
    raise ValueError(f"{there}; a trace has {', '.join(OWN.columns)}, or other names, which --columns tells: {EXAMPLE}")


def named(option: str) -> Layout:
    """The layout that an option names: `WHAT=COLUMN`, separated by commas; what is not named is called as in `OWN`.

    WHAT is arrival (a number of seconds, or a date with a time), arrival_ms, tenant, input_tokens or output_tokens; an
    empty column for the tenant says that there is none.

    Raises:
        OptionInvalid: it names something else.
    """
    layout = OWN
    for part in option.split(","):
        what, equals, column = (word.strip() for word in part.partition("="))
        if not equals or not (column or what == "tenant"):
            raise OptionInvalid(f"--columns: {part!r} is not WHAT=COLUMN")
        match what:
            case "arrival":
                layout = replace(layout, arrival=column, ticks=1)
            case "arrival_ms":
                layout = replace(layout, arrival=column, ticks=1000)
            case "tenant":
                layout = replace(layout, tenant=column or None)
            case "input_tokens":
                layout = replace(layout, input_tokens=column)
            case "output_tokens":
                layout = replace(layout, output_tokens=column)
            case _:
                raise OptionInvalid(
                    f"--columns: {what!r} is none of arrival, arrival_ms, tenant, input_tokens, output_tokens"
                )
    return layout
