"""What people install is admitted as it is, and gives the operator just what it needs."""

from support.cluster.operating import ROOT

BASE = str(ROOT / "manifests" / "base")


class TestTheInstallation:
    async def test_is_admitted_whole(self, kubectl, crds):
        rendered = await kubectl("kustomize", BASE)
        said = await kubectl("apply", "--dry-run=server", "-f", "-", "-n", "default", stdin=outside_namespaces(rendered))
        for kind in ("serviceaccount", "deployment.apps", "role.rbac", "rolebinding.rbac", "clusterrole.rbac", "customres"):
            assert f"{kind}" in said

    async def test_runs_in_a_restricted_namespace(self, kubectl, crds):
        await kubectl("apply", "-f", f"{BASE}/namespace.yaml")
        try:
            said = await kubectl("apply", "-k", BASE, "--dry-run=server")
        finally:
            await kubectl("delete", "namespace", "fairpool-system", "--wait=false")
        assert "deployment.apps/fairpool-operator created" in said
        assert "Warning" not in said


def outside_namespaces(rendered):
    """The same objects in a namespace that is there."""
    return rendered.replace("namespace: fairpool-system", "namespace: default")
