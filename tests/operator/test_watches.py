"""Following the cluster with kopf, where the process is nobody in particular."""

import asyncio
import getpass

import pytest
from support.api_server import ApiServer

from fairpool_operator.cluster import FAIR_POOL
from fairpool_operator.handlers import Followed, Watches


@pytest.fixture
def nameless(monkeypatch):
    """The user has a number and no name, as in a pod."""

    def getuser():
        raise KeyError("getpwuid(): uid not found: 65532")

    monkeypatch.setattr(getpass, "getuser", getuser)


async def test_a_user_without_a_name_follows_the_cluster(nameless, tmp_path):
    async with ApiServer.listening(tmp_path) as (server, _):
        watches = Watches([Followed(FAIR_POOL)], lambda *_: None, kubeconfig=tmp_path / "kubeconfig")
        following = asyncio.create_task(watches.run(lambda: None))
        try:
            asked = await server.next()
            assert asked.method == "GET"
            assert watches.restarts == 0
        finally:
            following.cancel()
            await asyncio.wait([following])
