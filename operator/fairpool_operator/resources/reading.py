"""Reading resources from what the API server sent.

What always holds: `Unreadable` is all that comes out instead of a resource, and only where the definitions in the
cluster are not this operator's own; it repeats no value of the resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from fairpool_operator.errors import Unreadable
from fairpool_operator.resources.fairpool import FairPool
from fairpool_operator.resources.metadata import Metadata
from fairpool_operator.resources.part import Part
from fairpool_operator.resources.tenantweight import TenantWeight

_Read = TypeVar("_Read", bound=Part)


def read_pool(resource: Mapping[str, Any]) -> FairPool:
    """The FairPool.

    Raises:
        Unreadable: it is not one as this operator knows them.
    """
    return _read(FairPool, resource)


def read_tenant_weight(resource: Mapping[str, Any]) -> TenantWeight:
    """The TenantWeight.

    Raises:
        Unreadable: it is not one as this operator knows them.
    """
    return _read(TenantWeight, resource)


def read_metadata(resource: Mapping[str, Any]) -> Metadata:
    """What Kubernetes keeps about any resource, even one that cannot be read otherwise."""
    return Metadata.model_validate(resource["metadata"])


def _read(kind: type[_Read], resource: Mapping[str, Any]) -> _Read:
    try:
        return kind.model_validate(resource, by_alias=True, by_name=False)
    except ValidationError as error:
        places = {".".join(str(step) for step in detail["loc"]) for detail in error.errors(include_input=False)}
    # Outside the handler, so that no traceback shows the validation error, which quotes the resource.
    raise Unreadable(
        f"this operator cannot read {', '.join(sorted(places)[:8])}: install the CustomResourceDefinitions that came "
        "with it, then correct these fields"
    )
