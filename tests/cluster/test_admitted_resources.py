"""Whatever the API server admits can be read and decided about."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.cluster.client import Refused
from support.cluster.definitions import definitions, dry_run, fair_pool, tenant_weight
from support.crd_strategies import drawn_from
from support.definition_walks import schema_of

from fairpool_operator.errors import Unreadable
from fairpool_operator.resources import read_pool, read_tenant_weight

pytestmark = pytest.mark.usefixtures("crds")

POOLS, WEIGHTS = (schema_of(definition)["properties"]["spec"] for definition in definitions())
READERS = {"FairPool": read_pool, "TenantWeight": read_tenant_weight}


def with_some(fields, smallest):
    """The smallest resource of a kind, with up to three other fields in it that hold anything."""
    some = st.lists(st.sampled_from(sorted(fields)), max_size=3, unique=True)
    drawn = some.flatmap(lambda chosen: st.fixed_dictionaries({name: fields[name] for name in chosen}))
    return drawn.map(lambda spec: smallest("default", **spec))


DOCUMENTS = st.one_of(
    with_some({name: drawn_from(part, (name,)) for name, part in schema["properties"].items()}, smallest)
    for schema, smallest in ((POOLS, fair_pool), (WEIGHTS, tenant_weight))
)


async def admitted(admin, documents):
    """Those that the server would make, as it would make them."""
    answers = await asyncio.gather(*(dry_run(admin, document) for document in documents), return_exceptions=True)
    refusals = [answer for answer in answers if isinstance(answer, BaseException)]
    assert all(isinstance(refusal, Refused) and refusal.status == 422 for refusal in refusals), refusals
    return [answer for answer in answers if not isinstance(answer, BaseException)]


class TestWhateverIsAdmitted:
    @settings(
        max_examples=8,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(documents=st.lists(DOCUMENTS, min_size=12, max_size=12))
    async def test_can_be_read_and_says_the_same_when_written(self, admin, documents):
        for made in await admitted(admin, documents):
            read = READERS[made["kind"]](made)
            assert READERS[made["kind"]]({**made, "spec": read.spec.written()}) == read

    async def test_is_some_of_all_there_is(self, admin):
        """Or the test above would say nothing."""
        tried = [fair_pool("default"), fair_pool("default", defaultWeight=0), tenant_weight("default")]
        assert len(await admitted(admin, tried)) == 2

    async def test_could_not_be_read_if_a_definition_admitted_more(self, admin):
        made = await dry_run(admin, fair_pool("default"))
        with pytest.raises(Unreadable):
            read_pool({**made, "spec": {**made["spec"], "defaultWeight": 1001}})
