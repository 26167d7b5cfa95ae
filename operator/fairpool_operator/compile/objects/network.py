"""How the gateway is reached: its Service and, where a pool asks for it, a policy that says by whom."""

from __future__ import annotations

from typing import Any

from fairpool_operator.compile.objects.common import ADMIN_PORT, PORT, SERVING, chosen_by, named, plain
from fairpool_operator.resources import FairPool, NetworkPolicySettings
from fairpool_operator.view import Object


def service(pool: FairPool) -> Object:
    """The address of the pool. The admin port is reached at the pod only."""
    gateway = pool.spec.gateway
    port = {
        "name": "https" if gateway.tls else "http",
        "port": gateway.port,
        "protocol": "TCP",
        "targetPort": SERVING,
    }
    made = named(
        "v1", "Service", pool, spec={"type": gateway.service.type, "selector": chosen_by(pool), "ports": [port]}
    )
    if gateway.service.annotations:
        made["metadata"]["annotations"] = dict(gateway.service.annotations)
    return made


def network_policy(pool: FairPool, settings: NetworkPolicySettings) -> Object:
    """Who may connect to the gateway's pod; the node that it runs on always may, so probes need no rule."""
    ingress: list[dict[str, Any]] = [{"ports": [{"port": PORT, "protocol": "TCP"}]}]
    if settings.tenants:
        ingress[0]["from"] = [plain(peer) for peer in settings.tenants]
    if settings.monitoring:
        monitoring = [plain(peer) for peer in settings.monitoring]
        ingress.append({"ports": [{"port": ADMIN_PORT, "protocol": "TCP"}], "from": monitoring})
    spec = {"podSelector": {"matchLabels": chosen_by(pool)}, "policyTypes": ["Ingress"], "ingress": ingress}
    return named("networking.k8s.io/v1", "NetworkPolicy", pool, spec=spec)
