"""A configuration is read from YAML or JSON, complete with its defaults, and is written so that it reads back equal."""

import json

import pytest
import yaml
from hypothesis import HealthCheck, Phase, find, given, settings
from pydantic import ValidationError
from support.config import digest_of, pool_config, pool_document
from support.config_strategies import damaged_documents, pool_configs, pool_documents, texts

from fairpool_gateway.config import PoolConfig, dump, load, loading
from fairpool_gateway.cost import CostModel, OutputEstimator
from fairpool_gateway.errors import ConfigInvalid

SEARCH = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
FIND = settings(SEARCH, max_examples=2000, database=None, derandomize=True, phases=[Phase.generate])

SMALLEST = f"""
pool: llama
models: [meta-llama/Llama-3.3-70B-Instruct]
endpoints:
  - {{name: engine-0, url: "http://10.0.0.7:8000"}}
tenants:
  - name: search
    keys: [{{digest: "{digest_of("a key")}"}}]
"""


def read(text, *, strict=True):
    return load(text, source="pool.yaml", strict=strict)


def refusal(text, *, strict=True):
    with pytest.raises(ConfigInvalid) as refused:
        read(text, strict=strict)
    return refused.value.problems


class TestASmallFile:
    def test_is_completed_by_the_documented_defaults(self):
        config = read(SMALLEST)
        assert (config.version, config.default_weight) == (1, 100)
        assert (config.slots.policy, config.slots.per_endpoint) == ("Fixed", 64)
        queue = config.queue
        assert (queue.timeout, queue.max_request_bytes, queue.max_requests) == (45, 32 << 20, 4096)
        assert (queue.max_bytes, queue.per_tenant.max_requests, queue.per_tenant.max_bytes) == (
            256 << 20,
            512,
            64 << 20,
        )
        timeouts = config.timeouts
        assert (timeouts.connect, timeouts.first_byte, timeouts.first_byte_unary, timeouts.idle) == (2, 60, 600, 60)
        assert config.cost.model() == CostModel(1, 2, OutputEstimator.TENANT_AVERAGE, None)
        assert (config.authentication.type, config.authentication.max_tenants) == ("APIKey", 10_000)
        assert (config.suspend, config.suspended(), config.own_queues(), config.endpoint_credential) == (
            False,
            frozenset(),
            {},
            None,
        )

    def test_may_say_nothing_of_tenants_where_everybody_is_anonymous(self):
        assert read(json.dumps(pool_document())).tenants == ()

    def test_may_leave_it_to_its_endpoints_which_models_are_served(self):
        assert read(json.dumps(pool_document(models=[]))).models == ()

    def test_may_say_how_endpoints_are_found_and_nobody_need_have_a_key_then(self):
        found = {"selector": {"matchLabels": {"app": "vllm"}}, "targetPorts": [{"number": 8000}, {"name": "http"}]}
        config = read(json.dumps({"pool": "llama", "discovery": found}))
        assert (config.models, config.endpoints, config.tenants) == ((), (), ())
        assert config.discovery.selector.match_labels == {"app": "vllm"}
        assert [(port.number, port.name) for port in config.discovery.target_ports] == [(8000, None), (None, "http")]
        assert (config.discovery.accelerators.policy, config.discovery.tls) == ("Require", False)
        assert "nvidia.com/gpu" in config.discovery.accelerators.resource_names

    def test_may_have_no_endpoint_yet_if_it_says_so(self):
        assert read(json.dumps(pool_document(endpoints=[]))).endpoints == ()


class TestAConfiguration:
    def test_gives_every_listed_tenant_its_weight_or_the_default(self):
        config = pool_config(tenants=[{"name": "search", "weight": 300}, {"name": "batch"}], defaultWeight=7)
        assert config.weights() == {"search": 300, "batch": 7}

    def test_gives_a_tenant_bounds_of_its_own_where_it_says_so_and_the_pools_otherwise(self):
        config = pool_config(
            tenants=[
                {"name": "a", "queue": {"maxRequests": 2000}},
                {"name": "b", "queue": {"maxBytes": "1Gi"}},
                {"name": "c"},
            ],
            queue={"perTenant": {"maxRequests": 7}},
        )
        assert {name: (each.max_requests, each.max_bytes) for name, each in config.own_queues().items()} == {
            "a": (2000, 64 << 20),
            "b": (7, 1 << 30),
        }

    def test_knows_who_is_suspended(self):
        config = pool_config(tenants=[{"name": "a", "suspend": True}, {"name": "b", "suspend": False}, {"name": "c"}])
        assert config.suspended() == {"a"}

    def test_knows_a_header_in_lower_case_as_requests_have_it(self):
        proxy = {"type": "TrustedHeader", "header": "X-Tenant", "proxyCredential": {"digest": digest_of("proxy")}}
        assert pool_config(tenants=[{"name": "a"}], authentication=proxy).authentication.header == "x-tenant"

    def test_gives_every_endpoint_its_slots_or_the_pools(self):
        config = pool_config(
            endpoints=[{"name": "a", "url": "http://h:1", "slots": 3}, {"name": "b", "url": "http://h:2"}],
            slots={"perEndpoint": 5},
        )
        assert [config.slots_of(endpoint) for endpoint in config.endpoints] == [3, 5]

    @pytest.mark.parametrize(
        ("url", "host", "port"),
        [
            ("http://10.0.0.7:8000", "10.0.0.7", 8000),
            ("http://Engine-0.Local:80/", "engine-0.local", 80),
            ("http://[FD00::1]:8000", "fd00::1", 8000),
        ],
    )
    def test_knows_where_to_connect(self, url, host, port):
        (endpoint,) = pool_config(endpoints=[{"name": "a", "url": url}]).endpoints
        assert (endpoint.host, endpoint.port) == (host, port)

    def test_cannot_be_changed(self):
        with pytest.raises(ValidationError, match="frozen"):
            pool_config().pool = "other"

    def test_made_in_python_keeps_the_same_rules(self):
        with pytest.raises(ValidationError, match="is missing: list the inference servers"):
            PoolConfig(pool="llama", models=("tiny",), authentication={"type": "Anonymous"})

    def test_holds_digests_in_lower_case_whatever_the_file_has(self):
        digest = digest_of("a key")
        config = pool_config(tenants=[{"name": "a", "keys": [{"digest": "sha256:" + digest[7:].upper()}]}])
        assert config.tenants[0].keys[0].digest == digest


def as_yaml(config):
    return yaml.safe_dump(json.loads(dump(config)), sort_keys=False)


def without_slots(config):
    return config.model_dump_json(exclude_none=True, exclude={"slots"})


def by_hand(config):
    """As YAML without a thought for quotes."""
    return "\n".join(
        f"{name}: {json.dumps(value)}".replace('"', "") for name, value in json.loads(dump(config)).items()
    )


def comes_back(config, write):
    try:
        return read(write(config)) == config
    except ConfigInvalid:
        return False


class TestRoundTrip:
    @pytest.mark.parametrize("write", [dump, as_yaml])
    @given(pool_configs)
    @SEARCH
    def test_what_was_written_loads_back_equal(self, write, config):
        assert comes_back(config, write)

    @pytest.mark.parametrize("broken", [without_slots, by_hand])
    def test_that_comparison_catches_a_writer_that_loses_something(self, broken):
        assert find(pool_configs, lambda config: not comes_back(config, broken), settings=FIND)

    @given(pool_documents())
    @SEARCH
    def test_yaml_and_json_mean_the_same(self, document):
        assert read(yaml.safe_dump(document)) == read(json.dumps(document, indent="\t"))


def naive(text):
    try:
        return PoolConfig.model_validate(yaml.safe_load(text))
    except (yaml.YAMLError, ValidationError) as error:
        raise ConfigInvalid(["cannot be used"]) from error


def only_refuses(reader, text):
    try:
        reader(text)
    except ConfigInvalid as refused:
        return bool(refused.problems) and all("\n" not in problem and problem for problem in refused.problems)
    except Exception:
        return False
    return True


class TestWhateverTheText:
    @pytest.mark.parametrize("strict", [True, False])
    @given(texts)
    @settings(SEARCH, max_examples=200)
    def test_nothing_but_a_refusal_of_one_line_a_problem_comes_out(self, strict, text):
        assert only_refuses(lambda text: read(text, strict=strict), text)

    def test_that_check_catches_a_reader_that_leaves_it_to_the_libraries(self):
        assert find(texts, lambda text: not only_refuses(naive, text), settings=FIND) is not None

    @given(damaged_documents())
    @SEARCH
    def test_what_a_person_must_get_right_an_older_gateway_may_ignore(self, document):
        try:
            strict = read(json.dumps(document))
        except ConfigInvalid:
            return
        assert read(json.dumps(document), strict=False) == strict

    @pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "- " * 100_000])
    def test_a_bottomless_text_is_refused(self, text):
        (problem,) = refusal(text)
        assert "nest" in problem


class TestUnknownFields:
    FROM_THE_FUTURE = SMALLEST + "carry: {enabled: true}\nqueue: {fairness: best}\n"

    def test_are_ignored_by_a_gateway_that_is_older_than_its_operator(self):
        assert read(self.FROM_THE_FUTURE, strict=False) == read(SMALLEST)

    def test_are_named_to_a_person_who_checks_a_file(self):
        assert [problem.partition(":")[0] for problem in refusal(self.FROM_THE_FUTURE)] == ["queue.fairness", "carry"]

    def test_by_pythons_names_are_unknown_in_a_file(self):
        assert refusal(SMALLEST + "default_weight: 3") == [
            "default_weight: is not a field here; did you mean defaultWeight?"
        ]
        assert read(SMALLEST + "default_weight: 3", strict=False).default_weight == 100


class TestYaml:
    def test_has_anchors_and_merges(self):
        config = read(
            SMALLEST.replace("tenants:", "tenants:\n  - &like {name: batch, weight: 5}\n  - {<<: *like, name: other}")
        )
        assert config.weights() == {"batch": 5, "other": 5, "search": 100}

    def test_takes_a_date_for_a_text_so_that_keys_can_be_named_for_their_days(self):
        config = read(SMALLEST.replace("{digest", "{name: 2026-10-01, digest"))
        assert config.tenants[0].keys[0].name == "2026-10-01"

    def test_is_read_without_libyaml_too(self):
        # The C loader and the Python loader raise their errors in different words, and only this one may be there.
        class Slow(yaml.SafeLoader):
            repeating = False
            yaml_constructors = loading._Loader.yaml_constructors
            yaml_implicit_resolvers = loading._Loader.yaml_implicit_resolvers

        loader = Slow(SMALLEST)
        assert PoolConfig.model_validate(loader.get_single_data()) == read(SMALLEST)
        with pytest.raises(yaml.YAMLError) as error:
            Slow("digest: *secret").get_single_data()
        assert "secret" not in loading._in_words(error.value, "")
