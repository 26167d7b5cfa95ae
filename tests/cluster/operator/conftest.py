"""For the tests that need it, an operator of the test's namespace alone."""

import pytest
from support.cluster.definitions import install
from support.cluster.operating import Operator, install_operator


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
