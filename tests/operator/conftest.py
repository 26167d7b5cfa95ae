"""For the tests of looks, a server in memory with a pool and a tenant, and somebody who looks at the pool."""

import pytest
from support.reconciling import Server, looks_at
from support.resources import fair_pool, tenant_weight


@pytest.fixture
def server():
    """What is there."""
    return Server(fair_pool(gateway={"networkPolicy": {}}), tenant_weight())


@pytest.fixture
def look(server):
    """Puts resources there, looks at the pool, and returns what was written."""
    return looks_at(server)
