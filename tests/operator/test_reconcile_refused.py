"""What the API server does not take, now or at all, and what somebody else keeps changing, is in nothing else's way."""

from __future__ import annotations

import pytest
from support.resources import fair_pool, tenant_weight

from fairpool_operator.contests import AT_ONCE
from fairpool_operator.errors import Conflict, Forbidden, NotNow, NotThere, RejectedByServer
from fairpool_operator.view import OWNED_KINDS


class TestWhatIsRefused:
    async def test_is_said_and_keeps_nothing_else_from_being_written(self, server, look):
        server.refuses = {"Role"}
        with pytest.raises(RejectedByServer, match="Role is refused"):
            await look()
        written = {kind for verb, kind, _, _ in server.sent if verb in {"apply", "status"}}
        assert written == {*OWNED_KINDS, "FairPool", "TenantWeight"}
        accepted = server.there["FairPool", "llama"]["status"]["conditions"][0]
        assert (accepted["type"], accepted["status"], accepted["reason"]) == ("Accepted", "False", "ObjectRefused")
        assert "Role llama-fairpool: Role is refused" in accepted["message"]

    async def test_is_tried_again_and_said_no_more_once_it_is_taken(self, server, look):
        server.refuses = {"Role"}
        with pytest.raises(RejectedByServer):
            await look()
        server.refuses = set()
        await look()
        accepted = server.there["FairPool", "llama"]["status"]["conditions"][0]
        assert (accepted["type"], accepted["status"]) == ("Accepted", "True")

    async def test_as_an_event_is_in_no_ones_way(self, server, look):
        server.refuses = {"Event"}
        sent = await look(tenant_weight("a", tenantName="search"))
        assert ("create", "Event") in {(verb, kind) for verb, kind, _, _ in sent}
        assert {name for verb, kind, name, _ in sent if (verb, kind) == ("status", "TenantWeight")} == {"a", "search"}

    async def test_as_one_status_keeps_none_of_the_others_back(self, server, look):
        server.refuses = {"TenantWeight"}
        with pytest.raises(RejectedByServer):
            await look(tenant_weight("b"))
        assert {name for verb, kind, name, _ in server.sent if kind == "TenantWeight"} == {"b", "search"}
        assert server.there["FairPool", "llama"]["status"]["tenants"] == 2

    @pytest.mark.parametrize(
        ("answer", "status", "reason"),
        [
            (Forbidden("DELETE: 403", "no policy is removed here"), "False", "ObjectRefused"),
            (NotNow("DELETE: 500", "no policy is removed here"), "Unknown", "ObjectPending"),
        ],
    )
    async def test_as_a_removal_is_said_and_keeps_no_status_from_being_said(self, server, look, answer, status, reason):
        await look()
        server.fails_with["NetworkPolicy"] = answer
        with pytest.raises(type(answer)):
            await look(fair_pool(gateway={}), tenant_weight("b"))
        accepted = server.there["FairPool", "llama"]["status"]["conditions"][0]
        assert (accepted["status"], accepted["reason"]) == (status, reason)
        assert "it is to be removed: no policy is removed here" in accepted["message"]
        assert server.there["TenantWeight", "b"]["status"]["conditions"][0]["status"] == "True"

    @pytest.mark.parametrize("failure", [Conflict("PATCH: 409"), NotThere("PATCH: 404")])
    @pytest.mark.parametrize("name", ["search", "llama"])
    async def test_as_a_status_of_another_version_is_an_error_and_said_at_the_next_look(
        self, server, look, name, failure
    ):
        server.fails["status", name] = failure
        with pytest.raises(type(failure)):
            await look()
        assert ("status", name) in {(verb, name) for verb, _, name, _ in await look()}
        assert len(await look()) == 0


class TestWhatCannotBeTakenJustNow:
    """The API server answers, with 500 or the like: a webhook that it has to ask is away."""

    AWAY = NotNow("PATCH: 500", "failed calling webhook")
    NOT_WITHOUT = NotThere("PATCH: 404", "failed calling webhook, or the Role of a RoleBinding is not there")

    @pytest.mark.parametrize("answer", [AWAY, NOT_WITHOUT], ids=["away", "another object is not there"])
    @pytest.mark.parametrize("kind", sorted(OWNED_KINDS))
    async def test_is_said_to_be_on_its_way_and_keeps_nothing_else_from_being_written(self, server, look, kind, answer):
        server.fails_with[kind] = answer
        with pytest.raises(type(answer)):
            await look()
        written = {kind for verb, kind, _, _ in server.sent if verb in {"apply", "status"}}
        assert written == {*OWNED_KINDS, "FairPool", "TenantWeight"}
        said = {each["type"]: each for each in server.there["FairPool", "llama"]["status"]["conditions"]}
        assert (said["Accepted"]["status"], said["Accepted"]["reason"]) == ("Unknown", "ObjectPending")
        assert "failed calling webhook" in said["Accepted"]["message"]
        assert said["Ready"]["status"] != "True"
        assert "Stalled" not in said
        server.fails_with.clear()
        await look()
        accepted = server.there["FairPool", "llama"]["status"]["conditions"][0]
        assert (accepted["type"], accepted["status"]) == ("Accepted", "True")

    @pytest.mark.parametrize("answer", [AWAY, Forbidden("PATCH: 403", "no")], ids=["away", "forbidden"])
    async def test_as_one_status_keeps_none_of_the_others_back(self, server, look, answer):
        server.fails["status", "search"] = answer
        others = [tenant_weight(f"t{number}") for number in range(20)]
        with pytest.raises(type(answer)):
            await look(*others)
        said = {name for verb, kind, name, _ in server.sent if verb == "status"}
        assert said == {"llama", "search", *(f"t{number}" for number in range(20))}

    async def test_as_an_event_is_in_no_ones_way(self, server, look):
        server.fails_with["Event"] = self.AWAY
        sent = await look(tenant_weight("a", tenantName="search"))
        assert ("create", "Event") in {(verb, kind) for verb, kind, _, _ in sent}
        assert {name for verb, kind, name, _ in sent if (verb, kind) == ("status", "TenantWeight")} == {"a", "search"}


class TestWhatSomebodyElseKeepsChanging:
    def changed(self, server):
        service = server.there["Service", "llama-fairpool"]
        return {**service, "spec": {**service["spec"], "type": "NodePort"}}

    async def test_is_put_back_at_once_a_few_times_and_then_said_while_it_waits(self, server, look):
        await look()
        await look()
        for _ in range(AT_ONCE):
            assert ("apply", "Service") in {each[:2] for each in await look(self.changed(server))}
        sent = await look(self.changed(server), tenant_weight(weight=7))
        assert {each[:2] for each in sent if each[0] == "apply"} == {("apply", "Secret")}
        accepted = server.there["FairPool", "llama"]["status"]["conditions"][0]
        assert (accepted["status"], accepted["reason"]) == ("Unknown", "ObjectPending")
        assert "Service llama-fairpool: somebody else changes it" in accepted["message"]

    @pytest.mark.parametrize("kind", ["FairPool", "TenantWeight"])
    async def test_of_a_status_is_put_back_later_and_later_too(self, server, look, kind):
        name = {"FairPool": "llama", "TenantWeight": "search"}[kind]
        await look()
        await look()

        def forged():
            found = server.there[kind, name]
            conditions = [{**each, "message": "forged"} for each in found["status"]["conditions"]]
            return {**found, "status": {**found["status"], "conditions": conditions}}

        for _ in range(AT_ONCE):
            assert ("status", kind) in {each[:2] for each in await look(forged())}
        assert await look(forged()) == []
        assert len(await look(fair_pool(suspend=True), tenant_weight(suspend=True))) > 0
        assert server.there[kind, name]["status"]["conditions"][0]["message"] != "forged"

    async def test_is_written_at_once_where_it_is_wanted_otherwise(self, server, look):
        await look()
        for _ in range(AT_ONCE + 1):
            await look(self.changed(server))
        edited = fair_pool(gateway={"networkPolicy": {}, "service": {"annotations": {"a": "b"}}})
        assert ("apply", "Service") in {each[:2] for each in await look(edited)}

    async def test_is_no_contest_where_the_cluster_itself_makes_it_other_than_asked(self, server, look):
        server.always["Service"] = lambda made: {**made, "spec": {**made["spec"], "type": "NodePort"}}
        for _ in range(AT_ONCE + 5):
            await look()
        accepted = server.there["FairPool", "llama"]["status"]["conditions"][0]
        assert (accepted["type"], accepted["status"]) == ("Accepted", "True")
