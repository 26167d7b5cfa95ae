"""A pool that people have applied, with one tenant, two GPU pods, an operator and the gateway."""

from contextlib import asynccontextmanager

import pytest
from support.cluster.whole import gateway_of_pool, new_key, pool_of, tenant_with_key


@pytest.fixture
def key():
    """The tenant's."""
    return new_key()


@pytest.fixture
def running_gateway(crds, operator, admin, control_plane, namespace, tmp_path):
    """Runs the pool's gateway for a block."""

    @asynccontextmanager
    async def run(**how):
        async with gateway_of_pool(admin, control_plane.access, namespace, tmp_path, **how) as gateway:
            yield gateway

    return run


@pytest.fixture
async def gateway(running_gateway, kubectl, namespace, pods, key):
    """The gateway of a pool that serves: tenant `search` with `key`, pods `gpu-0` and `gpu-1`."""
    await pods.serve("gpu-0", "sim")
    await pods.serve("gpu-1", "sim")
    await kubectl.apply([pool_of(namespace, pods), *tenant_with_key(namespace, "search", key, weight=300)])
    async with running_gateway() as gateway:
        await gateway.accepts(key)
        yield gateway
