"""The commands in the project's pages, and who runs each: as it is written, or why not.

What always holds: a block of shell that is in no list below is run by a test, as it stands in its page: by
tests/cluster/test_commands.py, on a real API server, if there is kubectl in it, and else by tests/lab/test_commands.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from support.pages import ROOT, Block, blocks, pages

ELSEWHERE: Final = {
    "make demo": "tests/lab/demo/test_run.py",
    'kubectl logs -n "$NAMESPACE" -l fairpool.dev/pool="$POOL" --tail=50': "tests/node/test_commands.py",
}
"""Blocks that a test of their own runs, by their first line: which."""

IN_SHORT: Final = {
    "fairpool lab study bound --out docs/studies --trace \\": "tests/lab/studies/test_bound.py",
    "fairpool lab study calibration --out docs/studies --trace \\": "tests/lab/studies/test_calibration.py",
    "fairpool lab study headline --trace vtc_real_trace.csv --out docs/studies": "tests/lab/studies/test_headline.py",
    "fairpool lab study isolation --trace vtc_real_trace.csv --out docs/studies": "tests/lab/studies/test_isolation.py",
    "fairpool lab study price --out docs/studies --trace \\": "tests/lab/studies/test_price.py",
    "fairpool lab study truth --trace vtc_real_trace.csv --out docs/studies": "tests/lab/proof/test_truth.py",
    "fairpool lab study weights --trace vtc_real_trace.csv --out docs/studies": "tests/lab/studies/test_weights.py",
}
"""Studies, which take minutes and traces that are not here, by their first line: the test that makes each on less."""

NEEDS_MORE: Final = {
    "kind create cluster": "kind and docker",
    "buildah push fairpool:dev docker-archive:fairpool.tar:fairpool:dev": "kind, and images that were built there",
}
"""Blocks that no test runs, by their first line: what they need that is not here."""


MENTIONED: Final = {
    "fairpool up": "the command's name",
    "fairpool lab calibrate": "the command's name",
    "fairpool lab compare": "the command's name",
    "fairpool lab gap": "the command's name",
    "fairpool lab report LOG --html FILE": "a log of the reader's",
    "fairpool lab study NAME": "the command's name",
    "fairpool lab what-if": "the command's name",
    "fairpool-operator run": "the command's name",
    "fairpool-operator validate": "the command's name",
    "fairpool up -f PATH": "a path of the reader's",
    "fairpool-operator validate -f DIRECTORY": "a path of the reader's",
    "fairpool-operator validate -f tenants.yaml": "fails as it should: tests/operator has its words",
    "kubectl apply --dry-run=server": "an option of a command",
    "kubectl describe": "the command's name",
    "kubectl kustomize overlays/production": "a directory of the reader's",
    "kubectl label pod NAME fairpool.dev/drain=true": "a pod of the reader's",
    "kubectl wait --for=condition=Ready": "an option of a command",
    "pip install '.[tracing]'": "a registry of packages",
    "pip install '.[validate]'": "a registry of packages",
}
"""What stands in a sentence and looks like a command, and why it is none that could be run."""

_PROGRAMS: Final = "kubectl|fairpool|fairpool-operator|fairpool-gateway|openssl|printf|pip"
_IN_A_SENTENCE: Final = re.compile(rf"(?<!`)`((?:{_PROGRAMS}) [^`]+)`(?!`)")
_MAKE_IN_A_SENTENCE: Final = re.compile(r"(?<!`)`make ([^`]+)`(?!`)")
_MAKE_IN_A_BLOCK: Final = re.compile(r"\bmake ([^#\n]+)")


def in_sentences(*, with_kubectl: bool) -> dict[str, list[str]]:
    """The commands in the sentences of each page that has some, but for those that are only mentioned."""
    found: dict[str, list[str]] = {}
    for page in pages():
        for command in _in_sentences_of(page):
            if command not in MENTIONED and ("kubectl" in command) is with_kubectl:
                found.setdefault(str(page.relative_to(ROOT)), []).append(command)
    return found


def mentioned() -> set[str]:
    """Those of the pages that are only mentioned."""
    return {command for page in pages() for command in _in_sentences_of(page)} & MENTIONED.keys()


def targets() -> dict[str, set[str]]:
    """What make is asked for in the blocks and sentences of each page that asks for something."""
    found: dict[str, set[str]] = {}
    for page in pages():
        asked = _MAKE_IN_A_SENTENCE.findall(_sentences(page))
        for block in blocks(page):
            asked += _MAKE_IN_A_BLOCK.findall(block.text) if block.language == "sh" else ()
        for word in " ".join(asked).split():
            if "=" not in word and not word.startswith("-"):
                found.setdefault(str(page.relative_to(ROOT)), set()).add(word)
    return found


def _in_sentences_of(page: Path) -> list[str]:
    return [" ".join(command.split()) for command in _IN_A_SENTENCE.findall(_sentences(page))]


def _sentences(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def all_commands() -> list[Block]:
    """Every block of shell."""
    return [block for page in pages() for block in blocks(page) if block.language == "sh"]


def run_by_a_page() -> list[Block]:
    """Those that are run as they stand in their pages."""
    return [block for block in all_commands() if block.first not in {**ELSEWHERE, **IN_SHORT, **NEEDS_MORE}]


def pages_to_run(*, with_kubectl: bool) -> dict[str, list[Block]]:
    """The blocks of each page that has some, in their order."""
    found: dict[str, list[Block]] = {}
    for block in run_by_a_page():
        if ("kubectl" in block.text) is with_kubectl:
            found.setdefault(block.page, []).append(block)
    return found
