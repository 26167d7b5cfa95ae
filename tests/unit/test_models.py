"""Which models a pool serves and by whom: what must hold of any lists, and what is said of who may not take part."""

import json

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from fairpool_gateway.endpoints import Endpoint, EndpointSpec
from fairpool_gateway.models import MOST_MODELS, judge, read_list

SEARCH = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
FIND = settings(SEARCH, max_examples=2000, database=None, derandomize=True, phases=[Phase.generate])


def endpoint(*names, number=0, asked=True, **fields):
    """One that lists these; None as the only name: it says nothing."""
    made = Endpoint(EndpointSpec(f"e{number}", "127.0.0.1", 9000 + number, 1, **fields))
    made.asked = asked
    made.models = None if names == (None,) else frozenset(names)
    return made


names = st.sampled_from(["a", "b", "c"])


@st.composite
def pools(draw):
    """What a pool lists, and its endpoints."""
    listed = tuple(draw(st.lists(names, unique=True, max_size=2)))
    said = st.none() | st.frozensets(names, max_size=3)
    endpoints = []
    for number, own in enumerate(draw(st.lists(said, max_size=4))):
        made = endpoint(number=number, draining=draw(st.booleans()), asked_first=draw(st.booleans()))
        made.models, made.asked = own, own is not None or draw(st.booleans())
        endpoints.append(made)
    return listed, endpoints


def nobody_is_sent_what_it_would_refuse(judged, pool):
    listed, endpoints = pool
    served = judged(listed, endpoints)
    takes_part = [each for each in endpoints if each.wanting is None and not each.spec.draining]
    return all(
        (each.models is None and listed) or (each.models is not None and served and each.models >= set(served))
        for each in takes_part
    )


def nobody_is_left_out_without_need(judged, pool):
    listed, endpoints = pool
    served = judged(listed, endpoints)
    return all(
        each.wanting is None
        for each in endpoints
        if each.asked and served and ((each.models or frozenset()) >= set(served) or (listed and each.models is None))
    )


def by_union(listed, endpoints):
    served = listed or tuple(sorted(set().union(*(each.models or () for each in endpoints))))
    for each in endpoints:
        each.wanting = None
    return served


def by_all(listed, endpoints):
    """As if silence were a list of nothing."""
    served = judge(listed, endpoints)
    for each in endpoints:
        if each.models is None:
            each.wanting = "says nothing"
    return served


class TestWhateverEndpointsSay:
    @given(pools())
    @SEARCH
    def test_nobody_is_sent_what_it_would_refuse(self, pool):
        assert nobody_is_sent_what_it_would_refuse(judge, pool)

    def test_that_check_catches_a_pool_that_serves_what_any_endpoint_has(self):
        assert find(pools(), lambda pool: not nobody_is_sent_what_it_would_refuse(by_union, pool), settings=FIND)

    @given(pools())
    @SEARCH
    def test_nobody_is_left_out_without_need(self, pool):
        assert nobody_is_left_out_without_need(judge, pool)

    def test_that_check_catches_a_pool_that_takes_silence_for_a_list(self):
        assert find(pools(), lambda pool: not nobody_is_left_out_without_need(by_all, pool), settings=FIND)

    @given(pools())
    @SEARCH
    def test_the_models_are_those_listed_or_what_all_have_in_common(self, pool):
        listed, endpoints = pool
        served = judge(listed, endpoints)
        lists = [each.models for each in endpoints if each.models and not each.spec.draining]
        assert served == (listed or tuple(sorted(set.intersection(*map(set, lists)) if lists else ())))


class TestWhatIsSaid:
    @pytest.mark.parametrize(
        ("listed", "own", "said"),
        [
            (("a", "b"), endpoint("a"), "serves a, not b"),
            (("a",), endpoint(), "serves no model, not a"),
            (("a",), endpoint(*"bcdef"), "serves b, c, d and 2 more, not a"),
            ((), endpoint(None), "does not say which models it serves, and the pool lists none"),
            ((), endpoint(), "serves no model: no model that all endpoints have"),
            (("a",), endpoint(None, asked=False, asked_first=True), "has yet to say which models it serves"),
        ],
    )
    def test_of_one_that_may_not_take_part_names_what_it_lacks(self, listed, own, said):
        judge(listed, [own])
        assert own.wanting == said
        assert own.is_out
        assert not own.has_free_slot

    def test_of_endpoints_with_nothing_in_common_holds_for_all(self):
        one, other = endpoint("a"), endpoint("b", number=1)
        assert judge((), [one, other]) == ()
        assert one.wanting == "serves a: no model that all endpoints have"
        assert other.is_out

    def test_one_that_lists_nothing_takes_nothing_from_the_others(self):
        empty, full = endpoint(), endpoint("a", number=1)
        assert judge((), [empty, full]) == ("a",)
        assert full.wanting is None

    def test_one_that_drains_decides_nothing_any_more(self):
        old, new = endpoint("a", "b", draining=True), endpoint("b", "c", number=1)
        assert judge((), [old, new]) == ("b", "c")


class TestAList:
    def test_is_read_as_engines_write_it(self):
        body = json.dumps({"object": "list", "data": [{"id": "a", "object": "model", "max_model_len": 1}, {"id": "b"}]})
        assert read_list(body.encode()) == {"a", "b"}

    @pytest.mark.parametrize(
        "body", [b"", b"{}", b"[]", b"<html>", b'{"data": [{"id": 5}]}', b'{"data": 5}', b'{"data":' * 5000, b"\xff"]
    )
    def test_that_is_none_is_not_taken_for_one(self, body):
        assert read_list(body) is None

    def test_leaves_out_what_cannot_be_the_name_of_a_model(self):
        data = [{"id": name} for name in ("a", "", "b\n", "x" * 257)]
        assert read_list(json.dumps({"data": data}).encode()) == {"a"}

    def test_ends_somewhere(self):
        data = [{"id": str(number)} for number in range(MOST_MODELS + 5)]
        assert len(read_list(json.dumps({"data": data}).encode())) == MOST_MODELS
