"""What a gateway tells its FairPool, when it does, and what becomes of it when it cannot."""

import asyncio
import contextlib
import json
import logging

import pytest
from support.api_server import ApiServer
from support.config import pool_config
from support.pods import discovery, pod, pod_document
from support.scripted_endpoint import until

from fairpool_gateway.app import report
from fairpool_gateway.app.gateway import Gateway
from fairpool_gateway.app.report import MOST_ACCELERATORS, MOST_CHARACTERS, MOST_MODELS, Reporter, report_of
from fairpool_gateway.discovery import PodFollower, find_endpoints

PATH = "/apis/fairpool.dev/v1alpha1/namespaces/inference/fairpools/llama/status"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(report, "_PAUSE", 0.01)
    monkeypatch.setattr(report, "_LONGEST_PAUSE", 0.05)


@pytest.fixture
async def gateway():
    gateway = Gateway(pool_config(models=["tiny"]))
    gateway.config_hash = "0123456789abcdef"
    yield gateway
    await gateway.aclose()


@contextlib.asynccontextmanager
async def reporting(gateway, directory):
    """The API server that is reported to, the reporter, and what has it say nothing more."""
    stop = asyncio.Event()
    async with ApiServer.listening(directory) as (server, cluster):
        reporter = Reporter(cluster, "inference", "llama", gateway, "uid-1")
        task = asyncio.create_task(reporter.follow(stop))
        try:
            yield server, reporter, stop
        finally:
            stop.set()
            task.cancel()
            await asyncio.wait([task])


def said(asked):
    return json.loads(asked.body)["status"]["gateway"]


class TestTheReport:
    async def test_is_applied_to_the_status_in_a_name_of_its_own(self, gateway, tmp_path):
        async with reporting(gateway, tmp_path) as (server, _, _):
            asked = await server.next()
            assert (asked.method, asked.path) == ("PATCH", PATH)
            assert asked.query == {"fieldManager": "fairpool-gateway", "force": "true"}
            assert "content-type: application/apply-patch+yaml" in asked.head.lower()
            assert json.loads(asked.body) == {
                "apiVersion": "fairpool.dev/v1alpha1",
                "kind": "FairPool",
                "metadata": {"name": "llama", "namespace": "inference"},
                "status": {
                    "gateway": {
                        "podUID": "uid-1",
                        "configHash": "0123456789abcdef",
                        "endpointsReady": 1,
                        "endpointsTotal": 1,
                        "endpointsDraining": 0,
                        "accelerators": 0,
                        "models": ["tiny"],
                        "leftOut": "",
                    }
                },
            }

    async def test_is_repeated_only_when_it_has_changed(self, gateway, tmp_path):
        async with reporting(gateway, tmp_path) as (server, _, _):
            await (await server.next()).answer(200, {})
            gateway.config_hash = "fedcba9876543210"
            asked = await server.next()
            assert said(asked)["configHash"] == "fedcba9876543210"

    async def test_is_bounded_whatever_there_is_to_say(self, gateway):
        gateway.apply(pool_config(models=[f"m{number}" for number in range(99)]))
        for endpoint in gateway.broker.dispatcher.endpoints:
            gateway.broker.listed(endpoint, frozenset({"x" * 250, "y" * 250, "z" * 250, "w" * 250, "v" * 250}))
        made = report_of(gateway, "uid-1")
        assert (len(made.models), made.endpoints_ready) == (MOST_MODELS, 0)
        assert made.left_out.startswith("1 endpoint that serves vvv")
        assert len(made.left_out) <= MOST_CHARACTERS

    async def test_names_each_endpoint_that_is_not_ready_though_nothing_is_wrong_with_its_pod(self, gateway):
        gateway.apply(
            pool_config(
                endpoints=[{"name": name, "url": f"http://127.0.0.1:{9000 + at}"} for at, name in enumerate("abc")]
            )
        )
        sick = next(iter(gateway.broker.dispatcher.endpoints))
        gateway.broker.probed(sick, None)
        made = report_of(gateway, "uid-1")
        assert (made.endpoints_total, made.endpoints_ready) == (3, 2)
        assert made.left_out == "1 endpoint ejected, to be tried again: a:9000"

    async def test_counts_no_more_accelerators_than_it_may(self, gateway):
        gateway.found = find_endpoints([pod(gpus=9_999_999_999)], discovery(), 4)
        assert report_of(gateway, "uid-1").accelerators == MOST_ACCELERATORS


class TestWhoHasTheLastWord:
    async def test_is_this_gateway_even_if_one_that_leaves_wrote_after_it(self, gateway, tmp_path, monkeypatch):
        monkeypatch.setattr(report, "_LOOK_EVERY", 0.0)
        async with reporting(gateway, tmp_path) as (server, _, _):
            first = await server.next()
            await first.answer(200, {})
            look = await server.next()
            assert (look.method, look.path) == ("GET", PATH)
            await look.answer(200, {"status": {"gateway": {**said(first), "podUID": "another"}}})
            again = await server.next()
            assert (again.method, said(again)["podUID"]) == ("PATCH", "uid-1")

    async def test_is_not_claimed_again_while_it_stands(self, gateway, tmp_path, monkeypatch):
        monkeypatch.setattr(report, "_LOOK_EVERY", 0.0)
        async with reporting(gateway, tmp_path) as (server, _, _):
            first = await server.next()
            await first.answer(200, {})
            for _ in range(3):
                look = await server.next()
                assert look.method == "GET"
                await look.answer(200, {"status": {"gateway": said(first), "conditions": []}})

    async def test_is_given_up_by_one_that_leaves(self, gateway, tmp_path):
        async with reporting(gateway, tmp_path) as (server, _, stop):
            asked = await server.next()
            stop.set()
            await asked.answer(200, {})
            gateway.config_hash = "fedcba9876543210"
            gateway.apply(pool_config(models=["other"]))
            await asyncio.gather(*(task for task in asyncio.all_tasks() if "Reporter.follow" in repr(task)))
            assert not server.asked


class TestWhatCannotBeReported:
    @pytest.mark.parametrize("status", [403, 404, 409, 500])
    async def test_is_tried_again_and_told_once(self, gateway, tmp_path, status, caplog):
        caplog.set_level(logging.INFO, "fairpool_gateway")
        async with reporting(gateway, tmp_path) as (server, reporter, _):
            for _ in range(3):
                await (await server.next()).refuse(status, "no")
            asked = await server.next()
            assert f"({status}): no" in reporter.problem
            await asked.answer(200, {})
            await until(lambda: reporter.problem is None)
        assert caplog.messages == [
            f"the pool's status cannot be reported: the API server refuses it ({status}): no",
            "the pool's status is reported again",
        ]


SELECTED = {"endpoints": [], "discovery": discovery().model_dump(by_alias=True, exclude_none=True)}
OTHERS = discovery(selector={"matchLabels": {"app": "other"}}).model_dump(by_alias=True, exclude_none=True)


@contextlib.asynccontextmanager
async def discovering(directory):
    """The API server, and a gateway that finds its endpoints there."""
    async with ApiServer.listening(directory) as (server, cluster):
        gateway = Gateway(pool_config(**SELECTED), pods=PodFollower(cluster.source, "inference"))
        try:
            gateway.discover()
            yield server, gateway
        finally:
            await gateway.aclose()


class TestASelectorThatIsRefused:
    WORDS = 'all that the selector chooses: the API server refuses it (400): unable to parse requirement: "a..b/c"'

    @staticmethod
    async def refuse(server):
        await (await server.next()).refuse(400, 'unable to parse requirement: "a..b/c"')

    async def test_is_said_to_leave_out_all_until_its_pods_are_listed(self, tmp_path):
        async with discovering(tmp_path) as (server, gateway):
            assert report_of(gateway, "uid-1").left_out == "all that the selector chooses: has not been listed yet"
            await self.refuse(server)
            await until(lambda: report_of(gateway, "uid-1").left_out == self.WORDS)
            await (await server.next()).list()
            await until(lambda: not report_of(gateway, "uid-1").left_out)

    async def test_is_named_before_all_else_while_pods_of_another_stay(self, tmp_path):
        async with discovering(tmp_path) as (server, gateway):
            await (await server.next()).list(pod_document("a", ready=False))
            await (await server.next()).open()
            gateway.apply(pool_config(**{**SELECTED, "discovery": OTHERS}))
            await self.refuse(server)
            await until(lambda: report_of(gateway, "uid-1").left_out == f"{self.WORDS}; 1 pod not Ready: a")
            assert report_of(gateway, "uid-1").endpoints_total == 1

    async def test_leaves_room_for_no_more_than_may_be_said(self, tmp_path):
        async with discovering(tmp_path) as (server, gateway):
            await (await server.next()).list(*(pod_document(f"{name * 250}", ready=False) for name in "abcde"))
            await (await server.next()).open()
            gateway.apply(pool_config(**{**SELECTED, "discovery": OTHERS}))
            await (await server.next()).refuse(400, "x" * 5000)
            await until(lambda: "xxx; 5 pods not Ready: aaa" in report_of(gateway, "uid-1").left_out)
            assert len(report_of(gateway, "uid-1").left_out) == MOST_CHARACTERS


class TestPods:
    async def test_that_are_no_endpoints_are_named_and_those_to_come_counted(self, tmp_path):
        async with discovering(tmp_path) as (server, gateway):
            assert not gateway.knows_its_endpoints
            await (await server.next()).list(pod_document("a"), pod_document("b", ready=False, ip="127.0.0.2"))
            await until(lambda: gateway.knows_its_endpoints)
            made = report_of(gateway, "uid-1")
            assert (made.endpoints_total, made.endpoints_ready, made.accelerators) == (2, 0, 1)
            assert made.left_out == "1 endpoint that has yet to say which models it serves: a:8000; 1 pod not Ready: b"
