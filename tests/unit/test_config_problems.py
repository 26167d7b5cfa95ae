"""What is wrong with a file is said in words, at its place in the file, and no key is ever repeated."""

# ruff: noqa: E501  (a table reads best with each case on one line)

import json
import traceback

import pytest
import yaml
from support.config import digest_of, pool_document

from fairpool_gateway.config import PoolConfig, load
from fairpool_gateway.errors import ConfigInvalid

DIGEST = digest_of("a key")
HOW_TO_DIGEST = """'sha256:' and the 64 hex digits that `printf %s "$KEY" | sha256sum` prints"""
TLS = {"caFile": "/etc/fairpool/ca.pem", "serverName": "engine.local"}
NAME = "at most 320 letters, digits and . _ - / @ : with a letter or digit at either end"


def problems_of(text):
    with pytest.raises(ConfigInvalid) as refused:
        load(text, source="pool.yaml", strict=True)
    return refused.value.problems


def document(**fields):
    return json.dumps(pool_document(**{"tenants": [{"name": "search"}], **fields}))


def endpoint(url, **fields):
    return {"endpoints": [{"name": "e", "url": url, **fields}]}


def over_tls(**fields):
    return {**endpoint("https://h:1"), "endpointTls": {**TLS, **fields}}


def tenants(*listed):
    return {"tenants": [{"name": "search"}, *listed]}


def key(**fields):
    return tenants({"name": "batch", "keys": [{"digest": DIGEST, **fields}]})


def trusted(**fields):
    proxy = {"type": "TrustedHeader", "header": "x-tenant", "proxyCredential": {"digest": DIGEST}}
    return {"authentication": {**proxy, **fields}}


FIELDS = [
    ({"pool": "Llama_70B"}, "pool: must be a DNS label (at most 63 of a-z, 0-9 and '-', no '-' at either end), not 'Llama_70B'"),
    ({"pool": 70}, "pool: must be text, not 70: put it in quotes"),
    ({"pool": None}, "pool: must be text, not nothing"),
    ({"version": 2}, "version: must be 1, the only version that this gateway reads, not 2"),
    ({"models": "llama"}, "models: must be a list, not a single value"),
    ({"models": {"a": 1}}, "models: must be a list, not a mapping"),
    ({"extraPaths": "/v1/images/edits"}, "extraPaths: must be a list, not a single value"),
    ({"extraPaths": ["/a", 3]}, "extraPaths[1]: must be text, not 3: put it in quotes"),
    ({"extraPaths": ["/v1/load_lora_adapter"]}, "extraPaths[0]: must not be here: 'load_lora_adapter' manages an engine, for all tenants at once; remove it, and reach the engine itself to manage it"),
    ({"models": ["a", "b", "a"]}, "models[2]: is in the list already, as models[0]"),
    ({"models": [" a"]}, "models[0]: must be 1 to 256 printable characters with no space at either end, not ' a'"),
    ({"models": [7]}, "models[0]: must be text, not 7: put it in quotes"),
    (tenants({"name": "batch", "weight": 4000}), "tenants[1].weight: must be 1 to 1000, not 4000 (tenant batch)"),
    (tenants({"name": "batch", "weight": 0}), "tenants[1].weight: must be 1 to 1000, not 0 (tenant batch)"),
    (tenants({"name": "batch", "weight": 1.5}), "tenants[1].weight: must be a whole number from 1 to 1000, not 1.5 (tenant batch)"),
    (tenants({"name": "batch", "weight": "3"}), "tenants[1].weight: must be a whole number from 1 to 1000, not '3' (tenant batch)"),
    (tenants({"name": "batch", "weight": True}), "tenants[1].weight: must be a whole number from 1 to 1000, not true (tenant batch)"),
    (tenants({"name": "_other"}), "tenants[1].name: _other is reserved for the tenants beyond authentication.maxTenants; choose another name"),
    (tenants({"name": "a b"}), f"tenants[1].name: must be {NAME}, not 'a b'"),
    (tenants({"name": False}), "tenants[1].name: must be text, not false: put it in quotes"),
    (tenants({"name": "search"}), "tenants[1].name: is the name of tenants[0] too: make them one, with the keys of both"),
    (
        tenants({"name": "batch", "keys": [{"digest": digest_of("key-of-search")}]}),
        "tenants[1].keys[0].digest: is tenants[0].keys[0] of tenant search too: a key can be one tenant's only (tenant batch)",
    ),
    (
        tenants({"name": "batch", "keys": [{"digest": "sk-hidden"}]}),
        f"tenants[1].keys[0].digest: must be {HOW_TO_DIGEST}; a key itself never belongs here (tenant batch)",
    ),
    (
        tenants({"name": "batch", "keys": [{"digest": digest_of("")}]}),
        "tenants[1].keys[0].digest: is the digest of an empty key: was the variable set when you made it? (tenant batch)",
    ),
    (tenants({"name": "batch", "keys": [{}]}), f"tenants[1].keys[0].digest: is missing: give {HOW_TO_DIGEST} (tenant batch)"),
    (tenants({"name": "batch", "keys": [DIGEST]}), "tenants[1].keys[0]: must be a mapping of fields, not a single value (tenant batch)"),
    (tenants({"name": "batch", "keys": [{"digest": DIGEST, "name": 5}]}), f"tenants[1].keys[0].name: must be {NAME}, in quotes if it is a number (tenant batch)"),
    *(
        (key(notAfter=value), "tenants[1].keys[0].notAfter: must be an instant with its time zone, such as 2026-12-31T23:59:59Z (tenant batch)")
        for value in ("soon", "2026-12-31", "2026-12-31T23:59Z", 1798761599, True, "20261231T235959Z", "\uff12026-12-31T23:59:59Z")
    ),
    (key(notAfter="2026-12-31T23:59:59"), "tenants[1].keys[0].notAfter: has no time zone: end it with Z, or with an offset such as +02:00 (tenant batch)"),
    *(
        (key(notAfter=value), "tenants[1].keys[0].notAfter: is not in the calendar: check day and time (tenant batch)")
        for value in ("2026-02-30T00:00:00Z", "2026-01-01T24:00:01Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+01:00", "2026-01-01T00:00:00+24:00")
    ),
    (tenants({"name": "batch", "suspend": "yes"}), "tenants[1].suspend: must be true or false, not 'yes' (tenant batch)"),
    (tenants({"name": "batch", "queue": {"maxRequests": 0}}), "tenants[1].queue.maxRequests: must be 1 to 1000000, not 0 (tenant batch)"),
    (
        tenants({"name": "batch", "queue": {"maxBytes": "1Mi"}}),
        "tenants[1].queue.maxBytes: must be at least queue.maxRequestBytes, 32Mi, not 1Mi, or the largest requests could never wait: raise this or lower that (tenant batch)",
    ),
    (tenants({"name": "batch", "queue": {"timeout": "1s"}}), "tenants[1].queue.timeout: is not a field here; there are maxRequests, maxBytes (tenant batch)"),
    ({"suspend": 1}, "suspend: must be true or false, not 1"),
    (
        {"tenants": [{"name": "search", "keys": []}]},
        "tenants: no tenant has a key, so nobody could send a request: list the digests of their keys, or set authentication.type to Anonymous where everybody is trusted",
    ),
    (
        {"authentication": {"type": "Anonymous"}},
        "tenants[0].name: is nobody's: authentication.type Anonymous makes everybody anonymous; remove it, or use APIKey",
    ),
    (
        {"authentication": {"type": "Anonymous"}, "tenants": [{"name": "anonymous", "keys": [{"digest": DIGEST}]}]},
        "tenants[0].keys: are never asked for: authentication.type is Anonymous; remove them, or use APIKey (tenant anonymous)",
    ),
    ({"authentication": {"type": "JWT"}}, "authentication.type: must be APIKey, TrustedHeader or Anonymous, not 'JWT'"),
    (trusted(header="x tenant"), "authentication.header: must be the name of a header, such as x-tenant, not 'x tenant'"),
    *(
        (trusted(header=name), f"authentication.header: {name.lower()} means something else: choose another header, such as x-tenant")
        for name in ("Authorization", "x-api-key", "Host", "Content-Length", "x-fairpool-proxy-credential")
    ),
    (trusted(proxyCredential="sk-hidden"), "authentication.proxyCredential: must be a mapping of fields, not a single value"),
    (trusted(proxyCredential={"digest": "sk-hidden"}), f"authentication.proxyCredential.digest: must be {HOW_TO_DIGEST}; a key itself never belongs here"),
    (trusted(proxyCredential={}), f"authentication.proxyCredential.digest: is missing: give {HOW_TO_DIGEST}"),
    (trusted(proxyCredential={"digest": DIGEST, "sk-hidden": 1}), "authentication.proxyCredential: has a field that is not known here; there are digest, nextDigest"),
    (trusted(unknownTenants="Ignore"), "authentication.unknownTenants: must be Refuse or Admit, not 'Ignore'"),
    ({**trusted(), "tenants": [{"name": "search", "keys": [{"digest": DIGEST}]}]}, "tenants[0].keys: are never asked for: authentication.type is TrustedHeader; remove them, or use APIKey (tenant search)"),
    (
        {**trusted(), "tenants": []},
        "tenants: there are none and unknown ones are refused, so nobody could send a request: list them, or set authentication.unknownTenants to Admit",
    ),
    *(
        ({"authentication": {"type": type_, field: value}, "tenants": listed}, f"authentication.{field}: means nothing: authentication.type is {type_}; remove it, or use TrustedHeader")
        for type_, listed in (("APIKey", [{"name": "search"}]), ("Anonymous", []))
        for field, value in (("header", "x-tenant"), ("proxyCredential", {"digest": DIGEST}), ("unknownTenants", "Admit"))
    ),
    *(
        ({"endpointCredential": place}, "endpointCredential: must say either fromFile or fromEnvironment: where the credential is")
        for place in ({}, {"fromFile": "/a", "fromEnvironment": "A"})
    ),
    ({"endpointCredential": "sk-hidden"}, "endpointCredential: must be a mapping of fields, not a single value"),
    ({"endpointCredential": {"value": "sk-hidden"}}, "endpointCredential: has a field that is not known here; there are fromFile, fromEnvironment"),
    ({"endpointCredential": {"fromFile": "sk-hidden"}}, "endpointCredential.fromFile: must be the absolute path of a file, such as /run/secrets/engine; no credential belongs here"),
    ({"endpointCredential": {"fromEnvironment": "sk-hidden"}}, "endpointCredential.fromEnvironment: must be the name of a variable, such as ENGINE_KEY; no credential belongs here"),
    (
        endpoint("https://h:1"),
        "endpointTls: is missing: endpoints[0].url is https, so give caFile, which holds the authorities to trust, and serverName, which certificates have to be for",
    ),
    ({"endpointTls": TLS}, "endpointTls: means nothing: no endpoint's url is https; remove it, or write https there"),
    (over_tls(caFile="ca.pem"), "endpointTls.caFile: must be the absolute path of a file of certificates in PEM, such as /etc/fairpool/ca.pem"),
    (over_tls(caFile=None), "endpointTls.caFile: must be text, not nothing"),
    *(
        (over_tls(serverName=name), f"endpointTls.serverName: must be a DNS name or an IP address that certificates are for, not '{name}'")
        for name in ("", "*.local", "engine local", "engine..local", ".local", "engine:8443", "[::1]", "https://engine")
    ),
    ({**over_tls(), "endpointTls": {"caFile": "/ca.pem"}}, "endpointTls.serverName: is missing: give the name that the endpoints' certificates are for"),
    ({**over_tls(), "endpointTls": {"serverName": "n"}}, "endpointTls.caFile: is missing: give the path of a file with the certificates of the authorities to trust"),
    ({**over_tls(), "endpointTls": {**TLS, "insecure": True}}, "endpointTls.insecure: is not a field here; there are caFile, serverName"),
    *(
        ({"probe": {"path": path}}, f"probe.path: must be a path such as /health, not {path!a}")
        for path in ("", "health", "/a b", "/a#b", "/\xe4")
    ),
    ({"probe": {"interval": 5}}, "probe.interval: has no unit: write 5s if you mean seconds"),
    (endpoint("http://h:1", drain="yes"), "endpoints[0].drain: must be true or false, not 'yes' (endpoint e)"),
    (endpoint("http://h:1/v1"), "endpoints[0].url: must be http://HOST:PORT or https://HOST:PORT, without a path: each request brings its own (endpoint e)"),
    (endpoint("http://me:hidden@h:1"), "endpoints[0].url: must be http://HOST:PORT or https://HOST:PORT, without a user name or a password (endpoint e)"),
    *(
        (endpoint(url), "endpoints[0].url: must be http://HOST:PORT or https://HOST:PORT (endpoint e)")
        for url in ("", "h:1", "http://h", "http://:1", "http://h:0", "http://h:99999", "http://[h]:1", "ftp://h:1", "http://h h:1")
    ),
    (endpoint("http://h:1", slots=0), "endpoints[0].slots: must be 1 to 10000, not 0 (endpoint e)"),
    (
        {"endpoints": [{"name": "a", "url": "http://h:1"}, {"name": "a", "url": "http://h:2"}]},
        "endpoints[1].name: is the name of endpoints[0] too: choose another",
    ),
    (
        {"endpoints": [{"name": "a", "url": "http://h:1"}, {"name": "b", "url": "http://H:1/"}]},
        "endpoints[1].url: is endpoints[0] too, whose slots would count twice: remove one (endpoint b)",
    ),
    (
        {"endpoints": [{"name": "a", "url": "http://h:1"}, {"name": "b", "url": "https://h:1"}], "endpointTls": TLS},
        "endpoints[1].url: is endpoints[0] too, whose slots would count twice: remove one (endpoint b)",
    ),
    ({"slots": {"policy": "Adaptive"}}, "slots.policy: must be Fixed, not 'Adaptive'"),
    ({"queue": {"timeout": 45}}, "queue.timeout: has no unit: write 45s if you mean seconds"),
    ({"queue": {"timeout": "soon"}}, "queue.timeout: must be a duration such as 500ms, 45s, 10m or 1m30s, not 'soon'"),
    ({"queue": {"maxBytes": "256MB"}}, "queue.maxBytes: must be a size such as 65536, 512Ki, 32Mi or 1G, not '256MB'"),
    (
        {"queue": {"perTenant": {"maxBytes": "16Mi"}}},
        "queue.perTenant.maxBytes: must be at least queue.maxRequestBytes, 32Mi, not 16Mi, or the largest requests could never wait: raise this or lower that",
    ),
    ({"queue": None}, "queue: is empty: give it a value, or leave it out"),
    ({"queue": 4096}, "queue: must be a mapping of fields, not a single value"),
    ({"queue": []}, "queue: must be a mapping of fields, not a list"),
    ({"timeouts": {"connect": "0s"}}, "timeouts.connect: must be 1ms to 24h, not 0s"),
    ({"cost": {"outputEstimator": "Oracle"}}, "cost.outputEstimator: must be TenantAverage or MaxTokensRatio, not 'Oracle'"),
    ({"cost": {"inputWeight": 0, "outputWeight": 0}}, "cost: inputWeight and outputWeight must not both be 0: all requests would cost the same"),
    ({"defaultWeight": 10**30}, "defaultWeight: must be 1 to 1000, not a number too long to show"),
    ({"default_weight": 5}, "default_weight: is not a field here; did you mean defaultWeight?"),
    ({"Models": ["a"]}, "Models: is not a field here; did you mean models?"),
    ({"queue": {"maxRequest": 5}}, "queue.maxRequest: is not a field here; did you mean maxRequests?"),
    ({"slots": {"color": "red"}}, "slots.color: is not a field here; there are policy, perEndpoint"),
    ({"5": 1}, "5: is not a field here; there are version, pool, models, extraPaths, tenants, endpoints, discovery, endpointTls, endpointCredential, probe, slots, queue, timeouts, cost, authentication, defaultWeight, overtaking, suspend"),
    ({"slots": {"a\nb": 1}}, r"slots.'a\nb': is not a field here; there are policy, perEndpoint"),
    (tenants({"name": "batch", "wieght": 3}), "tenants[1].wieght: is not a field here; did you mean weight? (tenant batch)"),
]  # fmt: skip


class TestAWrongField:
    @pytest.mark.parametrize(("fields", "message"), FIELDS, ids=[message[:60] for _, message in FIELDS])
    def test_is_named_with_its_place_and_what_to_do(self, fields, message):
        assert problems_of(document(**fields)) == [message]

    def test_is_named_together_with_all_others(self):
        assert problems_of("pool: a b\nqueue: {timeout: 3}\ndefaultWeight: 0") == [
            "pool: must be a DNS label (at most 63 of a-z, 0-9 and '-', no '-' at either end), not 'a b'",
            "queue.timeout: has no unit: write 3s if you mean seconds",
            "defaultWeight: must be 1 to 1000, not 0",
        ]

    def test_of_a_trusted_header_is_named_too_when_it_is_missing(self):
        assert problems_of(document(authentication={"type": "TrustedHeader"}, tenants=[{"name": "a", "keys": []}])) == [
            "authentication.header: is missing: name the header in which the proxy gives the tenant, such as x-tenant",
            (
                "authentication.proxyCredential: is missing: give the digest of what the proxy sends in "
                "x-fairpool-proxy-credential, or whoever reaches this gateway could name a tenant"
            ),
        ]

    def test_of_an_endpoint_is_named_too_when_it_is_missing(self):
        assert problems_of(document(endpoints=[{}])) == [
            "endpoints[0].name: is missing: logs and metrics call it by its name",
            "endpoints[0].url: is missing: give http://HOST:PORT or https://HOST:PORT",
        ]


TEXTS = [
    ("", "pool.yaml: is empty"),
    ("# nothing yet\n", "pool.yaml: is empty"),
    ("[]", "pool.yaml: must be a mapping of fields, not a list"),
    ("llama", "pool.yaml: must be a mapping of fields, not a single value"),
    ("pool: a\npool: b", "pool: is given more than once; keep one"),
    ("tenants:\n- {name: a, weight: 1, weight: 2}", "tenants[0].weight: is given more than once; keep one"),
    ('{"tenants": [{"name": "a", "weight": 1, "weight": 2}]}', "tenants[0].weight: is given more than once; keep one"),
    ('{"x": 1, "x": 2}', "pool.yaml: gives a field that is not known more than once"),
    ('{"pool": "a",\n "models": [}', "pool.yaml, line 2, column 13: Expecting value"),
    ("pool: a\nmodels: [b", "pool.yaml, line 3, column 1: while parsing a flow sequence, did not find expected ',' or ']'"),
    ("pool: a: b", "pool.yaml, line 1, column 8: mapping values are not allowed in this context"),
    ("pool: a\n\tmodels: b", "pool.yaml, line 2, column 1: while scanning a plain scalar, found a tab character that violates indentation"),
    ("pool: 'a", "pool.yaml, line 1, column 9: while scanning a quoted scalar, found unexpected end of stream"),
    ("pool: *other", "pool.yaml, line 1, column 7: found undefined alias"),
    ("pool: !env NAME", "pool.yaml, line 1, column 7: only what JSON could say is read here, and no tags"),
    ("pool: !!int x", "pool.yaml, line 1, column 7: not a value of that kind"),
    ("pool: &a [*a]", "pool.yaml, line 1, column 7: found unconstructable recursive node"),
    ("pool: a\n---\npool: b", "pool.yaml, line 2, column 1: expected a single document in the stream, but found another document"),
    ("pool: a\nmodels: \x00", "pool.yaml, line 2: holds a character that YAML does not allow"),
]  # fmt: skip


class TestAWrongText:
    @pytest.mark.parametrize(("text", "message"), TEXTS, ids=[message[:60] for _, message in TEXTS])
    def test_is_refused_with_its_place(self, text, message):
        assert problems_of(text) == [message]


KEYS = [
    "sk-live-0123456789abcdef",
    "hunter2",
    "12345678901",
    "open sesame",
    "weight-of-gold",
    "&anchor",
    "!tag",
    "*alias",
]

MISPLACED = {
    "as a digest": lambda key: [{"digest": key}],
    "as a digest, with its prefix": lambda key: [{"digest": f"sha256:{key}"}],
    "as a name": lambda key: [{"name": f"({key})", "digest": DIGEST}],
    "as all the keys": lambda key: key,
    "as one of the keys": lambda key: [key],
    "as a list in the keys": lambda key: [[key]],
    "as a field of the keys": lambda key: {key: DIGEST},
    "as a field of one": lambda key: [{key: DIGEST}],
    "in a field that is not known": lambda key: [{"digest": DIGEST, "key": key}],
    "as an instant": lambda key: [{"digest": DIGEST, "notAfter": key}],
}


def leaks(describe, key, misplaced):
    keys = misplaced(key)
    written = [pool_document(tenants=[{"name": "search", "keys": keys}])]
    if key.isdigit():
        written.append(pool_document(tenants=[{"name": "search", "keys": misplaced(int(key))}]))
    texts = [write(each) for each in written for write in (json.dumps, yaml.safe_dump)]
    texts.append(f"tenants:\n- name: search\n  keys:\n  - digest: {key}")
    texts.append(f"tenants:\n- name: search\n  keys:\n  - {{{key}: 1, {key}: 2}}")
    return any(key in describe(text) for text in texts)


def in_our_words(text):
    with pytest.raises(ConfigInvalid) as refused:
        load(text, source="pool.yaml", strict=True)
    return "".join(traceback.format_exception(refused.value))


def in_the_libraries_words(text):
    try:
        PoolConfig.model_validate(yaml.safe_load(text))
    except Exception as error:
        return str(error)
    return ""


class TestAKeyInAWrongPlace:
    @pytest.mark.parametrize("key", KEYS)
    @pytest.mark.parametrize("place", MISPLACED)
    def test_is_never_repeated(self, place, key):
        assert not leaks(in_our_words, key, MISPLACED[place])

    def test_would_be_repeated_by_the_libraries_own_words(self):
        assert leaks(in_the_libraries_words, KEYS[0], MISPLACED["as a digest"])

    @pytest.mark.parametrize("key", KEYS)
    @pytest.mark.parametrize(
        "place",
        [
            lambda key: {"endpointCredential": key},
            lambda key: {"endpointCredential": {"fromFile": key}},
            lambda key: {"endpointCredential": {"fromEnvironment": f"({key})"}},
            lambda key: {"endpointCredential": {key: "/run/secrets/engine"}},
            lambda key: trusted(proxyCredential=key),
            lambda key: trusted(proxyCredential={"digest": key}),
            lambda key: trusted(proxyCredential={key: DIGEST}),
        ],
    )
    def test_of_an_engine_or_a_proxy_is_never_repeated_either(self, place, key):
        assert key not in in_our_words(document(**place(key)))

    @pytest.mark.parametrize("field", ["authentication", "slots", "queue", "defaultWeight", "endpoints", "version"])
    def test_is_not_repeated_elsewhere_either_when_it_is_as_long_as_keys_are(self, field):
        assert all(KEYS[0] not in problem for problem in problems_of(document(**{field: KEYS[0]})))
