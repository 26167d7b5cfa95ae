"""Which resources are meant for FairPool, and what is to be said of one that is of no kind or version that there is."""

from __future__ import annotations

from typing import Final

from fairpool_operator.definitions import definitions
from fairpool_operator.manifests import Document, Steps

API: Final = "fairpool.dev/v1alpha1"
_GROUP: Final = API.partition("/")[0]


def is_ours(document: Document) -> bool:
    """Whether it was meant for FairPool: by its group or, where that may be mistyped, by its kind."""
    return document.api_version.partition("/")[0] == _GROUP or document.kind in definitions()


def mistake(document: Document) -> tuple[Steps, str] | None:
    """Where and why one that was meant for FairPool is of no kind or version that there is; None if it is of one."""
    is_known = document.api_version == API and document.kind in definitions()
    if is_known or not is_ours(document):
        return None
    field = "apiVersion" if document.kind in definitions() else "kind"
    what = f"there is no {document.kind or 'kind'} in {document.api_version or 'no apiVersion'}"
    return (field,), f"{what}: {API} has {' and '.join(definitions())}"
