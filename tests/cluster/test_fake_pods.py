"""Pods whose status the tests write, with engines at their addresses."""

import httpx
import pytest
from support.cluster.client import POD, Refused
from support.cluster.pods import GPU
from support.cluster.waiting import gone


def conditions(pod):
    return {condition["type"]: condition["status"] for condition in pod["status"]["conditions"]}


async def test_one_is_ready_at_an_address_of_its_own_with_a_gpu(pods, admin, namespace):
    made = [await pods.add(name) for name in ("one", "two")]
    addresses = [pod["status"]["podIP"] for pod in made]
    assert len(set(addresses)) == 2
    assert all(address.startswith("127.0.") for address in addresses)
    assert conditions(made[0])["Ready"] == "True"
    assert made[0]["spec"]["containers"][0]["resources"]["limits"] == {GPU: "1"}
    assert "nodeName" not in made[0]["spec"]


async def test_an_engine_answers_there_until_it_is_stopped(pods, admin, namespace):
    engine = await pods.serve("one", "m")
    pod = await admin.get(POD, "one", namespace)
    url = f"http://{pod['status']['podIP']}:{pod['spec']['containers'][0]['ports'][0]['containerPort']}"
    assert url == engine.url
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"{url}/v1/models")).json()["data"][0]["id"] == "m"
        await pods.stop_engine("one")
        with pytest.raises(httpx.ConnectError):
            await client.get(f"{url}/v1/models")


async def test_status_and_labels_change_as_a_test_says(pods):
    await pods.add("one", ready=False, address="")
    pod = await pods.status("one", ready=True, address="127.0.0.1", phase="Succeeded")
    assert (pod["status"]["phase"], pod["status"]["podIP"]) == ("Succeeded", "127.0.0.1")
    assert conditions(pod)["Ready"] == "True"
    pod = await pods.label("one", {"app": None, "fairpool.dev/drain": "true"})
    assert pod["metadata"]["labels"] == {"fairpool.dev/drain": "true"}


async def test_one_that_is_being_deleted_stays_until_told(pods, admin, namespace):
    await pods.add("one")
    assert "deletionTimestamp" in (await pods.start_deleting("one"))["metadata"]
    await pods.finish_deleting("one")
    await gone(admin, POD, "one", namespace)


async def test_one_is_gone_at_once_when_it_is_deleted(pods, admin, namespace):
    await pods.add("one")
    await pods.delete("one")
    with pytest.raises(Refused, match="not found"):
        await admin.get(POD, "one", namespace)
