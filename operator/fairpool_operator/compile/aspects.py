"""The aspects of a resource that its conditions are about; all conditions of other types are somebody else's."""

from __future__ import annotations

from typing import Final

from fairpool_operator.resources import READY, STALLED

ACCEPTED: Final = "Accepted"
RESOLVED: Final = "ResolvedRefs"
ENDPOINTS: Final = "EndpointsAvailable"
GATEWAY: Final = "GatewayAvailable"
PROGRAMMED: Final = "Programmed"

STALLING: Final = (ACCEPTED, RESOLVED)
"""Those that somebody has to put right."""

ALL: Final = frozenset({ACCEPTED, RESOLVED, ENDPOINTS, GATEWAY, PROGRAMMED, READY, STALLED})
