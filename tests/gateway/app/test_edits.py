"""Edits of the configuration and of the endpoints' credential, while the gateway runs."""

import asyncio
import contextlib
import json
import logging
import sys

import pytest
from support.answering import answering_endpoint
from support.config import digest_of, pool_document
from support.gateway import running_gateway
from support.scripted_endpoint import until
from support.tenant import pool_over, request_bytes, wire

from fairpool_gateway.app import edits
from fairpool_gateway.app.credential import read_credential
from fairpool_gateway.app.edits import Edits
from fairpool_gateway.config import CredentialSettings, PoolConfig, dump
from fairpool_gateway.errors import ConfigInvalid


def in_file(path):
    return CredentialSettings(from_file=str(path))


def problem_of(place):
    with pytest.raises(ConfigInvalid) as refused:
        read_credential(place)
    return refused.value.problems


class TestACredential:
    @pytest.mark.parametrize("content", [b"sk-engine", b"sk-engine\n", b"\n  sk-engine\r\n"])
    def test_is_read_without_the_space_around_it(self, tmp_path, content):
        (tmp_path / "key").write_bytes(content)
        assert read_credential(in_file(tmp_path / "key")) == b"sk-engine"

    def test_is_read_from_the_environment(self, monkeypatch):
        monkeypatch.setenv("ENGINE_KEY", "sk-engine")
        assert read_credential(CredentialSettings(from_environment="ENGINE_KEY")) == b"sk-engine"

    def test_need_not_be(self):
        assert read_credential(None) is None

    @pytest.mark.parametrize(
        "content", [b"sk hidden", b"sk\nhidden", b"hidden\x00", "hiddén".encode(), b"hidden" * 2000]
    )
    def test_that_cannot_be_sent_in_a_header_is_refused_and_not_repeated(self, tmp_path, content):
        (tmp_path / "key").write_bytes(content)
        assert problem_of(in_file(tmp_path / "key")) == [
            "endpointCredential.fromFile: what is in it is no credential: one line, without spaces, is needed"
        ]

    def test_that_is_not_there_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.delenv("ENGINE_KEY", raising=False)
        (tmp_path / "empty").write_bytes(b"\n")
        assert problem_of(in_file(tmp_path / "none")) == [
            "endpointCredential.fromFile: cannot be read: No such file or directory"
        ]
        assert problem_of(in_file(tmp_path)) == ["endpointCredential.fromFile: cannot be read: Is a directory"]
        assert problem_of(in_file(tmp_path / "empty")) == ["endpointCredential.fromFile: there is nothing in it"]
        assert problem_of(CredentialSettings(from_environment="ENGINE_KEY")) == [
            "endpointCredential.fromEnvironment: there is no such variable"
        ]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(edits, "READ_EVERY", 0.02)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "pool.json"


@pytest.fixture
def key(tmp_path):
    key = tmp_path / "engine-key"
    key.write_text("first")
    return key


@contextlib.asynccontextmanager
async def followed(file, config):
    """A gateway that follows its file."""
    file.write_text(dump(config))
    async with running_gateway(config) as gateway:
        stop = asyncio.Event()
        task = asyncio.create_task(Edits(gateway.gateway, str(file)).follow_file(file, stop))
        try:
            yield gateway
        finally:
            stop.set()
            await task


def pool(key=None, **fields):
    credential = {} if key is None else {"endpointCredential": {"fromFile": str(key)}}
    return pool_over("http://127.0.0.1:1", **credential, **fields)


@pytest.mark.usefixtures("quick")
class TestAnEdit:
    async def test_comes_into_force(self, file):
        async with followed(file, pool()) as gateway:
            file.write_text(dump(pool(defaultWeight=7)))
            await until(lambda: gateway.gateway.config.default_weight == 7)

    async def test_that_cannot_be_used_changes_nothing_and_is_told(self, file):
        async with followed(file, pool()) as gateway:
            file.write_text("pool: a b")
            await until(lambda: gateway.gateway.config_problem)
            assert gateway.gateway.config == pool()
            assert "must be a DNS label" in (await gateway.admin("/readyz")).json()["config"]

    async def test_drops_no_request_whatever_it_takes_away(self):
        async with contextlib.AsyncExitStack() as stack:
            before, after = [await stack.enter_async_context(answering_endpoint()) for _ in range(2)]
            before.may_answer.clear()
            gateway = await stack.enter_async_context(
                running_gateway(
                    pool_over(before.url, slots={"perEndpoint": 1}, queue={"perTenant": {"maxRequests": 2}})
                )
            )
            lines = [await stack.enter_async_context(wire(gateway)) for _ in range(4)]
            for line, name in zip(lines, "abab", strict=True):
                await line.send(request_bytes(name=name))
            await until(lambda: before.asked and gateway.dispatcher.admission.waiting == 3)
            # Their key, their tenant, their model and their endpoint go, and there is less room than they take.
            fields = {"tenants": [{"name": "a", "keys": [{"digest": digest_of("another")}]}], "models": ["another"]}
            bounds = {"maxRequests": 1, "maxBytes": "32Mi"}
            document = pool_document(endpoints=[{"name": "e", "url": after.url}], queue=bounds, **fields)
            gateway.gateway.apply(PoolConfig.model_validate(document))
            before.may_answer.set()
            assert [(await line.answer())[0] for line in lines] == [200] * 4
            assert (len(before.asked), len(after.asked)) == (1, 3)
            assert gateway.in_flight == gateway.dispatcher.admission.waiting == 0

    async def test_comes_into_force_with_its_credential(self, file, key):
        async with followed(file, pool()) as gateway:
            assert gateway.gateway.credential is None
            file.write_text(dump(pool(key)))
            await until(lambda: gateway.gateway.credential == b"first")

    async def test_whose_credential_is_not_there_waits_for_it(self, file, key, tmp_path):
        other = tmp_path / "other-key"
        async with followed(file, pool(key)) as gateway:
            file.write_text(dump(pool(other, defaultWeight=7)))
            await until(lambda: gateway.gateway.config_problem)
            assert (gateway.gateway.config, gateway.gateway.credential) == (pool(key), b"first")
            other.write_text("second")
            await until(lambda: gateway.gateway.config.default_weight == 7)
            assert (gateway.gateway.config_problem, gateway.gateway.credential) == (None, b"second")

    async def test_that_waits_gives_way_to_the_next(self, file, key, tmp_path):
        other = tmp_path / "other-key"
        async with followed(file, pool(key)) as gateway:
            file.write_text(dump(pool(other, defaultWeight=7)))
            await until(lambda: gateway.gateway.config_problem)
            file.write_text(dump(pool(key, defaultWeight=8)))
            await until(lambda: gateway.gateway.config.default_weight == 8)
            other.write_text("of the edit that waited")
            key.write_text("second")
            await until(lambda: gateway.gateway.credential == b"second")
            assert gateway.gateway.config.default_weight == 8

    async def test_without_a_credential_sends_none(self, file, key):
        async with followed(file, pool(key)) as gateway:
            file.write_text(dump(pool()))
            await until(lambda: gateway.gateway.credential is None)


@pytest.mark.usefixtures("quick")
class TestACredentialThatIsReplaced:
    async def test_is_sent_without_a_restart(self, file, key):
        async with followed(file, pool(key)) as gateway:
            key.write_text("second")
            await until(lambda: gateway.gateway.credential == b"second")

    async def test_goes_on_being_sent_while_it_cannot_be_read_and_that_is_told_once(self, file, key, caplog):
        async with followed(file, pool(key)) as gateway:
            key.write_text("two words")
            await until(lambda: gateway.gateway.credential_problem)
            told = (await gateway.admin("/readyz")).json()["credential"]
            assert told.startswith("the last one is still sent to endpoints: endpointCredential.fromFile: ")
            assert gateway.gateway.credential == b"first"
            key.write_text("second")
            await until(lambda: gateway.gateway.credential == b"second")
            assert "credential" not in (await gateway.admin("/readyz")).json()
        errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert len(errors) == 1
        assert "two words" not in caplog.text


async def test_a_gateway_whose_credential_is_not_there_does_not_start(tmp_path):
    config = tmp_path / "pool.json"
    config.write_text(json.dumps(pool_document(endpointCredential={"fromFile": str(tmp_path / "none")})))

    async def told(*arguments):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fairpool_gateway", "--config", str(config), *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        return process.returncode, said.decode()

    status, said = await told("--port", "0", "--admin-port", "0")
    assert status == 2
    assert "endpointCredential.fromFile: cannot be read: No such file or directory" in said
    assert (await told("--check"))[0] == 0
