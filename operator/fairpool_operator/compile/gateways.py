"""What is known of the pool's gateway: from its Deployment, and from its own report.

What always holds: a gateway that serves is available, of whichever edition it is; whether it is of the newest one is
said apart from that. So a rollout is no outage, and nobody takes an edit for made before a gateway is as it says.
"""

from __future__ import annotations

from typing import Final

from fairpool_operator.compile.aspects import ENDPOINTS, GATEWAY, PROGRAMMED
from fairpool_operator.compile.ownership import Ownership, Standing
from fairpool_operator.compile.rollouts import Rollout
from fairpool_operator.errors import NameTaken
from fairpool_operator.resources import FairPool, Finding, GatewayReport
from fairpool_operator.view import View, object_name

FAILED: Final = "GatewayFailed"
STUCK: Final = "RolloutStuck"
"""Reasons that a person has to do something about."""
PAUSED: Final = "RolloutPaused"
"""A person has done something about it."""


def live_report(pool: FairPool, view: View) -> GatewayReport | None:
    """The report of a gateway that is there; what one said that is gone by now is nobody's word."""
    report = pool.status.gateway
    live = {pod.uid for pod in view.pods if pod.is_live}
    return report if report is not None and report.pod_uid in live else None


def gateway_finding(
    view: View,
    owners: Ownership,
    taken: NameTaken | None,
    gateway: Rollout | None,
    *,
    is_awaited: bool,
    is_leaving: bool,
) -> Finding:
    """Whether the gateway serves, `gateway` being what its own Deployment says.

    `is_awaited`: it is to be made once the pool's references are resolved.
    """
    if gateway is not None:
        return _of_rollout(gateway, view)
    match owners.of("Deployment"):
        case Standing.FOREIGN if taken is not None:
            return Finding(GATEWAY, holds=False, reason=taken.reason, message=str(taken))
        case Standing.LEFT_OVER if not is_leaving:
            return _pending("The gateway of a deleted pool of the same name is still ending.")
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


def lagging(gateway: Rollout | None, view: View) -> Finding | None:
    """Why the gateway is not of the newest edition, whatever configuration it uses; None: it is, or there is none."""
    if gateway is None or gateway.is_done:
        return None
    if gateway.serves and (trouble := _trouble(gateway, view)):
        message = f"The gateway is of an earlier edition: its new pod {trouble}"
        return Finding(PROGRAMMED, holds=False, reason=STUCK, message=message)
    if gateway.is_paused:
        message = f"The gateway is of an earlier edition. {_resume(view)}"
        return Finding(PROGRAMMED, holds=False, reason=PAUSED, message=message)
    message = "The gateway's pod of the newest edition is on its way."
    return Finding(PROGRAMMED, holds=None, reason="Pending", message=message)


def _of_rollout(gateway: Rollout, view: View) -> Finding:
    if gateway.serves and gateway.is_done:
        paused = f" {_resume(view)}" if gateway.is_paused else ""
        message = f"The gateway is ready.{_image(gateway)}{paused}"
        return Finding(GATEWAY, holds=True, reason="Available", message=message)
    if trouble := _trouble(gateway, view):
        if gateway.serves:
            message = f"The gateway serves as it was: its new pod {trouble}"
            return Finding(GATEWAY, holds=True, reason=STUCK, message=message)
        return Finding(GATEWAY, holds=False, reason=FAILED, message=f"The gateway's pod {trouble}")
    if gateway.is_paused and not gateway.is_done:
        message = f"{'The gateway serves as it was. ' if gateway.serves else ''}{_resume(view)}"
        return Finding(GATEWAY, holds=gateway.serves, reason=PAUSED, message=message)
    if gateway.serves:
        message = "The gateway serves as it was, until its new pod does."
        return Finding(GATEWAY, holds=True, reason="Available", message=message)
    return Finding(GATEWAY, holds=False, reason="GatewayNotReady", message="The gateway's pod is not ready yet.")


def _trouble(gateway: Rollout, view: View) -> str:
    if gateway.refusal is not None:
        return f"cannot be made: {gateway.refusal}"
    if gateway.is_late:
        look = f"kubectl describe pod -n {view.key.namespace} -l fairpool.dev/pool={view.key.name}"
        return f"does not become ready.{_image(gateway)} See why: {look}"
    return ""


def _image(gateway: Rollout) -> str:
    image = gateway.other_image
    return f" Its image is {image}, for something in the cluster changed the one that it was given." if image else ""


def _resume(view: View) -> str:
    name = object_name("Deployment", view.key.name)
    return (
        "Its Deployment is paused, so it is replaced by no other edition until somebody lets it go on: "
        f"kubectl rollout resume -n {view.key.namespace} deployment/{name}"
    )


def _pending(message: str) -> Finding:
    return Finding(GATEWAY, holds=None, reason="Pending", message=message)
