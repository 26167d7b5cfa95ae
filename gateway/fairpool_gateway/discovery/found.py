"""From pods to endpoints: one for each target port of each pod that can serve, and why the others cannot.

An endpoint's identity is its pod's UID and the port: an address that comes back with another pod is another endpoint.
What always holds: a pod that was told to end, has ended, or is not Ready gets nothing new; an address is one pod's, and
if several claim it, the youngest's, whether that can serve yet or not; each endpoint that is missing is left out for a
reason; the same pods, in any order, give the same endpoints.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fairpool_gateway.config import DiscoverySettings, TargetPortSettings
from fairpool_gateway.discovery.left_out import LeftOut
from fairpool_gateway.discovery.pods import Pod
from fairpool_gateway.endpoints import EndpointSpec

NO_ACCELERATOR: Final = "without an accelerator"
NOT_READY: Final = "not Ready"
NO_ADDRESS: Final = "without an IP"
ADDRESS_TAKEN: Final = "whose address another pod has"
LEAVING: Final = "about to end"
ENDED: Final = "ended"
NO_PORT: Final = "whose port no container names"


@dataclass(frozen=True, slots=True)
class Found:
    """What was made of some pods.

    Attributes:
        endpoints: those that may be given work, or drain.
        accelerators: what the pods of `endpoints` have been given.
        left_out: what is no endpoint, and why.
    """

    endpoints: tuple[EndpointSpec, ...] = ()
    accelerators: int = 0
    left_out: tuple[LeftOut, ...] = ()

    @property
    def total(self) -> int:
        """How many endpoints there would be if every pod that has not ended, and was not told to, could serve."""
        return len(self.endpoints) + sum(each.endpoints for each in self.left_out)


def find_endpoints(pods: Iterable[Pod], settings: DiscoverySettings, slots: int) -> Found:
    """The endpoints among pods that the selector chose; each gets so many slots."""
    resources = settings.accelerators.resource_names
    required = settings.accelerators.policy == "Require"
    pods = tuple(pods)
    owners = _owners(pods, settings.target_ports)
    left_out: list[LeftOut] = []
    endpoints: dict[str, EndpointSpec] = {}
    accelerators = 0
    for pod in pods:
        name, ip = pod.metadata.name, pod.status.ip
        ports, unnamed = _ports(pod, settings.target_ports)
        asked = pod.accelerators(resources)
        why = _why_not(pod, lacks_accelerator=required and not asked)
        if why is not None:
            awaited = 0 if pod.has_ended or pod.is_leaving else len(ports) + len(unnamed)
            left_out.append(LeftOut(why, name, endpoints=awaited))
            continue
        assert ip is not None
        own = [port for port in ports if owners[ip, port] == pod.metadata.uid]
        left_out += (LeftOut(NO_PORT, name, port) for port in unnamed)
        left_out += (LeftOut(ADDRESS_TAKEN, name, str(port)) for port in ports if port not in own)
        accelerators += asked if own else 0
        for port in own:
            identity = f"{name}@{pod.metadata.uid}:{port}"
            endpoints[identity] = EndpointSpec(
                id=identity,
                host=ip,
                port=port,
                slots=slots,
                draining=pod.drains,
                over_tls=settings.tls,
                asked_first=True,
            )
    ordered = tuple(endpoints[identity] for identity in sorted(endpoints))
    return Found(ordered, accelerators, tuple(sorted(left_out)))


def _owners(pods: Iterable[Pod], targets: tuple[TargetPortSettings, ...]) -> dict[tuple[str, int], str]:
    """Whose each address is, by uid: the youngest's of the pods that have not ended, be they Ready or not.

    Only in a node's network do living pods share an IP. There whoever names the port comes before who does not.
    """
    claims: dict[tuple[str, int], tuple[bool, str, str]] = {}
    for pod in pods:
        if pod.status.ip and not pod.has_ended:
            for port in _ports(pod, targets)[0]:
                address = pod.status.ip, port
                claim = pod.has_to_itself(port), pod.metadata.creation_timestamp or "", pod.metadata.uid
                claims[address] = max(claims.get(address, claim), claim)
    return {address: uid for address, (_, _, uid) in claims.items()}


def _why_not(pod: Pod, *, lacks_accelerator: bool) -> str | None:
    if pod.has_ended:
        return ENDED
    if pod.is_leaving:
        return LEAVING
    if lacks_accelerator:
        return NO_ACCELERATOR
    if not pod.status.ip:
        return NO_ADDRESS
    return None if pod.is_ready else NOT_READY


def _ports(pod: Pod, targets: tuple[TargetPortSettings, ...]) -> tuple[list[int], list[str]]:
    """The numbers of the target ports, each once however often it is meant; and the names that no container gives."""
    numbers: list[int] = []
    unnamed = []
    for target in targets:
        number = target.number if target.name is None else pod.port_named(target.name)
        if number is None:
            unnamed.append(str(target.name))
        elif number not in numbers:
            numbers.append(number)
    return numbers, unnamed
