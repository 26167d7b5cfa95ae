"""The operator on the node, installed, upgraded and taken back as people do: by applying what kustomize makes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from support.cluster.kubectl import Kubectl

NAMESPACE: Final = "fairpool-system"
OPERATOR: Final = "fairpool-operator"
OVERLAY: Final = Path(__file__).parents[2] / "node" / "overlay"
TAG: Final = "dev"

_SERVER_SIDE: Final = ("--server-side", "--force-conflicts")


async def install(kubectl: Kubectl) -> None:
    """Apply the overlay, and wait until the definitions are served and both replicas of the operator are ready."""
    await kubectl("apply", *_SERVER_SIDE, "-k", str(OVERLAY))
    await kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=60s")
    await rolled_out(kubectl)


async def upgrade(kubectl: Kubectl, *, operator: str = TAG, gateway: str = TAG) -> None:
    """Apply it with other tags of the image, as an edit of the overlay in Git would."""
    made = await kubectl("kustomize", str(OVERLAY))
    made = made.replace(f"image: fairpool:{TAG}", f"image: fairpool:{operator}")
    made = made.replace(f"value: fairpool:{TAG}", f"value: fairpool:{gateway}")
    await kubectl("apply", *_SERVER_SIDE, "-f", "-", stdin=made)
    await rolled_out(kubectl)


async def rolled_out(kubectl: Kubectl) -> None:
    """Wait until all of the operator's replicas are those last applied, and ready."""
    await kubectl("rollout", "status", f"deployment/{OPERATOR}", "-n", NAMESPACE, "--timeout=120s")
