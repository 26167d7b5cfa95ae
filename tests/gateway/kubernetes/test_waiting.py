"""A gateway whose configuration is in a Secret begins with what it can serve, and says until then what is missing."""

import asyncio
import base64
import contextlib
import gzip

import httpx
import pytest
from support.api_server import ApiServer
from support.config import pool_config
from support.scripted_endpoint import PATIENCE

from fairpool_gateway.app import waiting
from fairpool_gateway.app.kubernetes import Kubernetes, Place
from fairpool_gateway.app.server import listen
from fairpool_gateway.app.waiting import FirstConfig
from fairpool_gateway.config import dump
from fairpool_gateway.configwatch.secret import hash_of

PLACE = Place("inference", pool="llama", config_secret="llama-fairpool-config")


def secret(config):
    packed = base64.b64encode(gzip.compress(dump(config).encode())).decode()
    return {"metadata": {"name": "llama-fairpool-config", "uid": "1"}, "data": {"config.json.gz": packed}}


@pytest.fixture
async def begun(tmp_path, monkeypatch):
    """The API server, what the gateway says of itself, and what comes of the waiting."""
    monkeypatch.setattr(waiting, "_TRY_EVERY", 0.02)
    async with contextlib.AsyncExitStack() as stack:
        server, cluster = await stack.enter_async_context(ApiServer.listening(tmp_path))
        port = stack.enter_context(listen("127.0.0.1", 0))
        client = await stack.enter_async_context(
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port.getsockname()[1]}")
        )
        stop = asyncio.Event()
        found = asyncio.create_task(FirstConfig(Kubernetes(PLACE, cluster)).wait(port, stop))
        yield server, client, found
        stop.set()
        await asyncio.wait([found])


async def says(client, words):
    async with asyncio.timeout(PATIENCE):
        while words not in (answer := await client.get("/readyz")).text:  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.01)
    assert answer.status_code == 503


async def test_it_says_that_it_is_not_answered_yet_and_lives(begun):
    server, client, _ = begun
    await server.next()
    await says(client, "Secret inference/llama-fairpool-config: has not been listed yet")
    assert (await client.get("/healthz")).status_code == 200


async def test_it_begins_with_a_configuration_that_can_be_served_and_knows_its_hash(begun):
    server, _, found = begun
    config = pool_config()
    await (await server.next()).list(secret(config))
    assert await found == (config, hash_of(dump(config).encode()))


async def test_it_waits_for_a_credential_that_is_not_there_yet(begun, tmp_path):
    server, client, found = begun
    file = tmp_path / "engine-key"
    config = pool_config(endpointCredential={"fromFile": str(file)})
    await (await server.next()).list(secret(config))
    await says(client, "endpointCredential.fromFile: cannot be read: No such file or directory")
    file.write_text("an-engine-key")
    assert (await found)[0] == config


async def test_what_came_first_and_could_not_be_used_does_not_stand_in_the_way(begun):
    server, client, found = begun
    await (await server.next()).list({"metadata": {"name": "llama-fairpool-config", "uid": "1"}})
    await says(client, "has no config.json.gz")
    watch = await server.next()
    await watch.open()
    config = pool_config(default_weight=7)
    await watch.tell("MODIFIED", secret(config))
    assert (await found)[0] == config
