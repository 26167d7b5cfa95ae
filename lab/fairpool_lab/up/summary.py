"""What is said about a pool: where it is served, who shares it, who does not and why, and how to try it.

What always holds: no key is in it, only the name of the file in which one is.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from fairpool_lab.up.local import Local, Tenant
from fairpool_lab.up.pool import Served
from fairpool_lab.up.programs import SIMULATED_MODEL
from fairpool_lab.up.state import headers, key

_UNKNOWN_MODEL = "MODEL"
_ALL_THE_SAME = ", but tenants, keys, bounds and what else needs nothing of this are as the files say."
_SUSPENDED = ", suspended (spec.suspend), so every request is refused"


def pool_lines(local: Local, served: Served | None, directory: Path, late: str | None) -> Iterator[str]:
    """A pool, and where it is served if it is; `late` says why it is not as it is to be, if so."""
    if local.place is None:
        yield f"Pool {local.key}, in none of the files: not served"
        return
    where = f"{served.url}/v1" if served else "not served"
    yield f"Pool {local.key}, in {local.place}: {where}{_SUSPENDED if _is_suspended(local) else ''}"
    yield from reasons(local, served, late)
    if served is not None:
        yield f"  endpoints  {_endpoints(local, served)}"
        yield f"  admin      {served.admin_url}: /readyz, /metrics, /debug/pool, tenants, requests, keys"
        yield f"  files      {directory}"


def reasons(local: Local, served: Served | None, late: str | None) -> Iterator[str]:
    """Why a pool is not as its files say."""
    kept = ""
    if served and local.problems:
        kept = " The last good configuration stays in force" + (_ALL_THE_SAME if local.followed else ".")
    yield from (f"  {problem}{kept}" for problem in local.problems)
    yield from (f"  {reason}" for reason in (local.idle, late) if reason is not None)


def tenant_lines(local: Local) -> Iterator[str]:
    """Each tenant, with its weight and its share while all wait; and who is none, and why."""
    total = sum(tenant.weight or 0 for tenant in local.tenants)
    width = max((len(tenant.name) for tenant in local.tenants), default=0)
    for tenant in sorted(local.tenants, key=lambda each: (-(each.weight or 0), each.name)):
        if tenant.weight is None:
            yield f"  tenant {tenant.name:{width}}  -"
        else:
            told = f"{tenant.weight / total:6.1%}  {tenant.notes}".rstrip()
            yield f"  tenant {tenant.name:{width}}  weight {tenant.weight:4} {told}"
        yield from (f"    {problem}" for problem in tenant.problems)


def trial_lines(local: Local, served: Served, directory: Path) -> Iterator[str]:
    """How to send a first request, as somebody whose credential the files hold, where it would be answered."""
    if _is_suspended(local):
        yield "There is nothing to try while the pool is suspended."
        return
    refused = {each.name for each in local.config.tenants if each.suspend} if local.config else set()
    tenant = next((each for each in local.tenants if each.credential and each.name not in refused), None)
    if tenant is None:
        yield "No key of a tenant that is served is in the files, so tenants' own are needed to try it."
        return
    yield f"Try it as tenant {tenant.name}, whose credential is read from a file of yours:"
    yield ""
    yield from (f"  {line}" for line in _curl(tenant, local, served, directory))
    if tenant.key is not None and not local.over_tls:
        yield ""
        yield from (f"  {line}" for line in _openai(tenant, local, served, directory))


def _is_suspended(local: Local) -> bool:
    config = local.config or local.followed
    return config is not None and config.suspend


def news(before: Iterable[str], after: Iterable[str], repeated: Iterable[str]) -> list[str]:
    """The lines that were not there before and, if there are any, those that are to be repeated beside them."""
    known = set(before)
    if known.issuperset(after := list(after)):
        return []
    known.difference_update(repeated)
    return [line for line in after if line not in known]


def _endpoints(local: Local, served: Served) -> str:
    if local.endpoints.given:
        return ", ".join(endpoint.url for endpoint in local.endpoints.given)
    simulated = (
        "1 simulated engine" if local.endpoints.simulated == 1 else f"{local.endpoints.simulated} simulated engines"
    )
    return f"{simulated}, {', '.join(served.simulated)}"


def _model(local: Local) -> str:
    if local.config is not None and local.config.models:
        return local.config.models[0]
    return _UNKNOWN_MODEL if local.endpoints.given else SIMULATED_MODEL


def _curl(tenant: Tenant, local: Local, served: Served, directory: Path) -> Iterator[str]:
    # No certificate is for this address, as a rule.
    trusting = " --insecure" if local.over_tls else ""
    credential = shlex.quote(f"@{directory / headers(tenant.name)}")
    if _model(local) == _UNKNOWN_MODEL:
        yield f"curl -sS{trusting} -H {credential} {shlex.quote(served.url)}/v1/models"
    body = {"model": _model(local), "max_tokens": 32, "messages": [{"role": "user", "content": "Hello"}]}
    url = shlex.quote(f"{served.url}/v1/chat/completions")
    yield f"curl -sS{trusting} -H {credential} -H 'Content-Type: application/json' {url} \\"
    yield f"  -d {shlex.quote(json.dumps(body))}"


def _openai(tenant: Tenant, local: Local, served: Served, directory: Path) -> Iterator[str]:
    path = json.dumps(str(directory / key(tenant.name)))
    yield "from openai import OpenAI"
    yield f'client = OpenAI(base_url="{served.url}/v1", api_key=open({path}).read())'
    asked = f'model={json.dumps(_model(local))}, messages=[{{"role": "user", "content": "Hello"}}]'
    yield f"print(client.chat.completions.create({asked}).choices[0].message.content)"
