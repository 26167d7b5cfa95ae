"""One real control plane for all tests here, and for each test a namespace of its own. README.md says how to use it."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from support.cluster.accounts import new_account
from support.cluster.client import running_client
from support.cluster.control_plane import ControlPlane
from support.cluster.definitions import install
from support.cluster.kubectl import Kubectl
from support.cluster.lying_proxy import lying_proxy
from support.cluster.namespaces import new_namespace
from support.cluster.operating import Operator, install_operator
from support.cluster.pods import fake_pods
from support.cluster.programs import Programs
from support.cluster.tcp_proxy import tcp_proxy

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
def pytest_runtest_makereport(item, call):
    """Say with a failure where the servers' logs are, which stay as long as pytest keeps its directories."""
    report = yield
    plane = item.config.stash.get(PLANE, None)
    if plane is not None and report.failed:
        report.sections.append(("control plane", f"logs are in {plane.directory}"))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """End its servers after the last test here, so that they are in no other test's way."""
    yield
    plane = item.config.stash.get(PLANE, None)
    if plane is not None and (nextitem is None or HERE not in nextitem.path.parents):
        plane.stop()


@pytest.fixture
def control_plane(plane, request):
    """A running etcd and API server, also after a test that left them killed; controllers only where asked for."""
    if "controllers" not in request.fixturenames:
        plane.stop_controllers()
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
async def namespace(admin, control_plane):
    """The name of the test's own namespace; what the test left killed runs again to remove it."""
    async with new_namespace(admin) as name:
        try:
            yield name
        finally:
            if not control_plane.running:
                await control_plane.resume()


@pytest.fixture
async def pods(admin, namespace):
    """Pods of the test's namespace without a node, and engines behind them."""
    async with fake_pods(admin, namespace) as pods:
        yield pods


@pytest.fixture
async def network(control_plane):
    """A network to the API server that may stall, slow or break."""
    async with tcp_proxy(control_plane.access.url) as proxy:
        yield proxy


@pytest.fixture
async def liar(control_plane, network):
    """An API server that tells the truth until it is told to lie, behind the network."""
    async with lying_proxy(control_plane, network.url) as proxy:
        yield proxy


@pytest.fixture
async def account(admin, control_plane, namespace):
    """Makes a ServiceAccount with just these rules; returns its access to the server."""
    async with AsyncExitStack() as stack:

        async def make(name, *, rules=(), cluster_rules=()):
            made = new_account(admin, control_plane.access, namespace, name, rules=rules, cluster_rules=cluster_rules)
            return await stack.enter_async_context(made)

        yield make


@pytest.fixture
def kubectl(control_plane, namespace, tmp_path):
    """kubectl as the administrator, in the test's namespace."""
    kubeconfig = control_plane.access.write(tmp_path / "admin.kubeconfig", namespace)
    return Kubectl(control_plane.programs.kubectl, kubeconfig, tmp_path)


@pytest.fixture(scope="module")
def operator(plane, tmp_path_factory):
    """An operator of everything, with its own roles only."""
    directory = tmp_path_factory.mktemp("operator")
    with asyncio.Runner() as runner:
        home = HomeOf(plane, runner)
        running = Operator(home.access, home.namespace, directory, identity="operator")
        running.start()
        try:
            yield running
        finally:
            running.kill()
            home.close()
            print(running.said[-6000:])


class HomeOf:
    """The namespace of an operator of everything, kept open across the tests of a module."""

    def __init__(self, plane, runner):
        self._runner = runner
        if not plane.running:
            plane.start()
        self._block = self._open(plane.access)
        self.namespace, self.access = runner.run(anext(self._block))

    async def _open(self, access):
        async with running_client(access) as admin, new_namespace(admin, "operator") as namespace:
            await install(admin)
            yield namespace, await install_operator(admin, access, namespace, everywhere=True)

    def close(self):
        """Remove the namespace."""
        self._runner.run(self._block.aclose())
