"""A pool that lacks something goes on as before, but follows what needs nothing of that, as it would on a cluster.

So nobody can keep a key alive by taking a Secret away, and what is said of tenants is what their requests meet.
"""

from __future__ import annotations

import json
import shutil

import pytest
from support.up import pool, secret, weight, write
from support.up_session import until

OVER_TLS = {"gateway": {"tls": {"certificateRef": {"name": "pair"}}}}
"""Its Secret is in no file."""


@pytest.fixture
async def said(place):
    async with place.session() as said:
        yield said


def config(place):
    return json.loads(place.config())


def tenants(place):
    return {tenant["name"]: tenant for tenant in config(place)["tenants"]}


class TestWhatAPoolWithAProblemFollows:
    async def test_a_tenant_that_is_gone_is_served_no_more_and_its_key_is_in_no_file(self, place, said):
        write(place.files / "all.yaml", pool(**OVER_TLS), weight("search"))
        await until(lambda: tenants(place).keys() == {"search"})
        await until(lambda: not list(place.state.glob("*/keys/batch*")))
        await until(lambda: any("SecretNotFound" in line and "but tenants, keys" in line for line in said))

    async def test_a_weight_and_a_suspension_are_as_they_are_said_to_be(self, place, said):
        write(place.files / "all.yaml", pool(**OVER_TLS), weight("search", weight=7), weight("batch", suspend=True))
        await until(lambda: tenants(place)["search"]["weight"] == 7)
        assert tenants(place)["batch"]["suspend"]

    async def test_a_pool_that_is_suspended_is(self, place, said):
        write(place.files / "all.yaml", pool(suspend=True, **OVER_TLS), weight("search"), weight("batch"))
        await until(lambda: config(place)["suspend"])
        await until(lambda: any("suspended (spec.suspend)" in line for line in said))

    async def test_nobody_is_served_once_the_last_key_is_gone_and_all_are_once_it_is_back(self, place, said):
        write(place.files / "all.yaml", pool(**OVER_TLS))
        await until(lambda: config(place)["suspend"])
        write(place.files / "all.yaml", pool(**OVER_TLS), weight("search"))
        await until(lambda: not config(place)["suspend"])
        assert tenants(place).keys() == {"search"}

    async def test_it_is_as_all_of_its_files_say_once_nothing_is_missing(self, place, said):
        write(place.files / "all.yaml", pool(**OVER_TLS), weight("search"))
        await until(lambda: tenants(place).keys() == {"search"})
        write(place.files / "all.yaml", pool(), weight("search"), weight("batch", weight=9))
        await until(lambda: tenants(place).keys() == {"search", "batch"})
        assert tenants(place)["batch"]["weight"] == 9


class TestWhatItDoesNotFollow:
    async def test_an_edition_that_the_server_would_refuse_has_no_part_in_it(self, place, said):
        write(place.files / "all.yaml", pool(queue={"maxRequests": 0}), weight("search", weight=7), weight("batch"))
        await until(lambda: tenants(place)["search"]["weight"] == 7)
        assert not any("but tenants, keys" in line for line in said)

    async def test_a_pool_that_had_ended_for_want_of_keys_begins_once_nothing_is_missing(self, place, said):
        write(place.files / "all.yaml", pool())
        await until(lambda: any("no tenant has a key" in line for line in said))
        write(place.files / "all.yaml", pool(**OVER_TLS), weight("search"))
        await until(lambda: any("SecretNotFound" in line for line in said))
        so_far = len(said)
        write(place.files / "all.yaml", pool(), weight("search"))
        await until(lambda: any("http://" in line for line in said[so_far:]))


async def test_a_state_directory_that_was_removed_is_made_anew_for_the_next_edit(place, said):
    shutil.rmtree(place.state)
    write(place.files / "all.yaml", pool(), weight("search"))
    await until((place.state / "default.llama" / "pool.json").exists)
    assert tenants(place).keys() == {"search"}
    assert not any("cannot be made" in line for line in said)


async def test_a_key_of_anothers_secret_is_of_no_use_for_it(place, said):
    """What is missing may be the key itself."""
    write(place.files / "keys.yaml", secret(search="key-of-search-51c0"))
    await until(lambda: not tenants(place).get("batch", {}).get("keys"))
    assert tenants(place)["search"]["keys"]
