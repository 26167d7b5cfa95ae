"""Which headers pass: all but those of one connection, the tenant's credential, and what is FairPool's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool_gateway.app import headers

CREDENTIALS = {b"authorization", b"x-api-key", b"api-key", b"proxy-authorization", b"cookie"}
OF_ONE_CONNECTION = {
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}
OWN = {b"host", b"content-length", b"x-request-id"}

names = st.sampled_from(
    sorted(CREDENTIALS | OF_ONE_CONNECTION | OWN | {b"expect", b"accept", b"traceparent", b"x-fairpool-tenant"})
) | st.from_regex(rb"[a-z][a-z0-9-]{0,12}", fullmatch=True)
values = st.binary(max_size=20)
header_lists = st.lists(st.tuples(names, values), max_size=8)


def sent(given_headers, *, host=b"engine:8000", length=7, request_id=b"id"):
    return headers.for_endpoint(given_headers, host, length, request_id)


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(each in rest for each in part)


class TestToAnEndpoint:
    @given(header_lists)
    def test_no_credential_no_claim_to_be_fairpool_and_nothing_of_the_connection_passes(self, given_headers):
        passed = {name for name, _ in sent(given_headers)}
        assert not passed & (CREDENTIALS | OF_ONE_CONNECTION | {b"expect"})
        assert not any(name.startswith(b"x-fairpool-") for name in passed)

    @given(header_lists)
    def test_host_length_and_id_are_there_once_and_are_the_gateways(self, given_headers):
        own = [(name, value) for name, value in sent(given_headers) if name in OWN]
        assert own == [(b"host", b"engine:8000"), (b"x-request-id", b"id"), (b"content-length", b"7")]

    @given(header_lists)
    def test_what_passes_keeps_its_order_its_repeats_and_its_bytes(self, given_headers):
        passed = [header for header in sent(given_headers) if header[0] not in OWN]
        assert is_subsequence(passed, given_headers)

    @given(st.lists(st.tuples(st.sampled_from([b"accept", b"traceparent", b"x-anything"]), values)))
    def test_ordinary_headers_all_pass(self, given_headers):
        assert [header for header in sent(given_headers) if header[0] not in OWN] == given_headers

    @given(header_lists)
    def test_the_endpoints_own_credential_is_the_only_one(self, given_headers):
        passed = headers.for_endpoint(given_headers, b"engine:8000", 7, b"id", b"engines-own")
        assert [header for header in passed if header[0] in CREDENTIALS] == [(b"authorization", b"Bearer engines-own")]

    @pytest.mark.parametrize(
        "connections",
        [[b"x-secret"], [b"Keep-Alive, X-Secret "], [b"keep-alive", b"close, x-secret"], [b"x-other", b"x-secret"]],
    )
    def test_what_connection_names_stops_here_wherever_it_is_named(self, connections):
        given_headers = [(b"x-secret", b"1"), *((b"connection", value) for value in connections), (b"x-secret", b"2")]
        assert b"x-secret" not in dict(sent(given_headers))

    def test_naming_the_gateways_own_headers_in_connection_removes_none_of_them(self):
        assert {b"host", b"content-length", b"x-request-id"} <= dict(
            sent([(b"connection", b"host, content-length, x-request-id")])
        ).keys()


class TestToATenant:
    @given(header_lists)
    def test_all_passes_in_order_but_what_is_of_the_connection_or_claims_to_be_fairpool(self, given_headers):
        named = {
            token.strip().lower()
            for name, value in given_headers
            if name == b"connection"
            for token in value.split(b",")
        } - {b"keep-alive", b"close"}
        kept = [header for header in given_headers if header[0] not in OF_ONE_CONNECTION | named]
        kept = [header for header in kept if header[0] not in {b"x-request-id", b"proxy-authorization"}]
        kept = [header for header in kept if not header[0].startswith(b"x-fairpool-")]
        assert headers.for_tenant(given_headers, b"id") == [*kept, (b"x-request-id", b"id")]

    def test_repeated_cookies_stay_apart(self):
        cookies = [(b"set-cookie", b"a=1"), (b"content-type", b"text/plain"), (b"set-cookie", b"b=2")]
        assert headers.for_tenant(cookies, b"id")[:3] == cookies


class TestRequestId:
    @pytest.mark.parametrize("given_id", [b"x", b"0af7651916cd43dd8448eb211c80319c", b"~" * 128])
    def test_a_tenants_own_is_taken(self, given_id):
        assert headers.request_id([(b"x-request-id", given_id)], "made") == given_id

    @pytest.mark.parametrize("given_id", [b"", b"two words", b"\xc3\xa9", b"~" * 129, b"a\tb"])
    def test_one_that_could_not_be_logged_or_is_too_long_is_replaced(self, given_id):
        assert headers.request_id([(b"x-request-id", given_id)], "made") == b"made"

    def test_of_several_the_first_is_taken(self):
        assert headers.request_id([(b"x-request-id", b"1"), (b"x-request-id", b"2")], "made") == b"1"

    def test_without_one_it_is_made(self):
        assert headers.request_id([], "made") == b"made"
