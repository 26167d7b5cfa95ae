"""What is said about a pool that is suspended, or has tenants that are."""

from __future__ import annotations

from pathlib import Path

from support.config import key_of, pool_config

from fairpool_lab.up.endpoints import Endpoints
from fairpool_lab.up.local import Local, Tenant
from fairpool_lab.up.pool import Served
from fairpool_lab.up.summary import news, pool_lines, trial_lines
from fairpool_operator.view import PoolKey

SERVED = Served("http://127.0.0.1:8080", "http://127.0.0.1:9080", ("sim",))
IS_SERVED = "Pool default/llama, in pools.yaml:1: http://127.0.0.1:8080/v1"


def local(*tenants: str, suspended: tuple[str, ...] = (), **fields) -> Local:
    """A pool with these tenants, of whom some are suspended."""
    settings = [{"name": name, "suspend": name in suspended} for name in tenants]
    known = (Tenant(name, 100, "", (), {"Authorization": f"Bearer {key_of(name)}"}, key_of(name)) for name in tenants)
    config = pool_config(tenants=settings, **fields)
    return Local(PoolKey("default", "llama"), "pools.yaml:1", tuple(known), config=config, endpoints=Endpoints((), 1))


def said(pool: Local) -> list[str]:
    return list(pool_lines(pool, SERVED, Path("/files"), None))


def tried(pool: Local) -> list[str]:
    return list(trial_lines(pool, SERVED, Path("/files")))


def test_a_suspended_pool_is_said_to_be_so_at_the_start_and_there_is_nothing_to_try():
    suspended = local("search", suspend=True)
    assert said(suspended)[0] == f"{IS_SERVED}, suspended (spec.suspend), so every request is refused"
    assert tried(suspended) == ["There is nothing to try while the pool is suspended."]


def test_an_edit_that_suspends_a_pool_or_has_it_go_on_is_told_of():
    running, suspended = said(local("search")), said(local("search", suspend=True))
    assert news(running, suspended, ()) == suspended[:1]
    assert news(suspended, running, ()) == [IS_SERVED]


def test_what_keeps_a_pool_from_being_as_it_is_written_is_told_beside_every_change_and_not_without_one():
    before = ["Pool a", "  its port is taken", "  tenant search  weight  100"]
    after = [*before[:2], "  tenant search  weight  200"]
    assert news(before, after, before[1:2]) == after[1:]
    assert news(after, after, before[1:2]) == []


def test_a_trial_is_as_a_tenant_that_is_not_suspended():
    assert "as tenant batch," in tried(local("search", "batch", suspended=("search",)))[0]
    [nobody] = tried(local("search", suspended=("search",)))
    assert nobody == "No key of a tenant that is served is in the files, so tenants' own are needed to try it."
