"""Every condition with its reason, on the real server: many small pools and tenants, each in a state of its own."""

import ast
import contextlib
import copy
import importlib
import inspect
import pkgutil

import pytest
from support.cluster.client import DEPLOYMENT, FAIR_POOL, SECRET, TENANT_WEIGHT, Refused
from support.cluster.definitions import definitions, dry_run, fair_pool, install, tenant_weight
from support.cluster.namespaces import new_namespace
from support.cluster.operating import Operator, config_in, install_operator
from support.cluster.resources import by_secret, condition, digest, key_secret
from support.cluster.serving import deployed, gateway_pod, report
from support.cluster.waiting import eventually, eventually_all
from support.cluster.webhooks import webhook
from support.resources import SMALLEST

import fairpool_operator
from fairpool_operator import errors

POOLS = {
    ("serving", "Accepted", "True", "Accepted"),
    ("serving", "ResolvedRefs", "True", "Resolved"),
    ("serving", "EndpointsAvailable", "True", "EndpointsReady"),
    ("serving", "GatewayAvailable", "True", "Available"),
    ("serving", "Programmed", "True", "Programmed"),
    ("serving", "Ready", "True", "Ready"),
    ("new", "EndpointsAvailable", "Unknown", "GatewayNotReporting"),
    ("new", "GatewayAvailable", "False", "GatewayNotReady"),
    ("new", "Programmed", "Unknown", "GatewayNotReporting"),
    ("empty", "EndpointsAvailable", "False", "NoEndpoint"),
    ("empty", "Ready", "True", "Ready"),
    ("behind", "EndpointsAvailable", "False", "NoEndpointReady"),
    ("behind", "Programmed", "Unknown", "Pending"),
    ("failing", "GatewayAvailable", "False", "GatewayFailed"),
    ("unmade", "GatewayAvailable", "False", "GatewayFailed"),
    ("stuck", "GatewayAvailable", "True", "RolloutStuck"),
    ("stuck", "Programmed", "False", "RolloutStuck"),
    ("stuck", "Ready", "False", "RolloutStuck"),
    ("paused", "GatewayAvailable", "False", "RolloutPaused"),
    ("paused", "Ready", "False", "RolloutPaused"),
    ("taken", "Accepted", "False", "NameTaken"),
    ("taken", "GatewayAvailable", "Unknown", "Pending"),
    ("impossible", "Accepted", "False", "ObjectRefused"),
    ("large", "Accepted", "False", "ConfigTooLarge"),
    ("large", "Programmed", "False", "ConfigTooLarge"),
    ("proxied", "ResolvedRefs", "False", "SecretNotFound"),
    ("proxied", "Programmed", "False", "ReferencesNotResolved"),
    ("keyless", "ResolvedRefs", "False", "KeyNotFound"),
    ("spaced", "ResolvedRefs", "False", "KeyUnusable"),
}
WEIGHTS = {
    ("older", "Accepted", "True", "Accepted"),
    ("older", "ResolvedRefs", "True", "Resolved"),
    ("older", "Programmed", "True", "Programmed"),
    ("older", "Ready", "True", "Ready"),
    ("other", "Accepted", "False", "Conflicted"),
    ("other", "ResolvedRefs", "Unknown", "Pending"),
    ("other", "Programmed", "False", "NotAccepted"),
    ("same-key", "ResolvedRefs", "False", "KeyNotUnique"),
    ("ended", "ResolvedRefs", "False", "KeysEnded"),
    ("no-secret", "ResolvedRefs", "False", "SecretNotFound"),
    ("no-key", "ResolvedRefs", "False", "KeyNotFound"),
    ("spaced", "ResolvedRefs", "False", "KeyUnusable"),
    ("lost", "Accepted", "Unknown", "Pending"),
    ("lost", "ResolvedRefs", "False", "PoolNotFound"),
    ("lost", "Programmed", "Unknown", "Pending"),
    ("large-0", "Programmed", "False", "ConfigTooLarge"),
    ("proxied", "Programmed", "False", "SecretNotFound"),
}
FROM_ANOTHER_NAMESPACE = {
    ("stranger", "Accepted", "False", "NotAllowed"),
    ("crowd-0", "Accepted", "True", "Accepted"),
    ("crowd-5", "Accepted", "False", "ConfigTooLarge"),
    ("crowd-5", "Programmed", "False", "NotAccepted"),
}
OF_OTHER_DEFINITIONS = {
    ("heavy", "Accepted", "False", "Unreadable"),
    ("neither", "ResolvedRefs", "False", "Invalid"),
    ("of-heavy", "Accepted", "Unknown", "Pending"),
    ("of-heavy", "ResolvedRefs", "False", "Unreadable"),
    ("of-heavy", "Programmed", "Unknown", "Pending"),
}

WHILE_A_WEBHOOK_IS_AWAY = {
    ("waiting", "Accepted", "Unknown", "ObjectPending"),
    ("waiting", "Ready", "Unknown", "ObjectPending"),
}

MOST_BYTES = 3000
"""In place of what a Secret can hold, which would take thousands of keys to fill."""
ENDED = "2026-01-01T00:00:00Z"
PROXY = {"type": "TrustedHeader", "header": "x-tenant", "proxyCredentialRef": {"name": "missing"}}
NO_LABEL = {"matchExpressions": [{"key": "not a label!", "operator": "In", "values": ["a"]}]}
NOWHERE = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NO_LABEL]}}


class SmallOperator(Operator):
    """An operator whose pools cannot grow large."""

    program = (
        "-c",
        f"from fairpool_operator import compile, main; compile.config.MOST_BYTES = {MOST_BYTES}; main.main()",
    )


@pytest.fixture
async def small_operator(crds, admin, control_plane, namespace, tmp_path):
    access = await install_operator(admin, control_plane.access, namespace, everywhere=True)
    operator = SmallOperator(access, namespace, tmp_path, identity="operator")
    operator.start()
    yield operator
    operator.kill()
    print(operator.said[-6000:])


def credential(name):
    """Endpoints whose credential is in this Secret."""
    return {"endpoints": {**SMALLEST, "credentialRef": {"name": name}}}


def of_pool(pool, **spec):
    return {"poolRef": {"name": pool}, **spec}


def key(value, **more):
    return {"name": "k", "digest": digest(value), **more}


def many_keys(number):
    """As many as one tenant may have, and as nobody else has."""
    return [{"name": f"k{each}", "digest": digest(f"{number}-{each}")} for each in range(16)]


def documents(namespace):
    """All that people would make; what is named first is the older."""
    service = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 9}]}}
    yield {**service, "metadata": {"name": "taken-fairpool", "namespace": namespace}}
    yield key_secret(namespace, "engine", "two words", label="engine")
    yield key_secret(namespace, "empty", "k", label="engine") | {"stringData": {"another": "k"}}
    yield key_secret(namespace, "spaced", "two words")
    specs = {
        "taken": {},
        "impossible": {"gateway": {"podTemplate": {"affinity": {"nodeAffinity": NOWHERE}}}},
        "proxied": {"authentication": PROXY},
        "keyless": credential("empty"),
        "spaced": credential("engine"),
        "large": {},
        "closed": {},
        "crowded": {"allowedTenants": {"namespaces": {"from": "All"}}},
    }
    for name in sorted({name for name, *_ in POOLS} | specs.keys()):
        yield fair_pool(namespace, name, **specs.get(name, {}))
    weights = {
        "older": of_pool("serving", tenantName="search", apiKeys=[key("a")]),
        "other": of_pool("serving", tenantName="search"),
        "same-key": of_pool("serving", apiKeys=[key("a")]),
        "ended": of_pool("serving", apiKeys=[key("b", notAfter=ENDED)]),
        "no-secret": of_pool("serving", apiKeys=[by_secret("missing")]),
        "no-key": of_pool("serving", apiKeys=[{"name": "k", "secretKeyRef": {"name": "spaced", "key": "another"}}]),
        "spaced": of_pool("serving", apiKeys=[by_secret("spaced")]),
        "lost": of_pool("nowhere"),
        "proxied": of_pool("proxied"),
    }
    for number in range(6):
        weights[f"large-{number}"] = of_pool("large", apiKeys=many_keys(number))
    for name, spec in weights.items():
        yield tenant_weight(namespace, name, **spec)


async def serve(admin, pods, namespace):
    """Do what Deployments' controller and gateways do."""
    await deployed(admin, namespace, "failing", Progressing="False")
    await deployed(admin, namespace, "unmade", ReplicaFailure="True")
    await deployed(admin, namespace, "paused", Progressing="Unknown")
    await admin.patch(DEPLOYMENT, "paused-fairpool", namespace, {"spec": {"paused": True}})
    for pool, found in (
        ("serving", {"endpointsReady": 2, "endpointsTotal": 2}),
        ("empty", {}),
        ("behind", {"endpointsTotal": 2, "configHash": "0" * 16}),
        ("stuck", {}),
    ):
        stuck = {"Progressing": "False"} if pool == "stuck" else {}
        await deployed(admin, namespace, pool, Available="True", **stuck)
        await report(admin, namespace, await gateway_pod(pods, pool, pool), pool, **found)


@contextlib.asynccontextmanager
async def other_definitions(admin, namespace):
    """Those of another release, by which weights may be larger, and a key nowhere."""
    pools, weights = loose = copy.deepcopy(definitions())
    spec_of(pools)["defaultWeight"]["maximum"] = 5000
    spec_of(weights)["weight"]["maximum"] = 5000
    del spec_of(weights)["apiKeys"]["items"]["x-kubernetes-validations"]
    for each in loose:
        await admin.apply(each)
    heavy = fair_pool(namespace, "heavy", defaultWeight=5000), tenant_weight(namespace, "heavy", weight=5000)
    try:
        for each in heavy:
            await taken(admin, each)
        yield
    finally:
        await install(admin)
        for each in heavy:
            await taken(admin, each, is_taken=False)


def spec_of(definition):
    """The fields of its resources' spec."""
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


async def taken(admin, document, *, is_taken=True):
    """Wait until the server takes a resource, or does not any more."""
    while True:
        try:
            await dry_run(admin, document)
        except Refused:
            if not is_taken:
                return
        else:
            if is_taken:
                return


async def says_all(admin, kind, namespace, expected):
    """Wait until every condition is so."""

    def holds(found):
        return expected == {
            (name, type_, told.get("status"), told.get("reason"))
            for name, type_, _, _ in expected
            if (told := condition(found.get(name, {}), type_))
        }

    await eventually_all(admin, kind, namespace, holds)


async def test_every_condition_is_said_with_its_reason(small_operator, admin, namespace, pods):
    for document in documents(namespace):
        await admin.create(document)
    await serve(admin, pods, namespace)
    async with new_namespace(admin, "team") as team:
        of_another = {"poolRef": {"name": "closed", "namespace": namespace}}
        await admin.create(tenant_weight(team, "stranger", **of_another))
        for number in range(6):
            pool = {"poolRef": {"name": "crowded", "namespace": namespace}}
            await admin.create(tenant_weight(team, f"crowd-{number}", apiKeys=many_keys(number), **pool))
        await says_all(admin, TENANT_WEIGHT, team, FROM_ANOTHER_NAMESPACE)
        await admin.create(tenant_weight(namespace, "home", **of_pool("crowded", suspend=True)))
        await eventually(
            admin, SECRET, "crowded-fairpool-config", namespace, lambda found: config_in(found).suspended() == {"home"}
        )
    async with other_definitions(admin, namespace):
        await admin.create(tenant_weight(namespace, "heavy", weight=5000, **of_pool("new")))
        await admin.create(tenant_weight(namespace, "neither", **of_pool("new", apiKeys=[{"name": "k"}])))
        await admin.create(fair_pool(namespace, "heavy", defaultWeight=5000))
        await admin.create(tenant_weight(namespace, "of-heavy", **of_pool("heavy")))
        await says_all(admin, TENANT_WEIGHT, namespace, OF_OTHER_DEFINITIONS)
        for name in ("heavy", "neither", "of-heavy"):
            await admin.delete(TENANT_WEIGHT, name, namespace)
        await admin.delete(FAIR_POOL, "heavy", namespace)
    async with webhook(admin, namespace, "/services"):
        await admin.create(fair_pool(namespace, "waiting"))
        await says_all(admin, FAIR_POOL, namespace, WHILE_A_WEBHOOK_IS_AWAY)
        await admin.delete(FAIR_POOL, "waiting", namespace)
    await says_all(admin, FAIR_POOL, namespace, POOLS)
    await says_all(admin, TENANT_WEIGHT, namespace, WEIGHTS)


def reasons():
    """Every reason in the operator's code: of a refusal, or given as such, by its name or as it is."""
    found = {each.reason for each in vars(errors).values() if inspect.isclass(each) and "reason" in vars(each)}
    for module in pkgutil.walk_packages(fairpool_operator.__path__, "fairpool_operator."):
        if not module.name.endswith("__main__"):
            loaded = importlib.import_module(module.name)
            found |= reasons_in(inspect.getsource(loaded), vars(loaded))
    return found


def reasons_in(source, names):
    """What is given as `reason=`, or is put by that name."""
    given = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.keyword(arg="reason", value=value) | ast.Assign(targets=[ast.Name(id="reason")], value=value):
                given += ast.walk(value)
    values = (
        each.value if isinstance(each, ast.Constant) else names.get(each.id)
        for each in given
        if isinstance(each, ast.Constant | ast.Name)
    )
    return {value for value in values if isinstance(value, str)}


def test_no_reason_of_the_code_is_left_out_above():
    had = POOLS | WEIGHTS | FROM_ANOTHER_NAMESPACE | OF_OTHER_DEFINITIONS | WHILE_A_WEBHOOK_IS_AWAY
    assert reasons() == {reason for *_, reason in had}


def test_a_reason_of_any_form_is_found():
    source = (
        "Finding(X, reason='A'); Finding(X, reason=B); reason = x.reason if x else 'C'; Finding(X, reason=x.reason)"
    )
    assert reasons_in(source, {"B": "B", "x": object()}) == {"A", "B", "C"}
