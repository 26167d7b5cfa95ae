"""Which pods are endpoints, and what is said of those that are not."""

import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from support.pods import GPU, container, discovery, pod

from fairpool_gateway.config import SelectorSettings
from fairpool_gateway.discovery import Found, find_endpoints, found
from fairpool_gateway.discovery.selecting import query_of

SEARCH = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
FIND = settings(SEARCH, max_examples=2000, database=None, derandomize=True, phases=[Phase.generate])
LATER = "2026-01-02T00:00:00Z"


def addresses(pods, **fields):
    return [f"{each.host}:{each.port}" for each in find_endpoints(pods, discovery(**fields), 4).endpoints]


def named(seen):
    """The names of what is left out, by why."""
    return {
        why: [each.name for each in seen.left_out if each.why == why] for why in {each.why for each in seen.left_out}
    }


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
            ({"gpus": None, "init": [container(2)]}, 2),
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
        assert (seen.endpoints, named(seen), seen.accelerators) == ((), {why: ["vllm-0"]}, 0)


class TestAllThatIsMissing:
    """The total is what is ready and what is left out, endpoint by endpoint."""

    @pytest.mark.parametrize(
        ("fields", "total"), [({"ready": False}, 2), ({"phase": "Failed"}, 0), ({"leaving": True}, 0)]
    )
    def test_counts_as_endpoints_to_come_unless_the_pod_ends(self, fields, total):
        seen = find_endpoints([pod(**fields)], discovery(targetPorts=[{"number": 8000}, {"number": 8001}]), 4)
        assert (seen.total, [each.endpoints for each in seen.left_out]) == (total, [total])

    @pytest.mark.parametrize(
        ("targets", "endpoints", "missing"),
        [
            ([{"name": "grpc"}], 0, ["vllm-0:grpc"]),
            ([{"number": 8000}, {"name": "second"}], 1, ["vllm-0:second"]),
            ([{"name": "third"}, {"name": "http"}, {"name": "second"}], 1, ["vllm-0:second", "vllm-0:third"]),
        ],
    )
    def test_is_named_by_its_port_where_no_container_gives_a_port_that_name(self, targets, endpoints, missing):
        seen = find_endpoints([pod()], discovery(targetPorts=targets), 4)
        assert (len(seen.endpoints), seen.total) == (endpoints, len(targets))
        assert named(seen) == {found.NO_PORT: missing}

    @pytest.mark.parametrize("ready", [True, False])
    def test_is_expected_once_where_a_name_and_a_number_are_one_port(self, ready):
        targets = discovery(targetPorts=[{"name": "r0"}, {"number": 8000}])
        seen = find_endpoints([pod(ports={"r0": 8000}, ready=ready)], targets, 4)
        assert (seen.total, len(seen.endpoints)) == (1, int(ready))

    def test_may_be_a_port_of_an_older_pod_where_a_younger_one_has_only_that(self):
        pods = [
            pod("old", ports={"a": 8000, "b": 8001}),
            pod("young", ports={"a": 8001}, created=LATER),
        ]
        seen = find_endpoints(pods, discovery(targetPorts=[{"name": "a"}, {"name": "b"}]), 4)
        assert [f"{each.id.partition('@')[0]}:{each.port}" for each in seen.endpoints] == ["old:8000", "young:8001"]
        assert named(seen) == {found.ADDRESS_TAKEN: ["old:8001"], found.NO_PORT: ["young:b"]}
        assert seen.total == 4


def owners(pods, **fields):
    """Which pods have endpoints, at which ports."""
    seen = find_endpoints(pods, discovery(**fields), 4)
    return [f"{each.id.partition('@')[0]}:{each.port}" for each in seen.endpoints]


class TestAnAddressOfTwoPods:
    def test_is_the_living_ones(self):
        dead = pod("dead", phase="Failed", created=LATER)
        assert owners([dead, pod()]) == ["vllm-0:8000"]

    @pytest.mark.parametrize("turned", [False, True])
    def test_is_the_younger_ones_if_both_say_that_they_live(self, turned):
        pods = [pod("old"), pod("young", created=LATER)]
        seen = find_endpoints(reversed(pods) if turned else pods, discovery(), 4)
        assert [each.id for each in seen.endpoints] == ["young@uid-of-young:8000"]
        assert named(seen) == {found.ADDRESS_TAKEN: ["old:8000"]}

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"ready": False}, found.NOT_READY),
            ({"ready": False, "phase": "Pending"}, found.NOT_READY),
            ({"ready": False, "phase": "Unknown"}, found.NOT_READY),
            ({"leaving": True}, found.LEAVING),
            ({"gpus": None}, found.NO_ACCELERATOR),
        ],
    )
    def test_is_the_younger_ones_though_that_cannot_serve(self, fields, why):
        seen = find_endpoints([pod("old"), pod("young", created=LATER, **fields)], discovery(), 4)
        assert named(seen) == {found.ADDRESS_TAKEN: ["old:8000"], why: ["young"]}
        assert not seen.endpoints


class TestPodsInTheNetworkOfTheirNode:
    def test_are_endpoints_side_by_side_at_the_ports_that_they_name(self):
        pods = [
            pod("old", ports={"http": 8000}, host_network=True),
            pod("young", ports={"http": 8001}, host_network=True, created=LATER, ready=False),
        ]
        assert owners(pods, targetPorts=[{"name": "http"}]) == ["old:8000"]
        assert owners(pods, targetPorts=[{"number": 8000}, {"number": 8001}]) == ["old:8000"]

    def test_have_a_port_that_nobody_names_if_they_are_the_youngest(self):
        pods = [
            pod("old", ports={}, host_network=True),
            pod("young", ports={"http": 8001}, host_network=True, created=LATER),
        ]
        assert owners(pods) == ["young:8000"]

    def test_lose_it_to_a_pod_that_has_the_address_to_itself(self):
        pods = [pod("own", ports={}), pod("shared", ports={}, host_network=True, created=LATER)]
        assert owners(pods) == ["own:8000"]


pods = st.lists(
    st.builds(
        pod,
        name=st.sampled_from(["a", "b", "c", "d"]),
        ip=st.sampled_from(["10.0.0.1", "10.0.0.1", "fd00::1", None]),
        ports=st.dictionaries(st.sampled_from(["http", "grpc"]), st.integers(8000, 8002)),
        uid=st.sampled_from(["u1", "u2", "u3", "u4", "u5"]),
        ready=st.booleans(),
        phase=st.sampled_from(["Pending", "Running", "Failed", "Succeeded", "Unknown"]),
        gpus=st.none() | st.integers(0, 2),
        created=st.sampled_from([f"2026-01-0{day}T00:00:00Z" for day in range(1, 4)]),
        leaving=st.booleans(),
        host_network=st.booleans(),
    ),
    max_size=6,
    unique_by=(lambda each: each.metadata.name, lambda each: each.metadata.uid),
)
TARGETS = discovery(targetPorts=[{"name": "http"}, {"number": 8001}])


def whatever_holds(finder, seen):
    """Each endpoint is a living pod's, whose address it is; each that is missing is named; order means nothing."""
    result = finder(seen, TARGETS, 4)
    by_uid = {each.metadata.uid: each for each in seen}
    serving = [by_uid[each.id.partition("@")[2].rpartition(":")[0]] for each in result.endpoints]
    shuffled = random.Random(1).sample(seen, len(seen))
    accounted = Counter(each.metadata.name for each in serving)
    for each in result.left_out:
        accounted[each.pod] += each.endpoints
    return (
        all(
            each.is_ready and not each.has_ended and not each.is_leaving and each.accelerators((GPU,))
            for each in serving
        )
        and all(
            pod is max(claimants(seen, each), key=lambda other: claim(other, each.port))
            for pod, each in zip(serving, result.endpoints, strict=True)
        )
        and accounted == Counter({each.metadata.name: expected(each) for each in seen})
        and accounted.keys() == {each.metadata.name for each in seen}
        and finder(shuffled, TARGETS, 4) == result
    )


def claimants(seen, endpoint):
    """The living pods with that address."""
    return [
        each
        for each in seen
        if each.status.ip == endpoint.host and not each.has_ended and endpoint.port in {each.port_named("http"), 8001}
    ]


def claim(each, port):
    """Greater is better founded."""
    named = any(port == other.container_port for other in each.spec.containers[0].ports)
    return named or not each.spec.host_network, each.metadata.creation_timestamp, each.metadata.uid


def expected(each):
    """How many endpoints a pod should have."""
    return 0 if each.has_ended or each.is_leaving else len({each.port_named("http") or "http", 8001})


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


def among_ready_ones(seen, settings, slots):
    """As if only pods that are Ready had addresses."""
    results = [find_endpoints([each for each in seen if each.is_ready], settings, slots)]
    results += [find_endpoints([each], settings, slots) for each in seen if not each.is_ready]
    left_out = tuple(sorted(each for result in results for each in result.left_out))
    return Found(results[0].endpoints, results[0].accelerators, left_out)


def silent_of_ports(seen, settings, slots):
    """As if a pod that has one endpoint needed no explanation for another."""
    result = find_endpoints(seen, settings, slots)
    left_out = tuple(each for each in result.left_out if not each.port)
    return Found(result.endpoints, result.accelerators, left_out)


class TestWhateverPodsThereAre:
    @given(pods)
    @SEARCH
    def test_endpoints_are_living_pods_each_at_an_address_of_its_own(self, seen):
        assert whatever_holds(find_endpoints, seen)

    @pytest.mark.parametrize("broken", [by_order, alive_if_running, among_ready_ones, silent_of_ports])
    def test_that_check_catches_a_finder_that_goes_by_less(self, broken):
        assert find(pods, lambda seen: not whatever_holds(broken, seen), settings=FIND)


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
