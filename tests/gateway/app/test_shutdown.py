"""From SIGTERM to the end: nothing that was sent is lost."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys

import httpx
import openai
import pytest
from support.config import key_of, pool_config, pool_document
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import until

from fairpool_gateway.app import shutdown
from fairpool_gateway.app.shutdown import Phase, Shutdown

QUESTION = {"model": "sim", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}
KEY = {"authorization": f"Bearer {key_of('a')}"}


def pool(*urls, **fields):
    return {
        "models": ["sim"],
        "tenants": [{"name": "a"}],
        "endpoints": [{"name": f"e{number}", "url": url} for number, url in enumerate(urls)],
        **fields,
    }


class TestLingering:
    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch):
        monkeypatch.setattr(shutdown, "QUIET_SECONDS", 0.05)
        monkeypatch.setattr(shutdown, "LONGEST_LINGER_SECONDS", 0.5)

    async def test_standalone_it_drains_at_once(self):
        leaving = Shutdown(in_pod=False)
        await leaving.linger()
        assert leaving.phase is Phase.DRAINING

    async def test_in_a_pod_it_drains_when_nothing_has_arrived_for_a_while(self):
        leaving, loop = Shutdown(in_pod=True), asyncio.get_running_loop()
        task, began = asyncio.create_task(leaving.linger()), loop.time()
        await asyncio.sleep(0)
        assert leaving.phase is Phase.LINGERING
        last = began + 0.04
        loop.call_at(last, leaving.arrived)
        await task
        assert loop.time() >= last + 0.05

    async def test_in_a_pod_it_drains_after_a_time_however_much_arrives(self):
        leaving, loop = Shutdown(in_pod=True), asyncio.get_running_loop()
        began = loop.time()
        busy = asyncio.create_task(self.keep_arriving(leaving))
        await leaving.linger()
        busy.cancel()
        assert loop.time() >= began + 0.5

    @staticmethod
    async def keep_arriving(leaving):
        while True:
            leaving.arrived()
            await asyncio.sleep(0.01)


class TestPhases:
    async def test_while_it_lingers_it_is_ready_and_answers_and_closes(self):
        async with running_engine() as engine, running_gateway(pool_config(**pool(engine.url))) as gateway:
            gateway.gateway.shutdown.phase = Phase.LINGERING
            assert (await gateway.admin("/readyz")).status_code == 200
            async with httpx.AsyncClient() as client:
                answer = await client.post(f"{gateway.url}/v1/chat/completions", json=QUESTION, headers=KEY)
            assert answer.status_code == 200
            assert answer.headers["connection"] == "close"

    async def test_while_it_drains_it_is_not_ready_and_sends_away_what_is_new(self):
        async with running_engine() as engine, running_gateway(pool_config(**pool(engine.url))) as gateway:
            gateway.gateway.shutdown.phase = Phase.DRAINING
            assert (await gateway.admin("/readyz")).status_code == 503
            async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=key_of("a"), max_retries=0) as client:
                with pytest.raises(openai.InternalServerError) as told:
                    await client.chat.completions.create(**QUESTION)
            assert told.value.status_code == 503
            assert told.value.response.headers["x-fairpool-reason"] == "draining"
            assert told.value.response.headers["retry-after"] == "1"


@contextlib.asynccontextmanager
async def gateway_process(config, *arguments):
    """The real program; yields its process and the URL of the tenants' port."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairpool_gateway", "--config", str(config), "--port", "0", "--admin-port", "0"),
        *arguments,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        while line := (await process.stderr.readline()).decode():
            if listening := re.search(r"to tenants on (\S+),", line):
                break
        yield process, listening[1]
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_a_restart_with_a_second_instance_loses_no_request(tmp_path):
    """Clients with kept-alive connections; a Service sends new ones to the old instance for a second more."""
    async with running_engine() as engine:
        config = tmp_path / "pool.json"
        config.write_text(json.dumps(pool_document(**pool(engine.url))))
        async with gateway_process(config, "--in-pod") as (old, old_url), gateway_process(config) as (_, new_url):
            loop = asyncio.get_running_loop()
            answered, ending = [], loop.create_future()

            def service():
                return new_url if ending.done() and loop.time() > ending.result() + 1.0 else old_url

            async def send_for_ever():
                while True:
                    async with httpx.AsyncClient(base_url=service()) as connection:
                        closed = False
                        while not closed:
                            answer = await connection.post("/v1/chat/completions", json=QUESTION, headers=KEY)
                            answered.append(answer.status_code)
                            closed = answer.headers.get("connection") == "close"

            load = [asyncio.create_task(send_for_ever()) for _ in range(8)]
            await until(lambda: len(answered) > 50)
            old.send_signal(signal.SIGTERM)
            ending.set_result(loop.time())
            async with asyncio.timeout(30):
                await old.wait()
            before = len(answered)
            await until(lambda: len(answered) > before + 50)
            failed = [task.exception() for task in load if task.done()]
            for task in load:
                task.cancel()
            await asyncio.gather(*load, return_exceptions=True)
            assert old.returncode == 0
            assert not failed
            assert set(answered) == {200}


async def test_what_runs_and_what_waits_is_finished_before_the_end(tmp_path):
    async with running_engine() as engine:
        config = tmp_path / "pool.json"
        config.write_text(json.dumps(pool_document(**pool(engine.url, slots={"perEndpoint": 1}))))
        async with gateway_process(config, "--no-in-pod") as (process, url):
            async with httpx.AsyncClient(base_url=url, headers=KEY, timeout=30) as client:
                slow = {**QUESTION, "max_tokens": 400, "ignore_eos": True}
                runs, waits = (
                    asyncio.create_task(
                        client.post("/v1/chat/completions", json=slow, headers={"x-engine-fault": "slow:2"})
                    )
                    for _ in range(2)
                )
                await engine.until(lambda now: now.running == 1)
                process.send_signal(signal.SIGTERM)
                assert [(await runs).status_code, (await waits).status_code] == [200, 200]
            async with asyncio.timeout(30):
                assert await process.wait() == 0
