"""Servers of llama.cpp for all tests here, and a gateway in front of one on the loop of production."""

import asyncio

import pytest
import uvloop
from support.gateway import running_gateway
from support.llama import model as tiny_model
from support.llama.build import cached
from support.llama.pool import pool_over_llama
from support.llama.server import llama_server
from support.tenant import tenant


def pytest_asyncio_loop_factories(config, item):
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session", autouse=True)
def binary():
    if not cached().exists():
        pytest.exit("llama.cpp's server is not built yet: `make test-engine` builds it", returncode=2)


@pytest.fixture(scope="session")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("llama")


@pytest.fixture(scope="session")
def model(directory):
    """Half a megabyte, thousands of tokens a second."""
    return tiny_model.write(directory / "tiny.gguf")


@pytest.fixture(scope="session")
def slow_model(directory):
    """85 MB, and as many tokens a second as leave time to do something meanwhile."""
    return tiny_model.write(directory / "slow.gguf", width=512, layers=8)


@pytest.fixture(scope="session")
def engine(binary, model, directory):
    with llama_server(model, directory) as server:
        yield server


@pytest.fixture(scope="session")
def slow_engine(binary, slow_model, directory):
    # It looks for what has been cancelled after each batch of a prompt: small ones are read in less than a second.
    with llama_server(slow_model, directory, "--batch-size", "32", "--ubatch-size", "32") as server:
        yield server


@pytest.fixture
async def gateway(engine):
    async with running_gateway(pool_over_llama(engine.url)) as gateway:
        yield gateway
        assert gateway.in_flight == 0
    assert await engine.running() == 0


@pytest.fixture
async def client(gateway):
    """Tenant `a`, with the official client."""
    async with tenant(gateway) as client:
        yield client


@pytest.fixture(autouse=True)
async def nothing_unhandled():
    """No callback fails unseen."""
    unhandled = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    yield
    assert not unhandled
