"""From pods to endpoints: one for each target port of each pod that can serve, and why the others cannot.

An endpoint's identity is its pod's UID and the port: an address that comes back with another pod is another endpoint.
What always holds: a pod that was told to end, has ended, or is not Ready gets nothing new; no two endpoints share an
address, for if two pods claim one, the younger has it; the same pods, in any order, give the same endpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from fairpool_gateway.config import DiscoverySettings, TargetPortSettings
from fairpool_gateway.discovery.pods import Pod
from fairpool_gateway.endpoints import EndpointSpec

_SHOWN: Final = 5

NO_ACCELERATOR: Final = "without an accelerator"
NOT_READY: Final = "not Ready"
NO_ADDRESS: Final = "without an IP"
ADDRESS_TAKEN: Final = "whose IP is a younger pod's"
LEAVING: Final = "about to end"
ENDED: Final = "ended"
NO_PORT: Final = "without a target port"


@dataclass(frozen=True, slots=True)
class Found:
    """What was made of some pods.

    Attributes:
        endpoints: those that may be given work, or drain.
        total: how many there would be if every pod that has not ended, and was not told to, could serve.
        accelerators: what the pods of `endpoints` have been given.
        left_out: names of the pods that are no endpoints, by why.
    """

    endpoints: tuple[EndpointSpec, ...] = ()
    total: int = 0
    accelerators: int = 0
    left_out: dict[str, list[str]] = field(default_factory=dict)


def find_endpoints(pods: Iterable[Pod], settings: DiscoverySettings, slots: int) -> Found:
    """The endpoints among pods that the selector chose; each gets so many slots."""
    resources = settings.accelerators.resource_names
    required = settings.accelerators.policy == "Require"
    left_out: dict[str, list[str]] = {}
    endpoints: dict[str, EndpointSpec] = {}
    addresses: set[tuple[str, int]] = set()
    total = accelerators = 0
    # The youngest first, so that it has what is claimed twice.
    for pod in sorted(pods, key=_age, reverse=True):
        ports = list(_ports(pod, settings.target_ports))
        total += 0 if pod.has_ended or pod.is_leaving else len(settings.target_ports)
        asked = pod.accelerators(resources)
        why = _why_not(pod, lacks_accelerator=required and not asked)
        free = [port for port in ports if (pod.status.ip, port) not in addresses]
        if why is None and not free:
            why = ADDRESS_TAKEN if ports else NO_PORT
        if why is not None:
            left_out.setdefault(why, []).append(pod.metadata.name)
            continue
        assert pod.status.ip is not None
        accelerators += asked
        for port in free:
            addresses.add((pod.status.ip, port))
            identity = f"{pod.metadata.name}@{pod.metadata.uid}:{port}"
            endpoints[identity] = EndpointSpec(
                id=identity,
                host=pod.status.ip,
                port=port,
                slots=slots,
                draining=pod.drains,
                over_tls=settings.tls,
                asked_first=True,
            )
    ordered = tuple(endpoints[identity] for identity in sorted(endpoints))
    return Found(ordered, total, accelerators, {why: sorted(names) for why, names in sorted(left_out.items())})


def in_words(left_out: dict[str, list[str]], most: int) -> str:
    """Who is left out and why, in at most so many characters."""
    parts = []
    for why, names in left_out.items():
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        parts.append(f"{len(names)} {'pod' if len(names) == 1 else 'pods'} {why}: {shown}")
    text = "; ".join(parts)
    return text if len(text) <= most else text[: most - 1] + "…"


def _age(pod: Pod) -> tuple[str, str]:
    """Greater is younger; the uid decides between equals."""
    return pod.metadata.creation_timestamp or "", pod.metadata.uid


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


def _ports(pod: Pod, targets: tuple[TargetPortSettings, ...]) -> Iterator[int]:
    """The numbers of the target ports, each once; a name that no container has is none."""
    seen = set()
    for target in targets:
        number = target.number if target.name is None else pod.port_named(target.name)
        if number is not None and number not in seen:
            seen.add(number)
            yield number
