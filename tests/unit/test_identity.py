"""A request's headers say whose it is, whichever header its client sends the key in, and in whatever order."""

import hashlib
import itertools

import pytest
from hypothesis import find, given
from hypothesis import strategies as st
from support.config import key_of, pool_config

from fairpool_gateway.errors import Unauthenticated
from fairpool_gateway.identity import Directory

CONFIG = pool_config(tenants=[{"name": "search"}, {"name": "batch"}])
SEARCH, BATCH, STRANGER = key_of("search").encode(), key_of("batch").encode(), b"sk-stranger"


def bearer(key):
    return b"authorization", b"Bearer " + key


def x_api_key(key):
    return b"x-api-key", key


def api_key(key):
    return b"api-key", key


def identify(*headers):
    return Directory(CONFIG).identify([(b"host", b"pool"), *headers, (b"accept", b"*/*")])


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
        assert [directory.identify([bearer(key)]) for key in (b"old", b"new")] == ["search", "search"]

    def test_is_kept_nowhere(self):
        directory = Directory(CONFIG)
        before = repr(vars(directory))
        directory.identify([bearer(SEARCH)])
        assert repr(vars(directory)) == before
        assert SEARCH.decode() not in before


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

    def identify(self, headers):
        return super().identify(list(headers)[:1])


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
            return directory.identify(arranged)
        except Unauthenticated:
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
        assert Directory(pool_config()).identify(headers) == "anonymous"

    def test_may_give_that_tenant_a_weight(self):
        config = pool_config(tenants=[{"name": "anonymous", "weight": 5}], authentication={"type": "Anonymous"})
        assert config.weights()[Directory(config).identify([])] == 5
