"""`fairpool lab study NAME`: answer a question about orders of requests, as a page with its figures.

Writes NAME.md, NAME.json and the page's drawings. Exit status 2: a trace cannot be used, or nothing can be written.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fairpool_lab import traces
from fairpool_lab.errors import OptionInvalid, OutputInvalid
from fairpool_lab.studies import STUDIES, Given, Listed, Traces

T = TypeVar("T")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    listed = "; ".join(f"{study.name}: {study.about}" for study in STUDIES.values())
    parser.add_argument("name", choices=sorted(STUDIES), metavar="NAME", help=listed)
    parser.add_argument(
        "--trace", type=Path, nargs="+", default=[], metavar="FILE", help="what the study is of, if it is of traces"
    )
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="where its files go (default: here)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, show how far it is, and write."""
    listed = STUDIES[options.name]
    if not options.out.is_dir():
        raise OutputInvalid(f"{options.out} is no directory")
    made = listed.make(_given(listed, options.trace), _walk)
    figures = msgspec.json.format(msgspec.json.encode(made.figures), indent=1).decode() + "\n"
    for name, text in {f"{listed.name}.json": figures, f"{listed.name}.md": made.page, **made.drawings}.items():
        try:
            (options.out / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise OutputInvalid(f"{options.out / name} cannot be written: {error.strerror}") from error
    print(f"The page is {options.out / f'{listed.name}.md'}.")
    return 0


def _given(listed: Listed, paths: Sequence[Path]) -> tuple[Given, ...]:
    """The traces that the study is of, as many as it wants."""
    wanted = {Traces.NONE: not paths, Traces.ONE: len(paths) == 1, Traces.SOME: bool(paths)}
    if not wanted[listed.traces]:
        raise OptionInvalid(f"--trace: the study {listed.name} is of {listed.traces.value}, and {len(paths)} are given")
    return tuple(Given(path.name, traces.read(path)) for path in paths)


def _walk(parts: Sequence[T], words: Callable[[T], str]) -> Iterator[T]:
    """Goes through a study with a bar, which is gone in the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=len(parts))
        for part in parts:
            progress.update(bar, description=words(part))
            yield part
            progress.advance(bar)
