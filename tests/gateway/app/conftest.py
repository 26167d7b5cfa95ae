"""Every test here runs on the loop of production, and nothing in it fails unseen."""

import asyncio
import logging

import pytest
import uvloop
from support.certificates import Authority


def pytest_asyncio_loop_factories(config, item):
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
async def nothing_unhandled(caplog):
    """No callback fails, and the server has nothing to say of requests that ended in ways it did not expect."""
    unhandled = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    yield
    assert not unhandled
    server = [record for record in caplog.get_records("call") if record.name.startswith("uvicorn")]
    assert not [record.getMessage() for record in server if record.levelno >= logging.WARNING]


@pytest.fixture
def authority(tmp_path):
    """Who vouches for certificates."""
    return Authority(tmp_path)


@pytest.fixture
def volume(tmp_path):
    """Where a certificate and its key are put."""
    return tmp_path / "volume"
