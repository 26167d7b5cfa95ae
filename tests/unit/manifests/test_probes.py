"""What a kubelet asks of both programs: one that cannot do its work yet gets no traffic, and is not killed for it."""

from dataclasses import fields, replace

import httpx
import pytest
from support.manifests import MANIFESTS, container_of, documents, made_for, of_kind
from support.resources import fair_pool

from fairpool_operator.health import health_routes
from fairpool_operator.metrics import Gauges, Tally

OPERATOR = container_of(*of_kind(documents(MANIFESTS / "base" / "operator.yaml"), "Deployment"))
GATEWAY = container_of(made_for(fair_pool())["Deployment"])
LISTED = Gauges(True, True, *[0] * (len(fields(Gauges)) - 2))


@pytest.mark.parametrize(
    ("gauges", "answers"),
    [(LISTED, (200, 200)), (replace(LISTED, synced=False), (200, 503))],
    ids=["listed", "listing"],
)
async def test_an_operator_that_lists_lives_and_is_not_ready(gauges, answers):
    routes = httpx.ASGITransport(health_routes(Tally(), lambda: gauges))
    async with httpx.AsyncClient(transport=routes, base_url="http://operator") as kubelet:
        asked = [OPERATOR[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")]
        assert tuple([(await kubelet.get(path)).status_code for path in asked]) == answers


def test_a_gateway_that_has_no_configuration_yet_is_asked_whether_it_lives_and_apart_from_that_whether_it_serves():
    """tests/gateway has what it answers to both."""
    asked = {probe: GATEWAY[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert asked == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}


@pytest.mark.parametrize("container", [OPERATOR, GATEWAY], ids=["operator", "gateway"])
def test_all_are_asked_on_a_port_that_the_container_has(container):
    named = {port["name"] for port in container["ports"]}
    probes = [value for key, value in container.items() if key.endswith("Probe")]
    assert {probe["httpGet"]["port"] for probe in probes} <= named
