"""One real control plane for all tests here, and for each test a namespace of its own. README.md says how to use it."""

from pathlib import Path

import pytest
from support.cluster.client import running_client
from support.cluster.control_plane import ControlPlane
from support.cluster.definitions import install
from support.cluster.kubectl import Kubectl
from support.cluster.namespaces import new_namespace
from support.cluster.programs import Programs

HERE = Path(__file__).parent
PLANE = pytest.StashKey[ControlPlane]()


@pytest.fixture(scope="session")
def programs():
    """Kubernetes' programs, built now if nobody ran `make kubernetes`."""
    return Programs.find()


@pytest.fixture(scope="session")
def plane(programs, request, tmp_path_factory):
    """The control plane, whose servers run while tests need them."""
    plane = ControlPlane(programs, tmp_path_factory.mktemp("control-plane"))
    request.config.stash[PLANE] = plane
    try:
        yield plane
    finally:
        plane.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """End its servers after the last test here, so that they are in no other test's way."""
    yield
    plane = item.config.stash.get(PLANE, None)
    if plane is not None and (nextitem is None or HERE not in nextitem.path.parents):
        plane.stop()


@pytest.fixture
def control_plane(plane):
    """A running etcd and API server, also after a test that left them killed."""
    if not plane.running:
        plane.start()
    return plane


@pytest.fixture
def controllers(control_plane):
    """The control plane with its controllers: garbage collection, namespaces, Deployments."""
    control_plane.start_controllers()
    return control_plane


@pytest.fixture
async def admin(control_plane):
    """A client that may do everything."""
    async with running_client(control_plane.access) as client:
        yield client


@pytest.fixture
async def crds(admin):
    """FairPool and TenantWeight can be made. They stay, for all tests."""
    await install(admin)


@pytest.fixture
async def namespace(admin):
    """The name of the test's own namespace."""
    async with new_namespace(admin) as name:
        yield name


@pytest.fixture
def kubectl(control_plane, namespace, tmp_path):
    """kubectl as the administrator, in the test's namespace."""
    kubeconfig = control_plane.access.write(tmp_path / "admin.kubeconfig", namespace)
    return Kubectl(control_plane.programs.kubectl, kubeconfig, tmp_path)
