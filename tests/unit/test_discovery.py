"""Which pods are endpoints, and what is said of those that are not."""

import random

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from support.pods import GPU, discovery, pod

from fairpool_gateway.config import SelectorSettings
from fairpool_gateway.discovery import find_endpoints, found
from fairpool_gateway.discovery.found import in_words
from fairpool_gateway.discovery.selecting import query_of

SEARCH = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
FIND = settings(SEARCH, max_examples=2000, database=None, derandomize=True, phases=[Phase.generate])


def addresses(pods, **fields):
    return [f"{each.host}:{each.port}" for each in find_endpoints(pods, discovery(**fields), 4).endpoints]


class TestAPodThatCanServe:
    def test_is_an_endpoint_by_its_uid_and_port(self):
        (endpoint,) = find_endpoints([pod("vllm-0", ip="10.0.0.7", uid="u-1")], discovery(), 4).endpoints
        assert endpoint.id == "vllm-0@u-1:8000"
        assert (endpoint.host, endpoint.port, endpoint.slots) == ("10.0.0.7", 8000, 4)
        assert (endpoint.draining, endpoint.over_tls, endpoint.asked_first) == (False, False, True)

    def test_is_one_endpoint_for_each_target_port_by_number_or_name(self):
        ports = [{"number": 9000}, {"name": "http"}, {"number": 8001}]
        assert addresses([pod(port=8001)], targetPorts=ports) == ["127.0.0.1:8001", "127.0.0.1:9000"]

    def test_is_reached_over_tls_where_that_is_said(self):
        (endpoint,) = find_endpoints([pod()], discovery(tls=True), 4).endpoints
        assert endpoint.over_tls

    @pytest.mark.parametrize(("value", "draining"), [("true", True), ("false", False), ("", False)])
    def test_drains_if_it_is_labelled_so(self, value, draining):
        (endpoint,) = find_endpoints([pod(labels={"fairpool.dev/drain": value})], discovery(), 4).endpoints
        assert endpoint.draining is draining

    @pytest.mark.parametrize(
        ("fields", "accelerators"),
        [
            ({"gpus": 8}, 8),
            ({"gpus": None, "claims": 2}, 2),
            ({"gpus": 4, "claims": 1}, 5),
            ({"gpus": "1k"}, 1),
        ],
    )
    def test_has_accelerators_by_request_or_by_claim(self, fields, accelerators):
        seen = find_endpoints([pod(**fields)], discovery(), 4)
        assert (len(seen.endpoints), seen.accelerators) == (1, accelerators)

    def test_needs_none_where_they_are_only_observed(self):
        seen = find_endpoints([pod(gpus=None)], discovery(accelerators={"policy": "Observe"}), 4)
        assert (len(seen.endpoints), seen.accelerators) == (1, 0)

    def test_may_ask_for_any_of_the_resources_that_are_named(self):
        assert not addresses([pod()], accelerators={"resourceNames": ["amd.com/gpu"]})
        assert addresses([pod()], accelerators={"resourceNames": ["amd.com/gpu", GPU]})


class TestAPodThatCannot:
    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"phase": "Failed"}, found.ENDED),
            ({"phase": "Succeeded"}, found.ENDED),
            ({"leaving": True}, found.LEAVING),
            ({"gpus": None}, found.NO_ACCELERATOR),
            ({"gpus": 0}, found.NO_ACCELERATOR),
            ({"ip": None}, found.NO_ADDRESS),
            ({"ready": False}, found.NOT_READY),
        ],
    )
    def test_is_no_endpoint_and_is_named_with_the_reason(self, fields, why):
        seen = find_endpoints([pod(**fields)], discovery(), 4)
        assert (seen.endpoints, seen.left_out, seen.accelerators) == ((), {why: ["vllm-0"]}, 0)

    def test_may_be_one_that_has_no_port_of_that_name(self):
        seen = find_endpoints([pod()], discovery(targetPorts=[{"name": "grpc"}]), 4)
        assert seen.left_out == {found.NO_PORT: ["vllm-0"]}

    @pytest.mark.parametrize(
        ("fields", "total"), [({"ready": False}, 2), ({"phase": "Failed"}, 0), ({"leaving": True}, 0)]
    )
    def test_counts_as_an_endpoint_to_come_unless_it_ends(self, fields, total):
        ports = [{"number": 8000}, {"number": 8001}]
        assert find_endpoints([pod(**fields)], discovery(targetPorts=ports), 4).total == total


class TestAnAddressOfTwoPods:
    def test_is_the_living_ones(self):
        dead = pod("dead", phase="Failed", created="2026-01-02T00:00:00Z")
        assert [each.id for each in find_endpoints([dead, pod()], discovery(), 4).endpoints] == [
            "vllm-0@uid-of-vllm-0:8000"
        ]

    @pytest.mark.parametrize("turned", [False, True])
    def test_is_the_younger_ones_if_both_say_that_they_live(self, turned):
        pods = [pod("old"), pod("young", created="2026-01-02T00:00:00Z")]
        seen = find_endpoints(reversed(pods) if turned else pods, discovery(), 4)
        assert [each.id for each in seen.endpoints] == ["young@uid-of-young:8000"]
        assert seen.left_out == {found.ADDRESS_TAKEN: ["old"]}


pods = st.lists(
    st.builds(
        pod,
        name=st.sampled_from(["a", "b", "c", "d"]),
        ip=st.none() | st.sampled_from(["10.0.0.1", "10.0.0.2", "fd00::1"]),
        port=st.integers(8000, 8002),
        uid=st.sampled_from(["u1", "u2", "u3", "u4", "u5"]),
        ready=st.booleans(),
        phase=st.sampled_from(["Pending", "Running", "Failed", "Succeeded", "Unknown"]),
        gpus=st.none() | st.integers(0, 2),
        created=st.sampled_from([f"2026-01-0{day}T00:00:00Z" for day in range(1, 4)]),
        leaving=st.booleans(),
    ),
    max_size=6,
    unique_by=(lambda each: each.metadata.name, lambda each: each.metadata.uid),
)
TARGETS = discovery(targetPorts=[{"name": "http"}, {"number": 8001}])


def whatever_holds(finder, seen):
    """Each endpoint is a living pod's, alone at its address; every pod is an endpoint or named; order means nothing."""
    result = finder(seen, TARGETS, 4)
    by_uid = {each.metadata.uid: each for each in seen}
    owners = [by_uid[each.id.partition("@")[2].rpartition(":")[0]] for each in result.endpoints]
    shuffled = random.Random(1).sample(seen, len(seen))
    named = [name for names in result.left_out.values() for name in names]
    return (
        all(
            each.is_ready and not each.has_ended and not each.is_leaving and each.accelerators((GPU,))
            for each in owners
        )
        and len({(each.host, each.port) for each in result.endpoints}) == len(result.endpoints)
        and sorted({each.metadata.name for each in owners} | set(named)) == sorted(each.metadata.name for each in seen)
        and finder(shuffled, TARGETS, 4) == result
    )


def by_order(seen, settings, slots):
    """Whoever comes first has an address."""
    return find_endpoints([pod_as_old(each, number) for number, each in enumerate(seen)], settings, slots)


def pod_as_old(each, number):
    return type(each)(
        metadata=type(each.metadata)(each.metadata.name, each.metadata.uid, creation_timestamp=f"{9 - number}"),
        spec=each.spec,
        status=each.status,
    )


def alive_if_running(seen, settings, slots):
    """As if the phase told whether a pod serves."""
    trusting = [each for each in seen if each.status.phase == "Running"]
    return find_endpoints(trusting, settings, slots)


class TestWhateverPodsThereAre:
    @given(pods)
    @SEARCH
    def test_endpoints_are_living_pods_each_alone_at_its_address(self, seen):
        assert whatever_holds(find_endpoints, seen)

    @pytest.mark.parametrize("broken", [by_order, alive_if_running])
    def test_that_check_catches_a_finder_that_goes_by_less(self, broken):
        assert find(pods, lambda seen: not whatever_holds(broken, seen), settings=FIND)


class TestWords:
    def test_name_a_few_pods_for_each_reason(self):
        left_out = {"not Ready": ["a"], "without an IP": [f"p{number}" for number in range(7)]}
        assert in_words(left_out, 1024) == "1 pod not Ready: a; 7 pods without an IP: p0, p1, p2, p3, p4 and 2 more"

    def test_are_cut_where_they_would_be_too_many(self):
        text = in_words({"not Ready": ["a" * 250] * 9}, 300)
        assert len(text) == 300
        assert text.endswith("…")


class TestASelector:
    @pytest.mark.parametrize(
        ("selector", "text"),
        [
            ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
            ({"matchLabels": {"a": ""}}, "a="),
            ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}, "a in (x,y)"),
            ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]}, "a notin (x)"),
            (
                {
                    "matchLabels": {"c": "d"},
                    "matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "DoesNotExist"}],
                },
                "c=d,a,!b",
            ),
        ],
    )
    def test_is_written_as_the_api_takes_it(self, selector, text):
        assert query_of(SelectorSettings.model_validate(selector)) == text
