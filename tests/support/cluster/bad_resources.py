"""Resources that must not be admitted: the table, and each of its cases as a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest
import yaml
from support.cluster.client import Document
from support.cluster.definitions import ROOT, fair_pool, tenant_weight
from support.cluster.resources import key_secret

TABLE: Final = ROOT / "tests" / "cluster" / "bad_resources.yaml"
SENT: Final = pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
"""For tests that send them: one is as large as it has to be, and Kubernetes' client sends everything in one piece."""
_SMALLEST: Final[Mapping[str, Callable[[str], Document]]] = {
    "FairPool": fair_pool,
    "TenantWeight": tenant_weight,
    "Secret": lambda namespace: key_secret(namespace, "search-key", "sk-1"),
}


@dataclass(frozen=True, eq=False)
class BadResource:
    """One case: what is to be said of it, and the place that has to be named (empty: the resource itself)."""

    kind: str
    case: str
    changes: Mapping[str, Any]
    place: str
    says: str

    def document(self, namespace: str) -> Document:
        """The resource."""
        return patched(_SMALLEST[self.kind](namespace), self.changes)


class _Loader(yaml.SafeLoader):
    """Knows `!repeated [TEXT, TIMES]`."""


def _repeated(loader: yaml.SafeLoader, node: yaml.SequenceNode) -> str:
    text, times = loader.construct_sequence(node)
    return str(text) * int(times)


_Loader.add_constructor("!repeated", _repeated)


def bad_resources() -> list[BadResource]:
    """All cases."""
    table = yaml.load(TABLE.read_text(), _Loader)
    return [BadResource(kind, **case) for kind, cases in table.items() for case in cases]


def patched(document: Any, changes: Any) -> Any:
    """A document after a merge patch (RFC 7386)."""
    if not isinstance(changes, Mapping):
        return changes
    merged = dict(document) if isinstance(document, Mapping) else {}
    for name, change in changes.items():
        merged[name] = patched(merged.get(name), change)
        if change is None:
            del merged[name]
    return merged
