"""The commands in the project's pages, and who runs each: as it is written, or why not.

What always holds: a block of shell that is in neither list below is run by a test, as it stands in its page: by
tests/cluster/test_commands.py, on a real API server, if there is kubectl in it, and else by tests/lab/test_commands.py.
"""

from __future__ import annotations

from typing import Final

from support.pages import Block, blocks, pages

ELSEWHERE: Final = {
    "make demo": "tests/lab/demo/test_run.py",
    'kubectl logs -n "$NAMESPACE" -l fairpool.dev/pool="$POOL" --tail=50': "tests/node/test_commands.py",
}
"""Blocks that a test of their own runs, by their first line: which."""

NEEDS_MORE: Final = {
    "kind create cluster": "kind and a container runtime, with images that were built there",
}
"""Blocks that no test runs, by their first line: what they need that is not here."""


def all_commands() -> list[Block]:
    """Every block of shell."""
    return [block for page in pages() for block in blocks(page) if block.language == "sh"]


def run_by_a_page() -> list[Block]:
    """Those that are run as they stand in their pages."""
    return [block for block in all_commands() if block.first not in {**ELSEWHERE, **NEEDS_MORE}]


def pages_to_run(*, with_kubectl: bool) -> dict[str, list[Block]]:
    """The blocks of each page that has some, in their order."""
    found: dict[str, list[Block]] = {}
    for block in run_by_a_page():
        if ("kubectl" in block.text) is with_kubectl:
            found.setdefault(block.page, []).append(block)
    return found
