"""A gateway outlives its API server: it goes on with what it saw last, says so, and corrects itself afterwards."""

from support.cluster.client import ROLE_BINDING
from support.cluster.gateway import metric, readiness
from support.cluster.lying_proxy import asking

LAST_SEEN = "what was seen last stays in force: "


def followed(what):
    """Whether this is followed, as `/readyz` has it."""
    return lambda status, detail: status == 200 and f"{what}Followed" not in detail


def lost(what, why):
    """Whether this is not, for that reason; the gateway stays ready."""
    return lambda status, detail: status == 200 and why in detail.get(f"{what}Followed", "")


class TestWhileItIsAway:
    async def test_the_gateway_serves_on_and_catches_up_with_what_it_missed(
        self, pool, pods, start, ask, control_plane, network
    ):
        """The server is killed. Unseen, one pod dies, one is made anew under its name, and all history is compacted."""
        await pods.serve("gpu-0", "sim")
        await pods.serve("gpu-1", "sim")
        await pool.write()
        async with start(via=network.url) as gateway:
            await pool.reports(lambda said: said["endpointsReady"] == 2)
            control_plane.apiserver.kill()
            detail = await readiness(gateway, lost("pods", "cannot be reached"))
            assert detail["podsFollowed"].startswith(LAST_SEEN)
            await readiness(gateway, lost("config", "cannot be reached"))
            assert await metric(gateway, 'fairpool_followed{what="pods"}') == 0
            await ask(gateway)
            network.refuse()
            await control_plane.resume()
            await pods.delete("gpu-0")
            await pods.stop_engine("gpu-1")
            await pods.delete("gpu-1")
            await control_plane.compact()
            await pods.serve("gpu-1", "sim")
            config_hash = await pool.write(defaultWeight=7)
            await ask(gateway)
            network.resume()
            await pool.reports(lambda said: (said["endpointsTotal"], said["configHash"]) == (1, config_hash))
            await readiness(gateway, followed("pods"))
            assert await metric(gateway, 'fairpool_followed{what="pods"}') == 1
            await pods.stop_engine("gpu-0")
            await ask(gateway)


class TestASelectorThatIsRefused:
    async def test_is_told_wherever_one_looks_while_the_pods_seen_before_stay(self, pool, pods, start, ask, liar):
        await pods.serve("gpu-0", "sim")
        await pods.serve("new-0", "sim", labels={"app": "new"})
        await pool.write()
        async with start(via=liar.url) as gateway:
            await pool.reports(lambda said: said["endpointsReady"] == 1)
            lie = liar.refuse(asking("pods", "list"), 400)
            discovery = {"selector": {"matchLabels": {"app": "new"}}, "targetPorts": [{"number": pods.port}]}
            await pool.write(discovery=discovery)
            said = await pool.reports(lambda said: "(400)" in said["leftOut"])
            assert said["leftOut"].startswith("all that the selector chooses: the API server refuses it (400): ")
            assert said["endpointsReady"] == 1
            detail = await readiness(gateway, lost("pods", "(400)"))
            assert detail["leftOut"] == said["leftOut"]
            assert any("pods cannot be followed" in line and "(400)" in line for line in gateway.said)
            await ask(gateway)
            lie.end()
            await pool.reports(lambda said: not said["leftOut"])
            await pods.stop_engine("gpu-0")
            await ask(gateway)


class TestWhatIsForbidden:
    async def test_stays_as_it_was_seen_last_until_it_is_allowed_again(
        self, pool, pods, start, ask, admin, namespace, liar
    ):
        await pods.serve("gpu-0", "sim")
        await pool.write()
        async with start(via=liar.url) as gateway:
            await pool.reports(lambda said: said["endpointsReady"] == 1)
            binding = await admin.get(ROLE_BINDING, "gateway", namespace)
            await admin.delete(ROLE_BINDING, "gateway", namespace)
            await pods.serve("gpu-1", "sim")
            liar.spoil_watches(lambda asked: asked.namespace == namespace)
            for what in ("pods", "config", "status"):
                await readiness(gateway, lost(what, "(403)"))
            await ask(gateway)
            del binding["metadata"]["resourceVersion"], binding["metadata"]["uid"]
            await admin.create({**binding, "metadata": {"name": "gateway", "namespace": namespace}})
            await pool.reports(lambda said: said["endpointsReady"] == 2)
            for what in ("pods", "config", "status"):
                await readiness(gateway, followed(what))
