"""What every part of a resource is: complete, immutable, and written in the API's own names.

The CustomResourceDefinitions in `crds/` are the source of truth of the API, and the API server holds resources to
them. What always holds: whatever it admits can be read here, with the same defaults; a field that is not known here
is ignored, for the definitions in a cluster may be newer than this operator.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Part(BaseModel):
    """One mapping of a resource: camelCase in the API, snake_case here."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        frozen=True,
        serialize_by_alias=True,
        validate_by_alias=True,
        validate_by_name=True,
    )

    def written(self) -> dict[str, Any]:
        """The same as the API has it, without the fields that have no value."""
        return self.model_dump(mode="json", exclude_none=True)
