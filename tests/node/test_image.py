"""The image as its pods have it, looked at from inside the operator's."""

import pytest
from support.cluster.kubectl import KubectlFailed
from support.node.installation import NAMESPACE, OPERATOR

LAB = "import importlib.util, sys; sys.exit(importlib.util.find_spec('fairpool_lab') is not None)"


@pytest.fixture
def inside(installed, kubectl):
    """Runs a command in a pod of the operator."""

    async def run(*command):
        return (await kubectl("exec", "-n", NAMESPACE, f"deployment/{OPERATOR}", "--", *command)).strip()

    return run


class TestTheImage:
    async def test_runs_as_a_user_without_rights_who_can_write_nothing(self, inside):
        assert await inside("id", "-u") == "65532"
        with pytest.raises(KubectlFailed, match="Read-only file system"):
            await inside("python", "-c", "open('/opt/fairpool/x', 'w')")

    async def test_holds_both_programs(self, inside):
        assert "usage: fairpool-gateway" in await inside("fairpool-gateway", "--help")
        assert "usage: fairpool-operator" in await inside("fairpool-operator", "--help")

    async def test_holds_neither_the_lab_nor_what_installed_it(self, inside):
        await inside("python", "-c", LAB)
        for program in ("fairpool", "pip"):
            with pytest.raises(KubectlFailed, match="not found"):
                await inside(program, "--help")
