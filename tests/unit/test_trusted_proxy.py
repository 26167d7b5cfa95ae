"""Behind a proxy that names tenants, its credential alone makes a request anybody's, whatever else is sent."""

import pytest
from hypothesis import find, given
from hypothesis import strategies as st
from support.config import digest_of, key_of, pool_config

from fairpool_gateway.errors import Refused, TenantSuspended
from fairpool_gateway.identity import Directory

CONFIG = pool_config(tenants=[{"name": "search"}, {"name": "batch"}])
SEARCH = (b"authorization", b"Bearer " + key_of("search").encode())
BATCH = (b"authorization", b"Bearer " + key_of("batch").encode())
NOW = 1_800_000_000.0


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

    def test_does_not_speak_for_a_tenant_that_is_suspended(self):
        with pytest.raises(TenantSuspended):
            Directory(proxied(tenants=[{"name": "search", "suspend": True}])).identify(
                [FROM_PROXY, named(b"search")], NOW
            )

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
        assert outcome(directory, BATCH, FROM_PROXY, named(b"search")) == "search"
        assert outcome(directory, (b"authorization", b"Bearer the proxy"), named(b"search"))[0] == "unauthenticated"

    @pytest.mark.parametrize("header", [b"x-tenant", b"x-fairpool-tenant", b"x-user", b"user"])
    def test_is_asked_in_no_other_pool(self, header):
        sent = [SEARCH, FROM_PROXY, (header, b"batch")]
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
        st.sampled_from([FROM_SOMEBODY, SEARCH, (b"x-api-key", b"the proxy"), (b"x-fairpool-tenant", b"search")]),
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

    @given(st.permutations([FROM_SOMEBODY, FROM_PROXY, named(b"search"), BATCH]))
    def test_the_order_of_headers_never_matters(self, headers):
        assert outcome(Directory(proxied()), *headers) == "search"
