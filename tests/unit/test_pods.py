"""What is read of one pod: the accelerators that were scheduled for it, and the ports that it has while it serves."""

import pytest
from hypothesis import find, given
from hypothesis import strategies as st
from support.pods import GPU, container, pod

from fairpool_gateway.discovery.pods import Container, Resources, Spec


class TestAccelerators:
    @pytest.mark.parametrize(
        ("init", "gpus", "given_to_it"),
        [
            ([container(1)], 1, 1),
            ([container(4), container(2)], 1, 4),
            ([container(4)], 8, 8),
            ([container(1, sidecar=True)], 2, 3),
            ([container(1, sidecar=True), container(4)], 2, 5),
            ([container(4), container(1, sidecar=True)], 2, 4),
            ([container(1, sidecar=True), container(None)], None, 1),
        ],
    )
    def test_are_the_most_that_its_containers_need_at_one_time(self, init, gpus, given_to_it):
        assert pod(gpus=gpus, init=init).accelerators((GPU,)) == given_to_it

    def test_of_several_kinds_are_counted_each_by_itself(self):
        prepares = container(None) | {"resources": {"limits": {"amd.com/gpu": "2"}}}
        assert pod(gpus=3, init=[prepares]).accelerators((GPU, "amd.com/gpu")) == 5

    @pytest.mark.parametrize(
        ("quantity", "number"), [("3", 3), ("1k", 1000), ("9G", 9 * 10**9), ("500m", 1), ("0", 0), ("9" * 5000, 1)]
    )
    def test_are_as_many_as_the_quantity_says_and_one_where_that_is_no_number(self, quantity, number):
        assert pod(gpus=quantity).accelerators((GPU,)) == number


class TestPorts:
    def test_of_a_sidecar_are_there_and_those_of_what_only_prepares_are_not(self):
        init = [container(ports={"sidecar": 9000}, sidecar=True), container(ports={"download": 9001})]
        seen = pod(init=init)
        assert [seen.port_named(name) for name in ("http", "sidecar", "download")] == [8000, 9000, None]


def one(asked, *, sidecar=False):
    return Container(resources=Resources(limits={GPU: str(asked)}), restart_policy="Always" if sidecar else None)


def moment_by_moment(spec):
    """What runs at each moment of the pod's life, and the most that this asks for."""
    moments, sidecars = [], []
    for each in spec.init_containers:
        moments.append([*sidecars, each])
        sidecars += [each] if each.is_sidecar else []
    moments.append([*sidecars, *spec.containers])
    return max(sum(each.asks_for(GPU) for each in moment) for moment in moments)


def added_up(spec):
    """As if everything ran at once."""
    return sum(each.asks_for(GPU) for each in (*spec.init_containers, *spec.containers))


def sidecars_apart(spec):
    """As if what prepares a pod ran before its sidecars."""
    sidecars = [each for each in spec.init_containers if each.is_sidecar]
    alone = [each.asks_for(GPU) for each in spec.init_containers if not each.is_sidecar]
    return max([*alone, sum(each.asks_for(GPU) for each in (*sidecars, *spec.containers))])


specs = st.builds(
    Spec,
    containers=st.lists(st.builds(one, st.integers(0, 4)), max_size=3),
    init_containers=st.lists(st.builds(one, st.integers(0, 4), sidecar=st.booleans()), max_size=4),
)


class TestWhateverContainersThereAre:
    @given(specs)
    def test_accelerators_are_those_of_the_moment_that_needs_most(self, spec):
        assert spec.asks_for(GPU) == moment_by_moment(spec)

    @pytest.mark.parametrize("broken", [added_up, sidecars_apart])
    def test_that_check_catches_a_count_that_heeds_less(self, broken):
        assert find(specs, lambda spec: broken(spec) != moment_by_moment(spec))
