"""What a dispatcher does as it learns which models its endpoints serve."""

import pytest
from support.config import pool_config
from support.dispatchers import granted, spec
from support.requests import request

from fairpool_gateway.dispatcher import Dispatcher, Refuse
from fairpool_gateway.endpoints import EndpointSpec
from fairpool_gateway.errors import ModelNotFound, NoEndpoint


def pool(*endpoints, models=()):
    made = Dispatcher(pool_config(models=list(models), queue={"timeout": "5s"}))
    made.replace_endpoints(0.0, endpoints)
    return made


def first(made):
    return next(iter(made.endpoints))


class TestAPoolThatListsNoModels:
    def test_lets_any_request_wait_while_nobody_knows_what_is_served(self):
        made = pool(spec(0))
        assert made.serves("sim")
        assert made.serves("whatever")
        assert granted(made.arrive(0.0, request("r", "a"))) == []

    def test_dispatches_once_an_endpoint_has_told(self):
        made = pool(spec(0))
        made.arrive(0.0, request("r", "a"))
        assert granted(made.listed(1.0, first(made), frozenset({"sim", "other"}))) == ["r"]
        assert made.models == ("other", "sim")

    def test_tells_who_waits_for_another_model_that_there_is_none_and_charges_nothing(self):
        made = pool(spec(0))
        made.arrive(0.0, request("r", "a"))
        (refused,) = made.listed(1.0, first(made), frozenset({"other"}))
        assert isinstance(refused, Refuse)
        assert isinstance(refused.refusal, ModelNotFound)
        assert made.counts.charged == 0
        assert not made.serves("sim")

    def test_has_no_endpoint_for_whoever_waits_too_long(self):
        made = pool()
        made.arrive(0.0, request("r", "a"))
        (refused,) = made.tick(5.0)
        assert isinstance(refused.refusal, NoEndpoint)

    def test_has_none_either_while_its_endpoints_do_not_say(self):
        made = pool(spec(0))
        made.arrive(0.0, request("r", "a"))
        assert made.listed(1.0, first(made), None) == []
        (refused,) = made.tick(5.0)
        assert isinstance(refused.refusal, NoEndpoint)

    def test_serves_what_is_common_as_endpoints_come_and_go(self):
        made = pool(spec(0), spec(1))
        for endpoint, models in zip(made.endpoints, ({"a", "b"}, {"b", "c"}), strict=True):
            made.listed(1.0, endpoint, frozenset(models))
        assert made.models == ("b",)
        made.replace_endpoints(2.0, [spec(1)])
        assert made.models == ("b", "c")
        made.replace_endpoints(3.0, [])
        assert made.models == ()


class TestAPoolThatListsModels:
    def test_gives_slots_at_once_to_endpoints_that_have_not_told(self):
        assert granted(pool(spec(0), models=["sim"]).arrive(0.0, request("r", "a"))) == ["r"]

    def test_gives_none_to_one_that_serves_another_until_it_serves_all(self):
        made = pool(spec(0), models=["sim", "more"])
        made.listed(1.0, first(made), frozenset({"sim"}))
        assert granted(made.arrive(1.0, request("r", "a"))) == []
        assert granted(made.listed(2.0, first(made), frozenset({"sim", "more", "other"}))) == ["r"]

    def test_asks_first_where_that_is_wanted_and_believes_silence_then(self):
        made = pool(EndpointSpec("e", "127.0.0.1", 1, 1, asked_first=True), models=["sim"])
        assert granted(made.arrive(1.0, request("r", "a"))) == []
        assert granted(made.listed(2.0, first(made), None)) == ["r"]

    def test_keeps_what_waits_when_an_edit_takes_its_model_away(self):
        made = pool(models=["sim"])
        made.arrive(0.0, request("r", "a"))
        assert made.configure(1.0, pool_config(models=["other"])) == []
        assert granted(made.replace_endpoints(2.0, [spec(0)])) == ["r"]


class TestAnEndpointThatComesBack:
    @pytest.mark.parametrize("away", [[], [spec(1, slots=0)]])
    def test_with_its_identity_still_has_what_it_had_in_flight(self, away):
        made = pool(spec(0, slots=1), models=["sim"])
        running = request("runs", "a")
        made.arrive(0.0, running)
        made.replace_endpoints(1.0, away)
        made.replace_endpoints(2.0, [spec(0, slots=1)])
        assert granted(made.arrive(3.0, request("waits", "a"))) == []
        assert granted(made.complete(4.0, running, None)) == ["waits"]

    def test_after_it_has_finished_is_as_new(self):
        made = pool(spec(0), models=["sim"])
        running = request("runs", "a")
        made.arrive(0.0, running)
        before = first(made)
        made.replace_endpoints(1.0, [])
        made.complete(2.0, running, None)
        made.replace_endpoints(3.0, [])
        made.replace_endpoints(4.0, [spec(0)])
        assert first(made) is not before
