"""What is known of the pool's gateway: from its Deployment, and from its own report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairpool_operator.compile.aspects import ENDPOINTS, GATEWAY
from fairpool_operator.compile.ownership import Ownership, Standing
from fairpool_operator.errors import NameTaken
from fairpool_operator.resources import FairPool, Finding, GatewayReport
from fairpool_operator.view import View

FAILED: Final = "GatewayFailed"
STUCK: Final = "RolloutStuck"
"""Reasons that a person has to do something about."""


def live_report(pool: FairPool, view: View) -> GatewayReport | None:
    """The report of a gateway that is there; what one said that is gone by now is nobody's word."""
    report = pool.status.gateway
    live = {pod.uid for pod in view.pods if pod.is_live}
    return report if report is not None and report.pod_uid in live else None


def gateway_finding(
    view: View, owners: Ownership, taken: NameTaken | None, *, is_awaited: bool, is_leaving: bool
) -> Finding:
    """Whether the gateway serves; `is_awaited`: it is to be made once the pool's references are resolved."""
    match owners.of("Deployment"):
        case Standing.FOREIGN if taken is not None:
            return Finding(GATEWAY, holds=False, reason=taken.reason, message=str(taken))
        case Standing.LEFT_OVER if not is_leaving:
            return _pending("The gateway of a deleted pool of the same name is still ending.")
        case Standing.OURS:
            return _of_deployment(view)
        case _ if is_leaving:
            return _pending("The pool is being deleted, and has no gateway any more.")
        case _ if is_awaited:
            return _pending(
                "The gateway is made as soon as the pool is accepted and every Secret that it names is there."
            )
        case _:
            return _pending("The gateway is being made.")


def endpoints_finding(report: GatewayReport | None) -> Finding:
    """Whether there is an endpoint to send requests to."""
    if report is None:
        message = "No gateway says yet which endpoints it has found."
        return Finding(ENDPOINTS, holds=None, reason="GatewayNotReporting", message=message)
    left_out = f" Left out: {report.left_out}" if report.left_out else ""
    draining = f", {report.endpoints_draining} draining" if report.endpoints_draining else ""
    if report.endpoints_ready:
        message = f"{report.endpoints_ready} of {report.endpoints_total} endpoints are ready{draining}.{left_out}"
        return Finding(ENDPOINTS, holds=True, reason="EndpointsReady", message=message)
    if report.endpoints_total:
        message = f"None of {report.endpoints_total} endpoints is ready{draining}: look at their pods.{left_out}"
        return Finding(ENDPOINTS, holds=False, reason="NoEndpointReady", message=message)
    message = (
        "No pod is an endpoint: requests wait, then are answered with 503. Start pods that spec.endpoints.selector "
        f"chooses, that have its ports and, unless its policy is Observe, accelerators.{left_out}"
    )
    return Finding(ENDPOINTS, holds=False, reason="NoEndpoint", message=message)


def _of_deployment(view: View) -> Finding:
    status = view.owned["Deployment"].object().get("status") or {}
    states = {each.get("type"): each for each in status.get("conditions") or ()}
    if _is(states, "Available", "True"):
        if _is(states, "Progressing", "False"):
            message = f"The gateway serves as it was: its new pod does not become ready. {_look(view)}"
            return Finding(GATEWAY, holds=True, reason=STUCK, message=message)
        return Finding(GATEWAY, holds=True, reason="Available", message="The gateway is ready.")
    if _is(states, "ReplicaFailure", "True"):
        said = states["ReplicaFailure"].get("message", "")
        return Finding(GATEWAY, holds=False, reason=FAILED, message=f"The gateway's pod cannot be made: {said}")
    if _is(states, "Progressing", "False"):
        message = f"The gateway's pod does not become ready. {_look(view)}"
        return Finding(GATEWAY, holds=False, reason=FAILED, message=message)
    return Finding(GATEWAY, holds=False, reason="GatewayNotReady", message="The gateway's pod is not ready yet.")


def _is(states: Mapping[Any, Mapping[str, Any]], type_: str, status: str) -> bool:
    return states.get(type_, {}).get("status") == status


def _look(view: View) -> str:
    return f"See why: kubectl describe pod -n {view.key.namespace} -l fairpool.dev/pool={view.key.name}"


def _pending(message: str) -> Finding:
    return Finding(GATEWAY, holds=None, reason="Pending", message=message)
