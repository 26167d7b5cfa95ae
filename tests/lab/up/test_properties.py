"""What holds of `fairpool up` whatever is in the files, however they are edited; and that what breaks it is caught."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.crd_strategies import SECRET_VALUES, crowds, worlds
from support.resources import SMALLEST, fair_pool, pem, secret, tenant_weight
from support.up import pool, weight

from fairpool_gateway.config import EndpointSettings, dump, load
from fairpool_lab.up import local as deciding
from fairpool_lab.up.endpoints import Endpoints
from fairpool_lab.up.resources import Resources
from fairpool_operator.manifests import Document, Manifests, Place, Problem
from fairpool_operator.view import PoolKey

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DIRECTORY = Path("/somewhere")
ENDPOINTS = {scheme: EndpointSettings(name="engine", url=f"{scheme}://10.0.0.1:8000") for scheme in ("http", "https")}
KINDS = st.sampled_from([Endpoints(simulated=1), *(Endpoints((each,)) for each in ENDPOINTS.values())])
COMPLETE = [
    fair_pool(endpoints={
        **SMALLEST,
        "tls": {"caCertificateRef": {"name": "engine"}, "serverName": "engine.local"},
        "credentialRef": {"name": "engine"},
    }),
    secret("engine", use="engine", api_key=SECRET_VALUES["good"], **{"ca.crt": pem("CERTIFICATE", "authority")}),
    tenant_weight(),
]  # fmt: skip
WORLDS = worlds | crowds | st.just(COMPLETE)
MANY = {
    "max_examples": 200,
    "deadline": None,
    "database": None,
    "phases": [Phase.generate],
    "suppress_health_check": list(HealthCheck),
}


def document(resource, file: str = "all.yaml") -> Document:
    return Document(Path(file), resource, Place(1))


def whatever_is_decided_can_be_served(world, endpoints):
    """A gateway takes every configuration; it holds no value of a Secret, and names files that are there."""
    resources = Resources("inference")
    resources.take(Manifests((), tuple(document(each) for each in world), ()))
    store = resources.store()
    for key in store.keys():  # noqa: SIM118 - a store is no mapping
        found = deciding.decide(key, resources, store, endpoints, NOW)
        assert (found.config is None) == bool(found.problems or found.place is None)
        if found.config is None or found.idle is not None:
            continue
        addresses = endpoints.given or (ENDPOINTS["http"],)
        text = dump(deciding.configured(found.config, addresses, DIRECTORY))
        config = load(text, source="test", strict=True)
        assert not any(value.strip() in text for value in SECRET_VALUES.values() if value.strip())
        named = [config.endpoint_tls and config.endpoint_tls.ca_file]
        named.append(config.endpoint_credential and config.endpoint_credential.from_file)
        assert {str(Path(path).relative_to(DIRECTORY)) for path in named if path} <= found.files.keys()


class TestEveryDecision:
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(WORLDS, KINDS)
    def test_can_be_served(self, world, endpoints):
        whatever_is_decided_can_be_served(world, endpoints)

    @pytest.mark.parametrize(
        ("part", "broken"),
        [
            ("serves_nobody", lambda config: None),
            ("_credential", lambda settings, directory: settings),
            ("_files", lambda pool, resources: iter(())),
        ],
    )
    def test_that_could_not_be_would_be_caught(self, monkeypatch, part, broken):
        monkeypatch.setattr(deciding, part, broken)

        @settings(**MANY)
        @given(WORLDS, KINDS)
        def holds(world, endpoints):
            whatever_is_decided_can_be_served(world, endpoints)

        with pytest.raises((AssertionError, ValueError, ExceptionGroup)):
            holds()


NAMES = ("a", "b", "c")
WEIGHTS = st.sampled_from([1, 2, 3, 0])
"""The last one is refused."""
CONTENTS = st.dictionaries(st.sampled_from(NAMES), WEIGHTS) | st.none()
"""What a file holds: the weight of each tenant in it; None: it is no YAML."""
EDITS = st.lists(st.fixed_dictionaries({"one.yaml": CONTENTS, "two.yaml": CONTENTS}), min_size=1, max_size=6)


def the_last_good_edition_is_in_force(edits):
    """After each edit; a good edition counts at once, and what goes is in no file, and all that is there is known."""
    resources = Resources()
    before: dict[str, int | None] = {}
    for files in edits:
        resources.take(_manifests(files))
        view = resources.store().view(PoolKey("default", "llama"))
        after = {each.metadata.name: each.spec.weight for each in view.weights}
        there = {name: [held[name] for held in files.values() if held and name in held] for name in NAMES}
        refused = {name for name in NAMES if 0 in there[name]}
        of_unknown = {name for name in refused if name not in before or any(there[name])}
        is_unsure = bool(of_unknown) or None in files.values()
        for name in NAMES:
            good = [value for value in there[name] if value]
            if good:
                assert after[name] == good[0]
            elif there[name] or is_unsure:
                assert after.get(name) == before.get(name)
            else:
                assert name not in after
        before = after


def _manifests(files) -> Manifests:
    documents = [
        document(weight(name, weight=value), file)
        for file, held in files.items()
        for name, value in sorted((held or {}).items())
    ]
    broken = [Problem(Path(file), 1, "is not YAML") for file, held in files.items() if held is None]
    paths = tuple(Path(file) for file in files)
    return Manifests(paths, (document(pool(), "pool.yaml"), *documents), tuple(broken))


class TestEveryEdit:
    @settings(max_examples=50, deadline=None)
    @given(EDITS)
    def test_leaves_the_last_good_edition_in_force(self, edits):
        the_last_good_edition_is_in_force(edits)

    @pytest.mark.parametrize(
        "broken",
        [
            pytest.param(lambda self, refused, some_untold, found: {}, id="what cannot be used goes"),
            pytest.param(lambda self, *found: self._held, id="nothing ever goes, and the old counts"),
            pytest.param(
                lambda self, refused, some_untold, found: {
                    each: held for each, held in self._held.items() if each in refused and each not in found
                },
                id="what cannot be told for what it is goes",
            ),
        ],
    )
    def test_that_did_not_would_be_caught(self, monkeypatch, broken):
        monkeypatch.setattr(Resources, "_kept", broken)

        @settings(**MANY)
        @given(EDITS)
        def holds(edits):
            the_last_good_edition_is_in_force(edits)

        with pytest.raises((AssertionError, ExceptionGroup)):
            holds()
