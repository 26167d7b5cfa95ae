"""How GitOps tools read the state of a resource: kstatus' rules, and Argo CD's health by this project's script.

The rules are those of kubernetes-sigs/cli-utils, pkg/kstatus/status (`Compute`, `checkGenericProperties`,
`checkGeneration` and `checkReadyCondition`), as far as they concern a kind that kstatus does not know by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lupa import lua51

_GITOPS: Final = Path(__file__).parents[2] / "manifests" / "gitops"
SCRIPT: Final = _GITOPS / "health.lua"
APPLICATIONS: Final = _GITOPS / "application.lua"

ARGO_FOR: Final = {
    "Current": "Healthy",
    "InProgress": "Progressing",
    "Failed": "Degraded",
    "Terminating": "Progressing",
}
"""What Argo CD has to say of a resource in a state of kstatus."""


def kstatus(resource: Mapping[str, Any]) -> str:
    """Current, InProgress, Failed or Terminating."""
    metadata, status = resource["metadata"], resource.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if "observedGeneration" in status and status["observedGeneration"] != metadata.get("generation"):
        return "InProgress"
    said = status.get("conditions") or ()
    for condition in said:
        if (condition["type"], condition["status"]) == ("Reconciling", "True"):
            return "InProgress"
        if (condition["type"], condition["status"]) == ("Stalled", "True"):
            return "Failed"
    ready = [condition["status"] for condition in said if condition["type"] == "Ready"]
    return "Current" if not ready or ready[0] == "True" else "InProgress"


def argo_health(resource: Mapping[str, Any], script: Path = SCRIPT) -> tuple[str, str]:
    """The status and the message that a script gives, run as Argo CD runs it: Lua 5.1, the resource as `obj`."""
    lua = lua51.LuaRuntime(register_eval=False, register_builtins=False)
    lua.globals()["obj"] = lua.table_from(resource, recursive=True)
    for name in ("io", "os", "debug", "require", "dofile", "loadfile", "python"):
        lua.globals()[name] = None
    said = lua.execute(script.read_text(encoding="utf-8"))
    return said["status"], said["message"]
