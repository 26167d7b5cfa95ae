"""The pages that people read, and what is in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ROOT / "docs"

_FENCED: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"# (\S+\.yaml)\n")


@dataclass(frozen=True)
class Block:
    """What stands between two fences.

    Attributes:
        page: where, from the root.
        language: what the opening fence says.
        text: the lines between.
    """

    page: str
    language: str
    text: str

    @property
    def first(self) -> str:
        """Its first line, by which it is known, without a comment at its end."""
        return re.sub(r"\s+#.*", "", self.text.splitlines()[0])

    @property
    def file(self) -> str | None:
        """The file that a block of YAML is to be kept as, which it says in its first line."""
        found = _FILE.match(self.text) if self.language == "yaml" else None
        return found and found[1]


def pages() -> list[Path]:
    """Every page of the project."""
    ignored = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split()} | {".git"}
    found = []
    for directory, below, names in os.walk(ROOT):
        below[:] = [name for name in below if name not in ignored]
        found += [Path(directory, name) for name in names if name.endswith(".md")]
    return sorted(found)


def blocks(page: Path) -> Iterator[Block]:
    """What is fenced in a page, from its top."""
    for language, text in _FENCED.findall(page.read_text(encoding="utf-8")):
        yield Block(str(page.relative_to(ROOT)), language, text)


def headings(page: Path) -> set[str]:
    """The anchors that a page's headings give."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def section(page: Path, title: str) -> str:
    """What is below a heading, up to the next one."""
    text = page.read_text(encoding="utf-8")
    found = re.search(rf"^#+ {re.escape(title)}$\n(.*?)(?=^#{{1,6}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"{page.name} has no heading {title!r}"
    return found[1]
