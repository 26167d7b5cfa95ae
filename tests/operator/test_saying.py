"""What the operator hears of a status that it is writing is no news; whatever else becomes of the resource then is."""

from __future__ import annotations

import itertools

import pytest
from support.compiling import LLAMA, SmallCluster
from support.resources import fair_pool, tenant_weight

RESOURCES = {
    "a pool": fair_pool(),
    "a tenant": tenant_weight(),
    "an unreadable pool": fair_pool(slots={"perEndpoint": "many"}),
    "an unreadable tenant": tenant_weight(weight="heavy"),
}
FOREIGN = {
    "type": "Foreign",
    "status": "True",
    "reason": "Other",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


class Resource:
    """One about which something is to be said, and what a watch tells of it."""

    def __init__(self, resource):
        self._cluster = SmallCluster(resource)
        self._kind, self._name = resource["kind"], resource["metadata"]["name"]
        self.store = self._cluster.store
        compiled = self._cluster.compiled()
        [self.said] = compiled.tenant_statuses or [compiled.pool_status]
        self._versions = itertools.count(20_000)

    def as_said(self):
        """What it is once that was said."""
        return {**self._cluster.get(self._kind, self._name), "status": self.said.body()["status"]}

    def becomes(self, told):
        """Whom it touches when a watch tells that it is so now."""
        newest = {"resourceVersion": str(next(self._versions))}
        return self.store.put(self._kind, {**told, "metadata": {**told["metadata"], **newest}})


@pytest.fixture(params=RESOURCES)
def resource(request):
    return Resource(RESOURCES[request.param])


def edited(resource):
    resource["metadata"]["generation"] += 1
    resource["spec"]["suspend"] = True


def leaves(resource):
    resource["metadata"]["deletionTimestamp"] = "2026-05-01T12:00:00Z"


def made_again(resource):
    resource["metadata"]["uid"] = "another"


def wiped(resource):
    resource["status"] = {}


def forged(resource):
    resource["status"]["conditions"][0]["reason"] = "Forged"


NEWS = [edited, leaves, made_again, wiped, forged]


class TestAStatusThatIsBeingSaid:
    def test_touches_nobody_when_it_is_heard(self, resource):
        with resource.store.saying(resource.said):
            assert resource.becomes(resource.as_said()) == frozenset()

    def test_touches_nobody_beside_what_others_say_in_it(self, resource):
        told = resource.as_said()
        told["status"] = {**told["status"], "conditions": [FOREIGN, *told["status"]["conditions"]]}
        with resource.store.saying(resource.said):
            assert resource.becomes(told) == frozenset()

    @pytest.mark.parametrize("happened", NEWS)
    def test_hides_nothing_else_that_happened(self, resource, happened):
        told = resource.as_said()
        happened(told)
        with resource.store.saying(resource.said):
            resource.becomes(resource.as_said())
            assert resource.becomes(told) == {LLAMA}

    def test_hides_no_report_of_a_gateway(self):
        pool = Resource(RESOURCES["a pool"])
        told = pool.as_said()
        told["status"] = {**told["status"], "gateway": {"podUID": "uid-of-inference-gateway-1"}}
        with pool.store.saying(pool.said):
            assert pool.becomes(told) == {LLAMA}

    def test_is_news_of_a_resource_that_was_not_known_to_be_there(self, resource):
        told = resource.as_said()
        resource.store.remove(told["kind"], told)
        with resource.store.saying(resource.said):
            assert resource.becomes(told) == {LLAMA}


class TestAStatusThatWasSaidBefore:
    def test_is_news_for_it_may_be_wanted_no_more(self, resource):
        with resource.store.saying(resource.said):
            pass
        assert resource.becomes(resource.as_said()) == {LLAMA}

    def test_is_news_if_it_could_not_be_written(self, resource):
        with pytest.raises(TimeoutError), resource.store.saying(resource.said):
            raise TimeoutError
        assert resource.becomes(resource.as_said()) == {LLAMA}
