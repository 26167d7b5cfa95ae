"""Many pools at once: all of them served from cold, in bounded memory, and an edit of one is no work for the others."""

import pytest
from support.cluster.scale import Size, edit, peak_megabytes, populate, settled

SIZE = Size(pools=20, tenants_each=5)
PROMISED_MEGABYTES = 200


@pytest.fixture
async def crowd(admin, definitions, namespace):
    await populate(admin, namespace, SIZE)


class TestManyPools:
    async def test_are_served_from_cold_in_little_memory_and_edited_one_by_one(
        self, crowd, own_operators, admin, namespace
    ):
        operator = own_operators("operator", "--lease-seconds", "15", "--list-seconds", "180")
        await settled(admin, operator, namespace, SIZE, within=120.0)
        for pool, weight in ((0, 7), (SIZE.pools - 1, 900)):
            # the Secret, what is said of the tenant, and what is said of its pool
            assert (await edit(admin, operator, namespace, pool, weight)).writes == 3
        assert peak_megabytes(operator.pid) < PROMISED_MEGABYTES
