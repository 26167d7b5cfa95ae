"""A flood of connections beyond what descriptors allow is refused; whoever is there is served, the admin port too."""

import asyncio
import time

import pytest
from support.certificates import Authority

from fairpool_lab.crowds.members import connect
from fairpool_lab.crowds.stage import staged

DESCRIPTORS = 1024
MOST = (DESCRIPTORS - 256) * 3 // 4
FLOOD = 2_000


async def test_a_flood_is_refused_above_the_bound_and_whoever_is_there_is_served(tmp_path):
    async with staged(tmp_path, descriptors=DESCRIPTORS) as stage:
        await stage.until(lambda now: now["fairpool_connections"] >= 1)  # the tenant beside is served
        before = await stage.snapshot()
        async with await connect(stage.port, FLOOD) as flood:
            await flood.until_lost(FLOOD - MOST)
            began, cpu = time.monotonic(), stage.cpu_seconds()
            await asyncio.sleep(1.5)
            used = (stage.cpu_seconds() - cpu) / (time.monotonic() - began)
            metrics = await stage.metrics()
            answers = stage.answers(began, time.monotonic())
        old = [answer for answer in answers if not answer.fresh]
        assert metrics["fairpool_connections"] <= MOST
        assert metrics["fairpool_refused_connections_total"] >= FLOOD - MOST
        assert stage.descriptors() < DESCRIPTORS
        assert len(old) > 20
        assert {answer.status for answer in old} == {200}
        assert used < 0.9, "it spins"
        await stage.until(lambda now: now["fairpool_connections"] <= before.connections + 1)
        freed = time.monotonic()
        while not served_anew(stage.answers(freed, time.monotonic())):  # noqa: ASYNC110 - another process serves them
            await asyncio.sleep(0.05)
        assert "ERROR" not in stage.log()


def served_anew(answers):
    """Whether a connection that was made since was served."""
    return any(answer.fresh and answer.status == 200 for answer in answers)


@pytest.fixture
def certificate(tmp_path):
    signed = Authority(tmp_path).sign("localhost")
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    signed.cert_chain_pems[0].write_to_path(certificate)
    signed.private_key_pem.write_to_path(key)
    return certificate, key


async def test_a_thousand_handshakes_that_never_end_are_counted_bounded_and_ended(tmp_path, certificate):
    async with staged(tmp_path, descriptors=DESCRIPTORS, tls=certificate) as stage:
        async with await connect(stage.port, 1_000) as flood:
            await flood.until_lost(1_000 - MOST)
            metrics = await stage.metrics()
            assert metrics["fairpool_connections"] == MOST
            assert stage.descriptors() < DESCRIPTORS
            await flood.until_lost()
        await stage.until(lambda now: now["fairpool_connections"] == 0)
        assert "ERROR" not in stage.log()
