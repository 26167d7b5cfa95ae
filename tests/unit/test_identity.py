"""A request's headers say whose it is, whichever header its client sends the key in, and in whatever order."""

import hashlib
import itertools

import pytest
from hypothesis import find, given
from hypothesis import strategies as st
from support.config import digest_of, key_of, pool_config

from fairpool_gateway.errors import Refused, TenantSuspended, Unauthenticated
from fairpool_gateway.identity import Directory

CONFIG = pool_config(tenants=[{"name": "search"}, {"name": "batch"}])
SEARCH, BATCH, STRANGER = key_of("search").encode(), key_of("batch").encode(), b"sk-stranger"


def bearer(key):
    return b"authorization", b"Bearer " + key


def x_api_key(key):
    return b"x-api-key", key


def api_key(key):
    return b"api-key", key


NOW = 1_800_000_000.0


def identify(*headers):
    return Directory(CONFIG).identify([(b"host", b"pool"), *headers, (b"accept", b"*/*")], NOW)


def refusal(*headers):
    with pytest.raises(Unauthenticated) as refused:
        identify(*headers)
    return refused.value.message


class TestAKey:
    @pytest.mark.parametrize("header", [bearer, x_api_key, api_key])
    def test_is_found_in_any_header_that_clients_use(self, header):
        assert (identify(header(SEARCH)), identify(header(BATCH))) == ("search", "batch")

    @pytest.mark.parametrize("scheme", [b"Bearer ", b"bearer ", b"BEARER ", b"Bearer   "])
    def test_is_found_however_the_scheme_is_written(self, scheme):
        assert identify((b"authorization", scheme + SEARCH + b" ")) == "search"

    def test_of_a_tenant_that_rotates_its_keys_is_any_of_them(self):
        digests = [{"digest": f"sha256:{hashlib.sha256(key).hexdigest()}"} for key in (b"old", b"new")]
        directory = Directory(pool_config(tenants=[{"name": "search", "keys": digests}]))
        assert [directory.identify([bearer(key)], NOW) for key in (b"old", b"new")] == ["search", "search"]

    def test_is_kept_nowhere(self):
        directory = Directory(CONFIG)
        directory.identify([bearer(SEARCH)], NOW)
        assert SEARCH.decode() not in repr(vars(directory))


def rotating(**newer):
    """A tenant whose old key ends at NOW."""
    ends = "2027-01-15T08:00:00Z"
    keys = [{"name": "old", "digest": digest_of("old"), "notAfter": ends}, {"digest": digest_of("new"), **newer}]
    return pool_config(tenants=[{"name": "search", "keys": keys}, {"name": "batch"}])


class TestAKeyThatEnds:
    def test_opens_to_its_last_instant_and_not_beyond(self):
        directory = Directory(rotating())
        assert directory.identify([bearer(b"old")], NOW) == "search"
        with pytest.raises(Unauthenticated) as refused:
            directory.identify([bearer(b"old")], NOW + 0.001)
        assert refused.value.message == ("This API key ended at 2027-01-15 08:00:00 UTC. Send one that is still good.")

    def test_leaves_the_tenants_other_keys_alone(self):
        assert Directory(rotating()).identify([bearer(b"new"), x_api_key(b"old")], NOW + 1) == "search"

    def test_is_passed_over_beside_another_tenants(self):
        directory = Directory(rotating())
        assert directory.identify([bearer(b"old"), x_api_key(BATCH)], NOW + 1) == "batch"

    def test_opens_again_when_an_edit_gives_it_more_time(self):
        keys = [{"digest": digest_of("old"), "notAfter": "2027-01-15T09:00:00+01:00"}, {"digest": digest_of("old")}]
        config = pool_config(tenants=[{"name": "search", "keys": keys}])
        assert Directory(config, Directory(rotating())).identify([bearer(b"old")], NOW + 1) == "search"
        backwards = pool_config(tenants=[{"name": "search", "keys": keys[::-1]}])
        assert Directory(backwards).identify([bearer(b"old")], NOW + 1) == "search"


def last_uses(directory):
    return {(key.tenant, key.name): key.last_used for key in directory.keys.values()}


class TestTheLastUseOfAKey:
    NEW = digest_of("new")[:15] + "..."

    def test_is_seen_by_the_keys_name_or_the_beginning_of_its_digest(self):
        directory = Directory(rotating())
        directory.identify([bearer(b"old")], NOW - 5)
        directory.identify([bearer(b"new")], NOW - 4)
        directory.identify([bearer(b"old")], NOW - 3)
        uses = last_uses(directory)
        assert (uses["search", "old"], uses["search", self.NEW]) == (NOW - 3, NOW - 4)
        assert None in uses.values()

    def test_does_not_move_when_the_key_has_ended(self):
        directory = Directory(rotating())
        directory.identify([bearer(b"old")], NOW)
        with pytest.raises(Unauthenticated):
            directory.identify([bearer(b"old")], NOW + 5)
        assert last_uses(directory)["search", "old"] == NOW

    def test_is_still_known_after_an_edit_of_the_configuration(self):
        directory = Directory(rotating())
        directory.identify([bearer(b"old")], NOW)
        directory.identify([bearer(b"new")], NOW)
        edited = Directory(rotating(name="2027-q1"), before=directory)
        assert last_uses(edited)["search", "old"] == last_uses(edited)["search", "2027-q1"] == NOW

    def test_is_not_taken_over_by_another_tenant(self):
        directory = Directory(rotating())
        directory.identify([bearer(b"old")], NOW)
        given_away = pool_config(tenants=[{"name": "batch", "keys": [{"name": "old", "digest": digest_of("old")}]}])
        assert last_uses(Directory(given_away, before=directory)) == {("batch", "old"): None}


class TestASuspendedTenant:
    CONFIG = pool_config(tenants=[{"name": "search", "suspend": True}, {"name": "batch"}])

    def test_is_told_so(self):
        with pytest.raises(TenantSuspended) as refused:
            Directory(self.CONFIG).identify([bearer(SEARCH)], NOW)
        assert refused.value.message == "Tenant search is suspended. Ask those who run this pool."

    def test_does_not_bother_others(self):
        assert Directory(self.CONFIG).identify([bearer(BATCH)], NOW) == "batch"


class TestWithoutAKeyThatIsKnown:
    @pytest.mark.parametrize(
        "headers",
        [
            (),
            (bearer(b""),),
            (x_api_key(b" "),),
            ((b"authorization", b"Basic c2VhcmNoOng="),),
            ((b"authorization", SEARCH),),
            ((b"authorization", b"Bearer"),),
        ],
    )
    def test_a_request_is_told_where_to_put_one(self, headers):
        assert refusal(*headers) == (
            "An API key is needed for pool llama. "
            "Send it as 'Authorization: Bearer KEY', or in the header x-api-key or api-key."
        )

    @pytest.mark.parametrize("header", [bearer, x_api_key, api_key])
    @pytest.mark.parametrize("key", [STRANGER, SEARCH + b"x", SEARCH[:-1], SEARCH.upper(), b"\xff\x00"])
    def test_a_request_is_told_that_its_key_is_not_without_repeating_it(self, header, key):
        assert refusal(header(key)) == "This API key belongs to no tenant of pool llama. Check that it is complete."

    def test_a_digest_opens_nothing(self):
        digest = CONFIG.tenants[0].keys[0].digest
        assert "belongs to no tenant" in refusal(bearer(digest.encode()))
        assert "belongs to no tenant" in refusal(bearer(digest.removeprefix("sha256:").encode()))


class TestSeveralKeys:
    def test_of_one_tenant_agree(self):
        assert identify(bearer(SEARCH), x_api_key(SEARCH)) == "search"

    def test_of_which_one_is_known_are_that_tenants(self):
        assert identify(bearer(STRANGER), x_api_key(SEARCH)) == "search"
        assert identify(bearer(SEARCH), bearer(STRANGER)) == "search"

    def test_of_different_tenants_are_refused(self):
        assert refusal(bearer(SEARCH), api_key(BATCH)) == (
            "The request holds API keys of different tenants. Send one key only."
        )


class FirstHeaderWins(Directory):
    """The broken variant: what comes first decides, as in gateways that stop at the first key they see."""

    def identify(self, headers, now):
        return super().identify(list(headers)[:1], now)


sent = st.lists(
    st.builds(
        lambda header, key: header(key),
        st.sampled_from([bearer, x_api_key, api_key]),
        st.sampled_from([SEARCH, BATCH, STRANGER]),
    ),
    max_size=4,
)


def order_matters(directory, headers):
    def outcome(arranged):
        try:
            return directory.identify(arranged, NOW)
        except Refused:
            return None

    return len({outcome(arranged) for arranged in itertools.permutations(headers)}) > 1


class TestTheOrderOfHeaders:
    @given(sent)
    def test_never_matters(self, headers):
        assert not order_matters(Directory(CONFIG), headers)

    def test_that_comparison_catches_a_directory_that_stops_at_the_first(self):
        assert find(sent, lambda headers: order_matters(FirstHeaderWins(CONFIG), headers))


class TestAnAnonymousPool:
    @pytest.mark.parametrize("headers", [(), (bearer(STRANGER),), ((b"authorization", b"Basic x"),)])
    def test_takes_everybody_for_one_tenant(self, headers):
        assert Directory(pool_config()).identify(headers, NOW) == "anonymous"

    def test_may_give_that_tenant_a_weight(self):
        config = pool_config(tenants=[{"name": "anonymous", "weight": 5}], authentication={"type": "Anonymous"})
        assert config.weights()[Directory(config).identify([], NOW)] == 5

    def test_may_suspend_that_tenant(self):
        suspended = [{"name": "anonymous", "suspend": True}]
        config = pool_config(tenants=suspended, authentication={"type": "Anonymous"})
        with pytest.raises(TenantSuspended):
            Directory(config).identify([], NOW)
