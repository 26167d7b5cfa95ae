"""docs/security.md lists what the code and the definitions allow, no more and no less."""

import re

import yaml
from support.compiling import SmallCluster
from support.manifests import MANIFESTS, documents, of_kind
from support.pages import PAGES, ROOT, section
from support.resources import fair_pool

from fairpool_gateway.app import headers
from fairpool_gateway.tallies import MOST_TENANTS

PAGE = PAGES / "security.md"
POOL = yaml.safe_load((ROOT / "crds" / "fairpool.dev_fairpools.yaml").read_text(encoding="utf-8"))
SPEC = POOL["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


def test_a_pool_chooses_these_parts_of_its_gateways_pod_and_no_others():
    said = section(PAGE, "The author of a FairPool").split("of its template ")[1].split(".\n")[0]
    assert set(re.findall(r"`(\w+)`", said)) == set(SPEC["gateway"]["properties"]["podTemplate"]["properties"])


def test_a_pool_has_no_address_to_send_requests_to():
    assert not {"url", "urls", "host", "addresses"} & SPEC["endpoints"]["properties"].keys()


def test_these_headers_never_reach_an_engine():
    said = section(PAGE, "A tenant").split("and headers that begin with")[0].split("- ")[-1]
    assert {each.lower().encode() for each in re.findall(r"`([\w-]+)`", said)} == headers._CREDENTIALS


def test_so_many_tenants_are_told_apart_in_metrics():
    assert f"for the first {MOST_TENANTS} tenants only" in section(PAGE, "A tenant")


def test_both_pods_are_restricted():
    (operator,) = of_kind(documents(MANIFESTS / "base" / "operator.yaml"), "Deployment")
    gateway = {each["kind"]: each for each in SmallCluster(fair_pool()).compiled().objects}["Deployment"]
    for each in (operator, gateway):
        pod = each["spec"]["template"]["spec"]
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        assert all(
            container["securityContext"]
            == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            for container in pod["containers"]
        )


def test_admin_port_is_on_no_service():
    objects = {each["kind"]: each for each in SmallCluster(fair_pool()).compiled().objects}
    assert [port["targetPort"] for port in objects["Service"]["spec"]["ports"]] == ["http"]
