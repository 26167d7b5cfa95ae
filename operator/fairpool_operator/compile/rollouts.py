"""How far the newest edition of a pool's gateway has got: from its Deployment, as the Deployment's controller saw it.

What always holds: an edition is there once it was applied, the controller has seen it, and no pod of an earlier one is
left beside those that end. What the controller said of an earlier edition is no word about this one. How many pods
there are does not matter: another replica of the same edition is not a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairpool_operator.compile.objects import CONTAINER
from fairpool_operator.compile.ownership import Ownership, Standing
from fairpool_operator.compile.wanted import EDITION
from fairpool_operator.view import Object, View


@dataclass(frozen=True, slots=True)
class Rollout:
    """One Deployment.

    Attributes:
        serves: whether any pod does, of whichever edition.
        is_done: whether all pods are of the newest edition.
        is_paused: whether somebody has paused it, so that no pod is replaced.
        refusal: why no pod can be made, in the cluster's words.
        is_late: whether a pod was not ready in time.
        other_image: what the gateway's container runs, where that is not what is wanted.
    """

    serves: bool
    is_done: bool
    is_paused: bool
    refusal: str | None
    is_late: bool
    other_image: str | None


def rollout(view: View, owners: Ownership, objects: Iterable[Object]) -> Rollout | None:
    """The pool's own Deployment beside the one that is wanted, if any is; None: it has none."""
    if owners.of("Deployment") is not Standing.OURS:
        return None
    wanted = next((each for each in objects if each["kind"] == "Deployment"), None)
    return _read(view.owned["Deployment"].object(), wanted)


def _read(there: Object, wanted: Object | None) -> Rollout:
    metadata, spec, status = there["metadata"], there.get("spec") or {}, there.get("status") or {}
    is_applied = wanted is None or _edition(there) == _edition(wanted)
    is_seen = is_applied and (status.get("observedGeneration") or 0) >= (metadata.get("generation") or 0)
    states = {each.get("type"): each for each in status.get("conditions") or ()} if is_seen else {}
    updated = status.get("updatedReplicas") or 0
    image, wanted_image = _image(there), _image(wanted)
    return Rollout(
        serves=(status.get("availableReplicas") or 0) > 0,
        is_done=is_seen and updated > 0 and updated == status.get("replicas"),
        is_paused=bool(spec.get("paused")),
        refusal=states["ReplicaFailure"].get("message", "") if _is(states, "ReplicaFailure", "True") else None,
        is_late=_is(states, "Progressing", "False"),
        other_image=image if wanted_image is not None and image != wanted_image else None,
    )


def _edition(deployment: Object) -> str | None:
    edition: str | None = (deployment["metadata"].get("annotations") or {}).get(EDITION)
    return edition


def _image(deployment: Object | None) -> str | None:
    pod = ((deployment or {}).get("spec") or {}).get("template", {}).get("spec") or {}
    return next((each.get("image") for each in pod.get("containers") or () if each.get("name") == CONTAINER), None)


def _is(states: Mapping[Any, Mapping[str, Any]], type_: str, status: str) -> bool:
    return states.get(type_, {}).get("status") == status
