"""One node for all tests here, on a machine of their own, with the operator. README.md says how to use it."""

import asyncio

import pytest
from support.cluster.build import kubernetes
from support.cluster.client import CONFIG_MAP, running_client
from support.cluster.kubectl import Kubectl
from support.cluster.namespaces import new_namespace
from support.cluster.waiting import eventually
from support.node.alone import inside, made_before
from support.node.asking import PATIENCE, first_answer
from support.node.groups import weighing
from support.node.installation import install
from support.node.node import Node
from support.node.pools import Pool

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@pytest.fixture(scope="session", autouse=True)
def alone():
    if not inside():
        pytest.exit("these tests make a node of the machine: `make test-cluster` gives them one of their own", 2)


@pytest.fixture(scope="session")
def node(alone, tmp_path_factory):
    node = Node(kubernetes(), tmp_path_factory.mktemp("node"))
    try:
        node.start(made_before())
        yield node
    finally:
        node.close()


@pytest.fixture(scope="session")
def kubectl(node, tmp_path_factory):
    """kubectl as the administrator."""
    home = tmp_path_factory.mktemp("kubectl")
    return Kubectl(node.control_plane.programs.kubectl, node.access.write(home / "config"), home)


@pytest.fixture(scope="session")
def installed(kubectl):
    """The operator is there, two replicas of it."""
    asyncio.run(install(kubectl))
    with weighing():
        yield


@pytest.fixture
async def admin(node):
    """A client that may do everything."""
    async with running_client(node.access) as client:
        yield client


@pytest.fixture
async def namespace(admin):
    """The name of the test's own namespace, which takes only pods without rights.

    Its authority's certificate is there: the kubelet looks for it ever more rarely where a pod came before it.
    """
    async with new_namespace(admin, labels=RESTRICTED) as name:
        await eventually(admin, CONFIG_MAP, "kube-root-ca.crt", name, bool, PATIENCE)
        yield name


@pytest.fixture
def pool(installed, admin, kubectl, namespace):
    """A pool of the test's own, not applied yet."""
    return Pool(admin, kubectl, namespace)


@pytest.fixture
async def serving(pool):
    """The same, with two engines and two tenants, and answering each through its Service."""
    await pool.apply(pool.documents(2))
    await pool.ready()
    await pool.reports(endpointsReady=2)
    await pool.available()
    url = await pool.url()
    for key in pool.keys.values():
        await first_answer(url, key)  # kube-proxy is the last to know, and longer after the API server was away
    return pool


@pytest.fixture
def tell(capsys):
    """Prints a figure whatever pytest captures."""

    def say(words):
        with capsys.disabled():
            print(f"\n  {words}", flush=True)

    return say
