"""One pool as it is run here: the configuration of a cluster, with endpoints and files of this machine."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.certificates import Authority
from support.config import digest_of
from support.up import pool, secret, weight, write

from fairpool_gateway.config import EndpointSettings, PoolConfig
from fairpool_lab.up.endpoints import given
from fairpool_lab.up.local import Local, configured, decide
from fairpool_lab.up.resources import Resources
from fairpool_operator.compile import Settings, compile_pool
from fairpool_operator.manifests import read
from fairpool_operator.view import PoolKey

LLAMA = PoolKey("default", "llama")
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
URL = "http://127.0.0.1:8000"
KEYS = secret(search="key-of-search", batch="key-of-batch")
TLS = {"caCertificateRef": {"name": "engine"}, "serverName": "engine.local"}


@pytest.fixture
def decided(tmp_path):
    """What is decided about the pool of these resources."""

    def decided(*resources, endpoints: tuple[str, ...] = (), simulate: int | None = None, key=LLAMA) -> Local:
        write(tmp_path / "all.yaml", *resources)
        taken = Resources()
        assert taken.take(read([tmp_path])) == ()
        said = given(endpoints, simulate or (None if endpoints else 1)).settled([LLAMA])
        return decide(key, taken, taken.store(), said.of(key), NOW)

    return decided


def with_engines(**fields):
    made = pool()
    made["spec"]["endpoints"] |= fields
    return made


class TestTheConfiguration:
    def test_is_a_clusters_but_for_where_endpoints_are(self, decided, tmp_path):
        made = pool(slots={"perEndpoint": 3}, queue={"timeout": "7s"}, defaultWeight=50, models=["tiny"])
        local = decided(made, weight("search", weight=300), weight("batch"), KEYS)
        taken = Resources()
        taken.take(read([tmp_path]))
        clusters = compile_pool(taken.store().view(LLAMA), Settings(gateway_image="any"), NOW).config
        assert clusters is not None
        assert local.config == clusters
        here = configured(clusters, [EndpointSettings(name="one", url=URL)], tmp_path)
        theirs, ours = clusters.model_dump(), here.model_dump()
        assert {field for field in ours if ours[field] != theirs[field]} == {"discovery", "endpoints"}
        assert [endpoint.url for endpoint in here.endpoints] == [URL]

    def test_has_keys_as_digests_only(self, decided):
        local = decided(pool(), weight("search"), KEYS)
        assert local.config is not None
        assert local.config.tenants[0].keys[0].digest == digest_of("key-of-search")
        assert "key-of-search" not in local.config.model_dump_json()
        assert "key-of-search" not in repr(local)

    def test_names_the_files_of_the_engines_credential_and_authorities_where_they_are_here(self, decided, tmp_path):
        authority = Authority(tmp_path).pem
        engine = secret("engine", use="engine", api_key="key-of-engine", ca__crt=authority.decode())
        named = with_engines(credentialRef={"name": "engine"}, tls=TLS)
        local = decided(named, weight("search"), KEYS, engine, endpoints=("https://gpu:8443",))
        assert local.problems == ()
        assert local.config is not None
        here = configured(local.config, local.endpoints.given, tmp_path)
        assert here.endpoint_credential is not None
        assert here.endpoint_tls is not None
        assert here.endpoint_credential.from_file == str(tmp_path / "engine" / "api-key")
        assert here.endpoint_tls.ca_file == str(tmp_path / "engine-ca" / "ca.crt")
        assert here.endpoint_tls.server_name == "engine.local"
        assert local.files == {"engine/api-key": b"key-of-engine", "engine-ca/ca.crt": authority}

    def test_asks_for_nothing_that_simulated_engines_have_not(self, decided, tmp_path):
        local = decided(with_engines(credentialRef={"name": "not-there"}, tls=TLS), weight("search"), KEYS)
        assert (local.problems, dict(local.files)) == ((), {})
        assert local.config is not None
        here = configured(local.config, [EndpointSettings(name="one", url=URL)], tmp_path)
        assert (here.endpoint_credential, here.endpoint_tls) == (None, None)

    def test_asks_for_no_authority_where_no_endpoint_is_over_tls(self, decided):
        local = decided(with_engines(tls=TLS), weight("search"), KEYS, endpoints=(URL,))
        assert (local.problems, dict(local.files)) == ((), {})

    def test_has_the_gateways_certificate_in_files(self, decided, tmp_path):
        leaf = Authority(tmp_path).sign("127.0.0.1")
        pair = {"tls__crt": leaf.cert_chain_pems[0].bytes().decode(), "tls__key": leaf.private_key_pem.bytes().decode()}
        served = pool(gateway={"tls": {"certificateRef": {"name": "pair"}}})
        local = decided(served, weight("search"), KEYS, secret("pair", use="tls", **pair))
        assert local.over_tls
        assert {name: content.decode() for name, content in local.files.items()} == {
            "tls/tls.crt": pair["tls__crt"],
            "tls/tls.key": pair["tls__key"],
        }


class TestTenants:
    def test_have_their_weights_and_credentials(self, decided):
        local = decided(pool(), weight("search", weight=300), weight("batch"), KEYS)
        assert {tenant.name: tenant.weight for tenant in local.tenants} == {"search": 300, "batch": 100}
        assert local.tenants[0].credential == {"Authorization": "Bearer key-of-search"}
        assert local.tenants[0].key == "key-of-search"

    def test_of_a_key_that_is_there_by_its_digest_alone_there_is_no_credential(self, decided):
        by_digest = weight("search", apiKeys=[{"name": "one", "digest": digest_of("any")}])
        local = decided(pool(), by_digest)
        assert local.config is not None
        assert [(tenant.weight, dict(tenant.credential)) for tenant in local.tenants] == [(100, {})]

    def test_have_a_key_that_is_good_yet(self, decided):
        ends = {"old": "2026-05-01T12:00:00Z", "next": "2026-05-01T12:00:01Z"}
        keys = [
            {"name": name, "secretKeyRef": {"name": "keys", "key": name}, "notAfter": end} for name, end in ends.items()
        ]
        local = decided(pool(), weight("search", apiKeys=keys), secret(old="key-of-old", next="key-of-next"))
        assert local.tenants[0].key == "key-of-next"

    def test_that_a_proxy_names_are_known_by_its_credential_and_header(self, decided):
        proxy = {"type": "TrustedHeader", "header": "X-Team", "proxyCredentialRef": {"name": "proxy"}}
        bare = weight("search")
        del bare["spec"]["apiKeys"]
        local = decided(pool(authentication=proxy), bare, secret("proxy", credential="word-of-the-proxy"))
        assert local.problems == ()
        assert local.tenants[0].key is None
        assert local.tenants[0].credential == {"x-fairpool-proxy-credential": "word-of-the-proxy", "x-team": "search"}

    def test_that_are_not_accepted_say_why_in_the_words_of_the_condition(self, decided):
        local = decided(pool(), weight("search"), weight("again", tenantName="search"), KEYS)
        [problem] = local.tenants[1].problems
        assert local.tenants[1].weight is None
        said = "Accepted=False (Conflicted): The older TenantWeight default/search is for tenant search already."
        assert re.search(rf"all\.yaml:40: {re.escape(said)}", problem)

    def test_whose_key_cannot_be_had_say_so_and_the_others_are_served(self, decided):
        local = decided(pool(), weight("search"), weight("batch"), secret(search="key-of-search"))
        assert local.config is not None
        told = {tenant.name: tenant.problems for tenant in local.tenants}
        assert told["search"] == ()
        [problem] = told["batch"]
        said = "ResolvedRefs=False (KeyNotFound): Key first: Secret default/keys has no key of the name in secretKeyRef"
        assert re.search(rf"all\.yaml:37: {re.escape(said)}\.key\.", problem)

    def test_what_was_made_of_one_is_noted(self, decided):
        local = decided(pool(), weight("search"), weight("bare", apiKeys=[]), KEYS)
        assert [tenant.notes for tenant in local.tenants] == [
            "",
            "It has no key, so it can send no request: add one to spec.apiKeys.",
        ]

    def test_of_a_pool_that_is_not_there_are_told_so(self, decided):
        local = decided(weight("search", of="lama"), key=PoolKey("default", "lama"))
        assert local.place is None
        [problem] = local.tenants[0].problems
        assert re.search(
            r"all\.yaml:6: ResolvedRefs=False \(PoolNotFound\): There is no FairPool default/lama", problem
        )


class TestWhatIsNotServed:
    def test_one_that_names_a_secret_that_is_not_in_the_files(self, decided):
        local = decided(with_engines(credentialRef={"name": "engine"}), weight("search"), KEYS, endpoints=(URL,))
        assert local.config is None
        [problem] = local.problems
        assert re.search(
            r"all\.yaml:14: ResolvedRefs=False \(SecretNotFound\): Secret default/engine is not there", problem
        )

    def test_an_endpoint_over_tls_without_a_word_on_whom_to_trust(self, decided):
        local = decided(pool(), weight("search"), KEYS, endpoints=("https://gpu:8443",))
        [problem] = local.problems
        assert problem.endswith(
            "all.yaml:1: an --endpoint is https: say in spec.endpoints.tls who vouches for it, and for which name."
        )

    def test_one_of_whose_endpoints_nothing_was_said(self, tmp_path):
        write(tmp_path / "all.yaml", pool(), weight("search"), KEYS)
        taken = Resources()
        taken.take(read([tmp_path]))
        said = given([f"llama={URL}"], None).of(PoolKey("default", "other"))
        [problem] = decide(LLAMA, taken, taken.store(), said, NOW).problems
        assert "all.yaml:1: where its engines are was not said at the start" in problem

    def test_one_that_nobody_could_use_is_idle_and_no_problem(self, decided):
        local = decided(pool(), weight("search"))
        assert local.problems == ()
        assert local.idle is not None
        assert local.idle.startswith("no tenant has a key")


def test_every_field_of_a_configuration_is_kept(decided, tmp_path):
    local = decided(pool(suspend=True, overtaking="Allow", extraPaths=["/v1/other"]), weight("search"), KEYS)
    assert local.config is not None
    here = configured(local.config, [EndpointSettings(name="one", url=URL)], Path("/"))
    assert (here.suspend, here.overtaking, here.extra_paths) == (True, "Allow", ("/v1/other",))
    assert set(here.model_fields_set) == set(PoolConfig.model_fields)
