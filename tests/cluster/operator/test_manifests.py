"""What people install is admitted as it is: the definitions, the roles, and an operator under `restricted`."""

from support.cluster.operating import ROOT

BASE = str(ROOT / "manifests" / "base")
KINDS = ("serviceaccount", "deployment.apps", "role.rbac", "rolebinding.rbac", "clusterrole.rbac", "customresourcedef")


async def test_the_installation_is_admitted_in_its_restricted_namespace(kubectl, crds):
    await kubectl("apply", "-f", f"{BASE}/namespace.yaml")
    try:
        said = await kubectl("apply", "-k", BASE, "--dry-run=server")
    finally:
        await kubectl("delete", "namespace", "fairpool-system", "--wait=false")
    assert [kind for kind in KINDS if f"\n{kind}" not in f"\n{said}"] == []
    assert "Warning" not in said
