"""What an operator asks of a real server: only what it needs, only what is labelled for it, and again when in doubt."""

from support.cluster.client import SECRET, TENANT_WEIGHT
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.lying_proxy import asking
from support.cluster.operating import config_in
from support.cluster.resources import says
from support.cluster.waiting import eventually
from support.scripted_endpoint import until

CONFIG = "llama-fairpool-config"
MANAGED = "app.kubernetes.io/managed-by=fairpool-operator"
FOLLOWED = {
    "fairpools": "",
    "tenantweights": "",
    "secrets": "fairpool.dev/keys",
    "pods": "app.kubernetes.io/name=fairpool-gateway",
    "serviceaccounts": MANAGED,
    "roles": MANAGED,
    "rolebindings": MANAGED,
    "services": MANAGED,
    "networkpolicies": MANAGED,
    "deployments": MANAGED,
}


def follows_all(liar):
    return {asked.resource for asked in liar.requests if asked.verb == "watch"} == FOLLOWED.keys()


async def following(own_operators, access, liar, *arguments):
    """An operator that speaks with the server through the liar, once it follows everything."""
    operator = own_operators("operator", *arguments, access=access.via(liar.url))
    await operator.reaches(lambda now: now["lists_total"] and follows_all(liar))
    return operator


class TestWhatIsFollowed:
    async def test_is_listed_and_watched_by_its_labels_and_is_all_that_is(
        self, own_operators, own_access, liar, admin, namespace
    ):
        await following(own_operators, own_access, liar)
        await admin.create(fair_pool(namespace))
        await eventually(admin, SECRET, CONFIG, namespace, lambda _: True)
        asked = {(each.resource, each.verb, each.labels) for each in liar.requests if each.verb in {"list", "watch"}}
        # What the server has is asked for by a path without a resource.
        assert {each for each in asked if each[0]} == {
            (resource, verb, labels) for resource, labels in FOLLOWED.items() for verb in ("list", "watch")
        }
        assert {each.namespace for each in liar.requests if each.resource and each.verb != "create"} == {namespace}

    async def test_is_listed_again_when_a_watch_begins_anew(self, own_operators, own_access, liar, admin, namespace):
        operator = await following(own_operators, own_access, liar, "--list-seconds", "3600")
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(namespace, weight=1))
        await eventually(admin, TENANT_WEIGHT, "search", namespace, says("Accepted", "True"))
        lost = liar.lose_type("tenantweights", "DELETED")
        await admin.delete(TENANT_WEIGHT, "search", namespace)
        await until(lambda: lost.told)
        assert config_in(await admin.get(SECRET, CONFIG, namespace)).weights() == {"search": 1}
        assert liar.spoil_watches(asking("fairpools", "watch"))
        await eventually(admin, SECRET, CONFIG, namespace, lambda found: config_in(found).weights() == {})
        assert (await operator.numbers())["watch_restarts_total"] == 0

    async def test_is_listed_again_when_kopf_ends_and_is_started_again(
        self, own_operators, own_access, liar, admin, namespace
    ):
        operator = await following(own_operators, own_access, liar, "--list-seconds", "3600")
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(namespace, weight=1))
        await eventually(admin, SECRET, CONFIG, namespace, lambda found: config_in(found).weights() == {"search": 1})
        refused = liar.refuse(asking("tenantweights", "watch"), 401)
        assert liar.spoil_watches(asking("tenantweights", "watch"))
        await operator.reaches(lambda now: now["watch_restarts_total"] >= 1)
        refused.end()
        await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"weight": 7}})
        await eventually(admin, SECRET, CONFIG, namespace, lambda found: config_in(found).weights() == {"search": 7})
