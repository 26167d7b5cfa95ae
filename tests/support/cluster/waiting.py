"""Waiting until objects are as they should be, by watching them: a test goes on at once, and no state is missed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import aiohttp
from support.cluster.client import Client, Document, Kind, Refused

PATIENCE: Final = 30.0
"""Seconds after which a test gives up waiting, unless it says otherwise."""

_AGAIN: Final = 0.1
_PASSING: Final = frozenset({410, 429, 500, 503, 504})


async def eventually(
    client: Client,
    kind: Kind,
    name: str,
    namespace: str | None,
    condition: Callable[[Document], object],
    within: float = PATIENCE,
) -> Document:
    """Wait until an object is there and is as it should be; returns it."""

    def holds(found: Mapping[str, Document]) -> object:
        return name in found and condition(found[name])

    found = await eventually_all(client, kind, namespace, holds, within, fieldSelector=f"metadata.name={name}")
    return found[name]


async def gone(client: Client, kind: Kind, name: str, namespace: str | None, within: float = PATIENCE) -> None:
    """Wait until an object is not there."""
    selected = {"fieldSelector": f"metadata.name={name}"}
    await eventually_all(client, kind, namespace, lambda found: not found, within, **selected)


async def eventually_all(
    client: Client,
    kind: Kind,
    namespace: str | None,
    condition: Callable[[Mapping[str, Document]], object],
    within: float = PATIENCE,
    **query: str,
) -> Mapping[str, Document]:
    """Wait until all objects of a namespace, by name, are as they should be; returns them.

    The server may be killed and restarted meanwhile.
    """
    found: dict[str, Document] = {}
    try:
        async with asyncio.timeout(within):
            while not await _follow(client, kind, namespace, condition, query, found):  # noqa: ASYNC110 - see below
                await asyncio.sleep(_AGAIN)  # the server broke off, and may be down
    except TimeoutError:
        last = "\n".join(map(str, found.values())) or "none is there"
        raise AssertionError(f"{kind.name} did not come to be as it should within {within:g} s:\n{last}") from None
    return found


async def _follow(
    client: Client,
    kind: Kind,
    namespace: str | None,
    condition: Callable[[Mapping[str, Document]], object],
    query: Mapping[str, str],
    found: dict[str, Document],
) -> bool:
    """Keep `found` as the server has it until it is as it should be; false if the server broke off before."""
    try:
        listing = await client.listing(kind, namespace, **query)
        found.clear()
        found.update((item["metadata"]["name"], item) for item in listing["items"])
        if condition(found):
            return True
        async with client.watch(kind, namespace, listing["metadata"]["resourceVersion"], **query) as events:
            async for event in events:
                item = event["object"]
                if event["type"] == "DELETED":
                    del found[item["metadata"]["name"]]
                else:
                    found[item["metadata"]["name"]] = item
                if condition(found):
                    return True
    except aiohttp.ClientError:
        return False
    except Refused as refused:
        if refused.status not in _PASSING:
            raise
    return False
