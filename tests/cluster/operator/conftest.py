"""An operator of the whole cluster for each module, and for those that need it one of the test's namespace alone."""

import asyncio

import pytest
from support.cluster.client import running_client
from support.cluster.definitions import install
from support.cluster.namespaces import new_namespace
from support.cluster.operating import Operator, install_operator


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


@pytest.fixture
async def definitions(admin):
    """The custom resources, served."""
    await install(admin)


@pytest.fixture
async def own_access(definitions, admin, control_plane, namespace):
    """What an operator of the test's namespace alone may do."""
    return await install_operator(admin, control_plane.access, namespace)


@pytest.fixture
def own_operators(own_access, namespace, tmp_path):
    """Makes operators of the test's namespace alone, which its end kills."""
    made = []

    def make(identity="operator", *arguments, access=own_access):
        made.append(Operator(access, namespace, tmp_path, "--namespace", namespace, *arguments, identity=identity))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        each.kill()
        print(each.name, each.said[-6000:])


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
