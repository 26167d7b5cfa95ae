"""The phases of a gateway on its way out, and what each of them says."""

import asyncio

import httpx
import openai
import pytest
from support.config import key_of, pool_config
from support.engine import running_engine
from support.gateway import running_gateway

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
