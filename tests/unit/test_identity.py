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

    @pytest.mark.parametrize("authentication", ["Anonymous", "TrustedHeader"])
    def test_is_suspended_however_tenants_are_told_apart(self, authentication):
        if authentication == "Anonymous":
            config = pool_config(tenants=[{"name": "anonymous", "suspend": True}], authentication={"type": "Anonymous"})
            headers = []
        else:
            config = proxied(tenants=[{"name": "search", "suspend": True}])
            headers = [FROM_PROXY, named(b"search")]
        with pytest.raises(TenantSuspended):
            Directory(config).identify(headers, NOW)


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


def proxied(*, tenants=({"name": "search"}, {"name": "team/batch"}), **authentication):
    """A pool behind a proxy that names tenants in x-tenant."""
    settings = {"type": "TrustedHeader", "header": "X-Tenant", "proxyCredential": {"digest": digest_of("the proxy")}}
    return pool_config(tenants=list(tenants), authentication={**settings, **authentication})


FROM_PROXY = (b"x-fairpool-proxy-credential", b"the proxy")
FROM_SOMEBODY = (b"x-fairpool-proxy-credential", b"a guess")


def named(tenant):
    return b"x-tenant", tenant


def outcome(directory, *headers):
    """The tenant, or the reason and the words of the refusal."""
    try:
        return directory.identify([(b"host", b"pool"), *headers], NOW)
    except Refused as refused:
        return refused.reason, refused.message


class TestATrustedProxy:
    def test_names_the_tenant(self):
        directory = Directory(proxied())
        assert outcome(directory, FROM_PROXY, named(b"search")) == "search"
        assert outcome(directory, named(b" team/batch "), FROM_PROXY) == "team/batch"

    def test_is_known_by_its_credential_only(self):
        directory = Directory(proxied())
        assert outcome(directory, named(b"search")) == (
            "unauthenticated",
            "Pool llama takes requests from its own proxy only. Send yours there.",
        )
        assert outcome(directory, FROM_SOMEBODY, named(b"search")) == (
            "unauthenticated",
            "The credential in x-fairpool-proxy-credential is not that of the proxy of pool llama.",
        )

    @pytest.mark.parametrize(
        "credential", [b"", b"the prox", b"THE PROXY", digest_of("the proxy").encode(), b"\xff", b"search"]
    )
    def test_is_not_taken_for_another(self, credential):
        directory = Directory(proxied())
        assert (
            outcome(directory, (b"x-fairpool-proxy-credential", credential), named(b"search"))[0] == "unauthenticated"
        )

    def test_is_known_by_its_next_credential_too_while_that_changes(self):
        both = {"digest": digest_of("the proxy"), "nextDigest": digest_of("the next")}
        directory = Directory(proxied(proxyCredential=both))
        assert outcome(directory, FROM_PROXY, named(b"search")) == "search"
        assert outcome(directory, (FROM_PROXY[0], b"the next"), named(b"search")) == "search"

    def test_is_not_harmed_by_what_its_client_sends_in_the_same_header(self):
        assert outcome(Directory(proxied()), FROM_SOMEBODY, FROM_PROXY, named(b"search")) == "search"

    def test_has_to_name_somebody(self):
        for headers in ([FROM_PROXY], [FROM_PROXY, named(b"")], [FROM_PROXY, named(b" ")]):
            assert outcome(Directory(proxied()), *headers) == (
                "unauthenticated",
                "The proxy of pool llama named no tenant in the header x-tenant.",
            )

    def test_has_to_replace_what_its_client_sends(self):
        for names in ([b"search", b"team/batch"], [b"search", b"search"], [b"", b"search"]):
            assert outcome(Directory(proxied()), FROM_PROXY, *map(named, names)) == (
                "unauthenticated",
                "The header x-tenant is there more than once. The proxy has to replace what its clients send.",
            )
        assert outcome(Directory(proxied()), FROM_PROXY, named(b"search, team/batch"))[0] == "forbidden"

    def test_asks_for_no_key_and_takes_none(self):
        directory = Directory(proxied())
        assert outcome(directory, bearer(BATCH), FROM_PROXY, named(b"search")) == "search"
        assert outcome(directory, bearer(b"the proxy"), named(b"search"))[0] == "unauthenticated"

    @pytest.mark.parametrize("header", [b"x-tenant", b"x-fairpool-tenant", b"x-user", b"user"])
    def test_is_asked_in_no_other_pool(self, header):
        sent = [bearer(SEARCH), FROM_PROXY, (header, b"batch")]
        assert Directory(CONFIG).identify(sent, NOW) == "search"


class TestATenantThatIsNotListed:
    def test_is_refused(self):
        assert outcome(Directory(proxied()), FROM_PROXY, named(b"stranger")) == (
            "forbidden",
            "Tenant stranger may not use pool llama. Ask those who run it to list this tenant.",
        )

    def test_is_admitted_where_the_pool_says_so(self):
        directory = Directory(proxied(unknownTenants="Admit"))
        assert outcome(directory, FROM_PROXY, named(b"stranger")) == "stranger"

    @pytest.mark.parametrize(
        "name", [b"_other", b"_fairpool", b"a b", b"a,b", b"-a", b"a-", b"a\x00", b"\xc3\xa4", b"x" * 321]
    )
    def test_is_not_admitted_by_a_name_that_no_tenant_may_have(self, name):
        assert outcome(Directory(proxied(unknownTenants="Admit")), FROM_PROXY, named(name)) == (
            "forbidden",
            "What the proxy sent in the header x-tenant cannot be the name of a tenant.",
        )


class TrustsTheHeaderAlone(Directory):
    """The broken variant: the header counts whether or not the proxy sent it."""

    def identify(self, headers, now):
        return super().identify([*headers, FROM_PROXY], now)


sent_to_proxied = st.lists(
    st.one_of(
        st.sampled_from([FROM_SOMEBODY, bearer(SEARCH), x_api_key(b"the proxy"), (b"x-fairpool-tenant", b"search")]),
        st.binary(max_size=12).map(named),
        st.sampled_from([b"search", b"team/batch"]).map(named),
        st.binary(max_size=12).map(lambda value: (b"x-fairpool-proxy-credential", value)),
    ),
    max_size=5,
)


class TestWithoutTheProxysCredential:
    @given(sent_to_proxied)
    def test_nothing_that_is_sent_makes_a_request_anybodys(self, headers):
        assert outcome(Directory(proxied(unknownTenants="Admit")), *headers)[0] == "unauthenticated"

    def test_that_property_catches_a_directory_that_trusts_the_header_alone(self):
        directory = TrustsTheHeaderAlone(proxied())
        assert find(sent_to_proxied, lambda headers: outcome(directory, *headers) == "search")

    @given(st.permutations([FROM_SOMEBODY, FROM_PROXY, named(b"search"), bearer(BATCH)]))
    def test_the_order_of_headers_never_matters(self, headers):
        assert outcome(Directory(proxied()), *headers) == "search"
