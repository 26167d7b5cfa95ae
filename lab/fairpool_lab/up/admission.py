"""What an API server would say of a resource: why it refuses it or, if it does not, as what it stores it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from fairpool_gateway.config.problems import describe
from fairpool_lab.up.secrets import problems_of
from fairpool_operator.manifests import Steps
from fairpool_operator.resources.fairpool import FairPoolSpec
from fairpool_operator.resources.part import Part
from fairpool_operator.resources.tenantweight import TenantWeightSpec

_SPECS: Mapping[str, type[Part]] = {"FairPool": FairPoolSpec, "TenantWeight": TenantWeightSpec}


def refusals(resource: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """Why it would be refused, if so: the field, and what is wrong with it."""
    metadata = resource.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        yield ("metadata",), "metadata.name: is missing"
        return
    if resource["kind"] == "Secret":
        for path, why in problems_of(resource):
            yield path, f"{'.'.join(map(str, path))}: {why}"
    spec = _SPECS.get(resource["kind"])
    if spec is not None:
        try:
            spec.model_validate(resource.get("spec") or {}, by_alias=True, by_name=False)
        except ValidationError as error:
            places = [detail["loc"] for detail in error.errors(include_input=False)]
            for place, problem in zip(places, describe(error, {}, "spec"), strict=False):
                yield ("spec", *place), f"spec.{problem}"


def stored(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is kept of a resource that is not refused."""
    return resource
