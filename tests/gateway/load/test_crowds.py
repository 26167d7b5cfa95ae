"""Crowds at full scale against a gateway process: memory stays within what the configuration allows, a tenant beside
them is served, and nothing of them is left."""

from fairpool_lab.crowds.scenarios import SCENARIOS
from fairpool_lab.crowds.stage import staged
from fairpool_lab.crowds.trial import came_back, trial


async def nothing_more(crowds):
    """What a crowd does while it stands says it all."""


async def run(directory, *names, seconds=1.0, watch=nothing_more):
    """Let these crowds meet a gateway, and judge what holds for any."""
    scenarios = [SCENARIOS[name] for name in names]
    async with staged(directory, scenarios[0].fields) as stage:
        seen = await trial(stage, *scenarios, seconds=seconds, watch=watch)
        log = stage.log()
    assert seen.growth <= seen.allowed
    assert len(seen.beside) > 20
    assert not seen.failed
    assert any(answer.fresh for answer in seen.beside)
    assert came_back(seen.before, seen.after), (seen.before, seen.after)
    assert "Traceback" not in log
    assert "ERROR" not in log
    return seen


async def test_ten_thousand_requests_wait(tmp_path):
    seen = await run(tmp_path, "wait")
    assert seen.standing.waiting > 9_000
    assert seen.standing.connections > 10_000
    assert set(seen.statuses["wait"]) <= {0, 200}


async def test_two_thousand_tenants_read_nothing_or_slowly(tmp_path):
    seen = await run(tmp_path, "never read", "read slowly", seconds=3)
    assert seen.standing.in_flight >= 1_000
    assert seen.standing.buffered > 64 << 20
    assert set(seen.statuses["read slowly"]) <= {0, 200}


async def test_thousands_begin_and_do_not_end(tmp_path):
    names = ("endless head", "endless extension", "endless trailers", "endless requests", "endless chunks")

    async def watch(crowds):
        for name, crowd in crowds.items():
            if name != "endless chunks":  # Which come steadily, so that some of them may go on for a long time.
                await crowd.until_lost()

    seen = await run(tmp_path, "nothing", "half a head", "half a body", *names, watch=watch)
    assert seen.statuses["nothing"] == {0: 1_000}
    assert seen.statuses["half a head"] == {0: 1_000}
    assert seen.statuses["endless head"].keys() <= {0, 431}  # Who goes on sending may lose what it was told.
    assert seen.statuses["endless head"][431] > 900
    assert seen.statuses["half a body"].keys() <= {408, 429}
    assert seen.statuses["half a body"][408] > 900
    assert seen.statuses["endless chunks"].keys() <= {0, 408, 413, 429}


async def test_one_tenant_sends_10_mb_bodies(tmp_path):
    seen = await run(tmp_path, "10 MB bodies", seconds=3)
    assert seen.statuses["10 MB bodies"].keys() <= {200, 429}
    assert 200 in seen.statuses["10 MB bodies"]


async def test_memory_of_one_crowd_serves_the_next_one(tmp_path):
    scenario = SCENARIOS["half a head"]
    async with staged(tmp_path, scenario.fields) as stage:
        peaks = [(await trial(stage, scenario, seconds=1)).peak for _ in range(3)]
    assert peaks[2] <= peaks[0] + scenario.allowed(stage.config, scenario.connections) // 4
