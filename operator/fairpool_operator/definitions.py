"""The CustomResourceDefinitions, which are the source of truth of the API, wherever this package is.

In a checkout they are in `crds/`; what is built from it holds a copy of that directory.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fairpool_operator.manifests import read

Schema = Mapping[str, Any]

_PLACES: Final = (Path(__file__).parent / "crds", Path(__file__).parents[2] / "crds")


@functools.cache
def definitions() -> Mapping[str, Schema]:
    """The definitions of FairPool and TenantWeight, by kind."""
    directory = next(place for place in _PLACES if place.is_dir())
    found = (each.object for each in read([directory]).documents if each.kind == "CustomResourceDefinition")
    return {each["spec"]["names"]["kind"]: each for each in found}


def schema_of(definition: Schema) -> Schema:
    """The schema of its one version."""
    (version,) = definition["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return schema
