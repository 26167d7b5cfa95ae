"""A pool, its Secret and its gateway's own ServiceAccount, in the test's namespace."""

import contextlib

import openai
import pytest
from support.cluster.gateway import PoolInCluster, gateway_in
from support.config import key_of


@pytest.fixture
async def pool(crds, admin, namespace, pods):
    """A FairPool whose gateway the test starts; its Secret is not there yet."""
    return PoolInCluster(admin, namespace, pods)


@pytest.fixture
async def access(pool, account):
    """The gateway's."""
    return await pool.create(account)


@pytest.fixture
def start(access, namespace, tmp_path):
    """Starts the gateway: `async with start("--decision-log", file, via=network.url) as gateway`."""

    @contextlib.asynccontextmanager
    async def start(*arguments, via=None, uid="pod-uid", waits=False):
        way = access if via is None else access.via(via)
        async with gateway_in(namespace, way, tmp_path, *arguments, uid=uid) as gateway:
            if not waits:
                await gateway.listens()
            yield gateway

    return start


@pytest.fixture
def ask():
    """Asks as a tenant: `await ask(gateway)`."""

    async def ask(gateway, tenant="a", model="sim", max_tokens=4):
        async with openai.AsyncOpenAI(
            base_url=f"{gateway.url}/v1", api_key=key_of(tenant), max_retries=0, timeout=30
        ) as client:
            return await client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": "hi"}], max_tokens=max_tokens
            )

    return ask
