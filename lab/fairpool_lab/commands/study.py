"""`fairpool lab study NAME`: answer a question about orders of requests, as a page with its figures.

Writes NAME.md and NAME.json. Exit status 2: the trace cannot be used, or nothing can be written.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from fairpool_lab import traces
from fairpool_lab.errors import OutputInvalid
from fairpool_lab.studies import headline


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", choices=["headline"], metavar="NAME", help="headline: the VTC paper's, there and here")
    parser.add_argument("--trace", type=Path, required=True, metavar="FILE", help="the trace that the study is of")
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="where both files go (default: here)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, say how it goes, and write."""

    def done(figure: headline.Figure) -> None:
        print(f"{figure.slots} slots, {figure.title}: {figure.greatest:.0f} / {figure.mean:.0f}", flush=True)

    if not options.out.is_dir():
        raise OutputInvalid(f"{options.out} is no directory")
    trace = traces.read(options.trace)
    headline.check(trace)
    found = headline.study(trace, done)
    figures = msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n"
    for path, text in (
        (options.out / f"{headline.NAME}.json", figures),
        (options.out / f"{headline.NAME}.md", headline.page(found)),
    ):
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise OutputInvalid(f"{path} cannot be written: {error.strerror}") from error
    print(f"The page is {options.out / f'{headline.NAME}.md'}.")
    return 0
