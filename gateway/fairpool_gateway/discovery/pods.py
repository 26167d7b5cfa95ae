"""What is read of a pod: enough to say whether it can be an endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from fairpool_gateway.cluster.objects import Thing

DRAIN_LABEL: Final = "fairpool.dev/drain"
"""With the value `true`: the pod finishes what it runs and gets no more."""

_ENDED: Final = frozenset({"Succeeded", "Failed"})
_WHOLE: Final = re.compile(r"([0-9]{1,19})([kMGTPE]?)")
_UNITS: Final[dict[str, int]] = {"": 1, **{unit: 1000**power for power, unit in enumerate("kMGTPE", 1)}}


class Port(msgspec.Struct, rename="camel", frozen=True):
    """A port that a container names."""

    container_port: int
    name: str | None = None


class Resources(msgspec.Struct, frozen=True):
    """What a container asks for; of accelerators, the limit is the request."""

    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


class Container(msgspec.Struct, rename="camel", frozen=True):
    """One container."""

    ports: list[Port] | None = None
    resources: Resources | None = None
    restart_policy: str | None = None

    @property
    def is_sidecar(self) -> bool:
        """Whether it runs on beside the others, though it is one of those that prepare the pod."""
        return self.restart_policy == "Always"

    def asks_for(self, resource: str) -> int:
        """How many of a resource, where the quantity is written in decimals; 1 for any other that is not nothing."""
        resources = self.resources or Resources()
        for asked in (resources.requests or {}, resources.limits or {}):
            quantity = asked.get(resource, "")
            if whole := _WHOLE.fullmatch(quantity):
                return int(whole[1]) * _UNITS[whole[2]]
            if any(digit in "123456789" for digit in quantity):
                return 1
        return 0


class Spec(msgspec.Struct, rename="camel", frozen=True):
    """What is wanted of a pod."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    host_network: bool = False
    resource_claims: list[msgspec.Raw] | None = None

    def ports(self) -> Iterator[Port]:
        """The ports of all containers that run while the pod serves."""
        sidecars = (container for container in self.init_containers or () if container.is_sidecar)
        for container in (*(self.containers or ()), *sidecars):
            yield from container.ports or ()

    def asks_for(self, resource: str) -> int:
        """How many of a resource are scheduled for the pod: the most that its containers need at any one time.

        Those that prepare it run one after the other, before the rest, each beside the sidecars that come before it.
        """
        sidecars = most = 0
        for container in self.init_containers or ():
            asked = container.asks_for(resource)
            sidecars += asked if container.is_sidecar else 0
            most = max(most, sidecars if container.is_sidecar else sidecars + asked)
        return max(most, sidecars + sum(container.asks_for(resource) for container in self.containers or ()))


class Condition(msgspec.Struct, frozen=True):
    """One thing that is true of a pod, or not."""

    type: str
    status: str


class Status(msgspec.Struct, frozen=True):
    """What is seen of a pod."""

    phase: str = "Unknown"
    ip: str | None = msgspec.field(default=None, name="podIP")
    conditions: list[Condition] | None = None


class Pod(Thing, frozen=True):
    """One pod."""

    spec: Spec = Spec()
    status: Status = Status()

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it will ever run again, so that its address may be another's already."""
        return self.status.phase in _ENDED

    @property
    def is_leaving(self) -> bool:
        """Whether it was told to end."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_ready(self) -> bool:
        """Whether it says that it can serve."""
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions or ())

    @property
    def drains(self) -> bool:
        """Whether people asked that it gets no more."""
        return (self.metadata.labels or {}).get(DRAIN_LABEL) == "true"

    def accelerators(self, resources: tuple[str, ...]) -> int:
        """How many of these resources it has been given; a claim counts as one."""
        return sum(map(self.spec.asks_for, resources)) + len(self.spec.resource_claims or ())

    def has_to_itself(self, port: int) -> bool:
        """Whether no other living pod listens at this port of its IP, as far as it says."""
        return not self.spec.host_network or any(each.container_port == port for each in self.spec.ports())

    def port_named(self, name: str) -> int | None:
        """The number of the port that a container gives this name."""
        return next((port.container_port for port in self.spec.ports() if port.name == name), None)
