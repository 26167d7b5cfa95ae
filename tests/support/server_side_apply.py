"""What an API server makes of server-side apply, as far as the operator looks at it: values, defaults, managed fields.

Only the lists that pods and services merge by key are known to it; every other list, and selectors, are set whole.
"""

from __future__ import annotations

import copy
import json
from typing import Any

KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "ownerReferences": ("uid",),
    "conditions": ("type",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
PORT_KEYS = {"containers": ("containerPort", "protocol"), "spec": ("port", "protocol")}
WHOLE = {"selector", "podSelector", "nodeSelector", "roleRef", "fieldRef", "labelSelector", "namespaceSelector"}
IDENTITY = {"apiVersion", "kind"}
OBJECT = {"name", "namespace", "uid", "resourceVersion"}


def keys_of(path: tuple[str, ...]) -> tuple[str, ...] | None:
    """By which fields the items of this list are merged; None: it is set whole."""
    if path[-1:] == ("ports",):
        return PORT_KEYS.get(path[-2]) if "ingress" not in path else None
    return KEYS.get(path[-1])


def field_set(value: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """The `fieldsV1` of what was applied."""
    if isinstance(value, dict) and not (path and path[-1] in WHOLE):
        return {
            f"f:{name}": field_set(each, (*path, name))
            for name, each in value.items()
            if not (path == () and name in IDENTITY) and not (path == ("metadata",) and name in OBJECT)
        }
    if isinstance(value, list) and (keys := keys_of(path)):
        return {
            "k:" + json.dumps({key: each[key] for key in keys}): {".": {}, **field_set(each, (*path[:-1], path[-1]))}
            for each in value
        }
    return {}


def merged(there: Any, wanted: Any, path: tuple[str, ...] = ()) -> Any:
    """What is there, with what is wanted put over it."""
    if isinstance(wanted, dict) and isinstance(there, dict) and not (path and path[-1] in WHOLE):
        both = dict(there)
        for name, each in wanted.items():
            both[name] = merged(there.get(name), each, (*path, name))
        return both
    keys = keys_of(path) if isinstance(wanted, list) and isinstance(there, list) else None
    if keys is None:
        return copy.deepcopy(wanted)

    def find(items: list[Any], item: Any) -> Any:
        return next((each for each in items if all(each.get(key) == item[key] for key in keys)), None)

    kept = [each for each in there if find(wanted, each) is None]
    return [merged(find(there, each) or {}, each, path) for each in wanted] + kept


def applied(wanted: dict[str, Any], there: dict[str, Any] | None = None, manager: str = "fairpool-operator") -> Any:
    """The object after `wanted` has been applied for the first time under this manager's name."""
    result = merged(there or {}, wanted)
    metadata = result.setdefault("metadata", {})
    entries = [each for each in metadata.get("managedFields", []) if each["manager"] != manager]
    entries.append({"manager": manager, "operation": "Apply", "fieldsV1": field_set(wanted)})
    metadata["managedFields"] = entries
    metadata.setdefault("uid", f"uid-of-{wanted['kind']}-{metadata['name']}")
    metadata.setdefault("resourceVersion", "1")
    return result
