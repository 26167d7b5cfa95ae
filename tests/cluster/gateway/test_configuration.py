"""The configuration in a Secret of a real API server: waited for, followed, and kept when it cannot be seen."""

import time

from support.cluster.client import ROLE_BINDING
from support.cluster.gateway import decided, decisions, metric, readiness
from support.cluster.lying_proxy import asking
from support.gateway_process import START

from fairpool_gateway.sfq import Q


async def waiting(gateway):
    """The admin port of a gateway that waits."""
    gateway.admin_url = (await gateway.says(r"waiting for Secret .*, admin on (\S+)", START))[1]


class TestAtTheStart:
    async def test_a_gateway_waits_for_its_secret_and_says_so(self, pool, pods, start, ask, namespace):
        await pods.serve("gpu-0", "sim")
        async with start(waits=True) as gateway:
            await waiting(gateway)
            detail = await readiness(gateway, lambda status, detail: "no such" in detail["config"])
            assert detail == {
                "status": "waiting",
                "config": f"Secret {namespace}/llama-fairpool-config: there is no such Secret",
            }
            await pool.write_data({"config.json.gz": "bm90IGdvb2Q="})
            await readiness(gateway, lambda status, detail: status == 503 and "is not gzipped" in detail["config"])
            await pool.write()
            await gateway.listens()
            await ask(gateway)
            await readiness(gateway, lambda status, detail: status == 200)

    async def test_it_ends_when_it_is_told_to_while_it_waits(self, pool, start):
        async with start(waits=True) as gateway:
            await waiting(gateway)
            gateway.signal(15)
            assert await gateway.ended() == 0

    async def test_it_says_that_it_may_not_read_it(self, pool, start, admin, namespace):
        await pool.write()
        await admin.delete(ROLE_BINDING, "gateway", namespace)
        async with start(waits=True) as gateway:
            await waiting(gateway)
            await readiness(gateway, lambda status, detail: status == 503 and "(403)" in detail["config"])

    async def test_it_is_not_ready_before_it_has_seen_its_pods(self, pool, start, liar):
        await pool.write()
        lie = liar.hang(asking("pods", "list"))
        async with start(via=liar.url) as gateway:
            await readiness(gateway, lambda status, detail: (status, detail["status"]) == (503, "waiting"))
            lie.end()
            await readiness(gateway, lambda status, detail: (status, detail["status"]) == (200, "serving"))


class TestEdits:
    async def test_of_weights_are_in_force_within_a_second(self, pool, pods, start, ask, tmp_path, capsys):
        """Twenty in a row; a test asserts three times what is promised, and prints what it was."""
        await pods.serve("gpu-0", "sim")
        await pool.write()
        log = tmp_path / "decisions.jsonl"
        took = []
        async with start("--decision-log", str(log)) as gateway:
            for weight in range(101, 121):
                began = time.monotonic()
                await pool.write(tenants=[{"name": "a", "weight": weight}, {"name": "b"}])
                edit = await decided(log, "weight", lambda line, weight=weight: line["weight"] == weight)
                took.append(edit["t"] - began)
                await ask(gateway)
                charge = await decided(log, "dispatch", lambda line, edit=edit: line["seq"] > edit["seq"])
                assert charge["weight"] == weight
                assert charge["charge"] == -(-charge["cost"] * Q // weight)
        with capsys.disabled():
            print(f"\n20 weight edits in force after {1000 * min(took):.0f} to {1000 * max(took):.0f} ms")
        assert max(took) < 3
        assert len(decisions(log, "dispatch")) == 20

    async def test_that_cannot_be_used_change_nothing_and_are_said(self, pool, pods, start, ask):
        await pods.serve("gpu-0", "sim")
        await pool.write()
        broken = {
            "is not gzipped": lambda: pool.write_data({"config.json.gz": "bm90IGdvb2Q="}),
            "has no config.json.gz": lambda: pool.write_data({}),
            "there is no such Secret": pool.delete_secret,
        }
        async with start() as gateway:
            for weight, (said, edit) in enumerate(broken.items(), start=1):
                await edit()
                detail = await readiness(gateway, lambda status, detail, said=said: said in detail.get("config", ""))
                assert detail["config"].startswith("the last good configuration stays in force: Secret ")
                assert detail["status"] == "serving"
                assert await metric(gateway, "fairpool_config_current") == 0
                await ask(gateway)
                config_hash = await pool.write(defaultWeight=weight)
                await pool.reports(lambda said, config_hash=config_hash: said["configHash"] == config_hash)
                assert await metric(gateway, "fairpool_config_current") == 1
