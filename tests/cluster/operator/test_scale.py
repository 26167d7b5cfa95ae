"""Many pools at once: all served from cold in little memory, then left alone, and an edit of one no work for others."""

import asyncio

import pytest
from support.cluster.scale import Size, edit, peak_megabytes, populate, settled, versions

SIZE = Size(pools=500, tenants_each=4)
PROMISED_MEGABYTES = 200
REST_SECONDS = 60.0
MOST_CALLS_AT_REST = 30
"""In that minute: renewals of the Lease, and a list of everything."""


@pytest.fixture
async def crowd(admin, definitions, namespace):
    await populate(admin, namespace, SIZE)


class TestManyPools:
    @pytest.mark.timeout(1800)
    async def test_are_served_from_cold_then_left_alone_and_edited_one_by_one_in_little_memory(
        self, crowd, own_operators, admin, namespace
    ):
        operator = own_operators("operator", "--lease-seconds", "15", "--list-seconds", "180")
        await settled(admin, operator, namespace, SIZE, within=1200.0)

        numbers, before = await operator.numbers(), await versions(admin, namespace)
        await asyncio.sleep(REST_SECONDS)
        assert await versions(admin, namespace) == before
        after = await operator.numbers()
        assert after["api_writes_total"] == numbers["api_writes_total"]
        assert after["api_calls_total"] - numbers["api_calls_total"] < MOST_CALLS_AT_REST

        for pool, weight in ((0, 7), (SIZE.pools - 1, 900)):
            # the Secret, what is said of the tenant, and what is said of its pool
            assert (await edit(admin, operator, namespace, pool, weight)).writes == 3
        assert peak_megabytes(operator.pid) < PROMISED_MEGABYTES
