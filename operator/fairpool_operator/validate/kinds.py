"""Which resources are read, and what is to be said of one that was meant to be and is of no kind or version there is.

What always holds: nothing is said of what may be somebody else's: groups with a dot in their names are anybody's, those
without one are Kubernetes' own, and it has no kind that is nearly called as one that is read here.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

from fairpool_operator.definitions import definitions
from fairpool_operator.manifests import Document, Steps

API: Final = "fairpool.dev/v1alpha1"
API_VERSIONS: Final[Mapping[str, str]] = {"FairPool": API, "TenantWeight": API, "Secret": "v1", "Namespace": "v1"}
"""What is read, by its kind."""
_GROUP: Final = API.partition("/")[0]
_NEARLY: Final = {kind.casefold(): kind for kind in API_VERSIONS}
_LEAST_LIKENESS: Final = 0.8


def is_ours(document: Document) -> bool:
    """Whether it was meant for FairPool: by its group or, where that may be mistyped, by its kind."""
    return document.api_version.partition("/")[0] == _GROUP or document.kind in definitions()


def mistake(document: Document) -> tuple[Steps, str] | None:
    """Where and why one that was meant to be read is of no kind or version that there is; None if it is of one."""
    if document.api_version == API_VERSIONS.get(document.kind):
        return None
    if is_ours(document):
        has = f"{API} has {' and '.join(definitions())}"
    elif meant := _meant(document):
        has = f"{API_VERSIONS[meant]} has {meant}"
    else:
        return None
    field = "apiVersion" if document.kind in API_VERSIONS else "kind"
    what = f"there is no {document.kind or 'kind'} in {document.api_version or 'no apiVersion'}"
    return (field,), f"{what}: {has}"


def is_in_a_namespace(kind: str) -> bool:
    """Whether resources of a kind are in one; of a mistyped kind, those of the kind that it stands for."""
    return _nearest(kind) != "Namespace"


def _meant(document: Document) -> str | None:
    """The kind that a mistyped one of Kubernetes' own stands for, if any."""
    return None if "." in document.api_version.partition("/")[0] else _nearest(document.kind)


def _nearest(kind: str) -> str | None:
    found = difflib.get_close_matches(kind.casefold(), _NEARLY, n=1, cutoff=_LEAST_LIKENESS)
    return _NEARLY[found[0]] if found else None
