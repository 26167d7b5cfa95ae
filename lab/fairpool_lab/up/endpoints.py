"""Where endpoints are, which is all that is said on the command line: `--endpoint [POOL=]URL` and `--simulate N`.

What always holds: a pool has the endpoints that were given for it, and otherwise simulated ones if there are to be any.
An address without a pool is for the only pool that there is at the start, for one endpoint serves one pool only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import ValidationError

from fairpool_gateway.config import EndpointSettings
from fairpool_gateway.config.problems import describe
from fairpool_lab.errors import OptionInvalid
from fairpool_operator.view import PoolKey

_GIVEN: Final = re.compile(r"(?:(?:(?P<namespace>[a-z0-9.-]+)/)?(?P<pool>[a-z0-9.-]+)=)?(?P<url>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Those of one pool: what was given, or how many are to be simulated."""

    given: tuple[EndpointSettings, ...] = ()
    simulated: int = 0

    def __bool__(self) -> bool:
        return bool(self.given or self.simulated)

    @property
    def over_tls(self) -> bool:
        """Whether any of them is reached over TLS."""
        return any(endpoint.over_tls for endpoint in self.given)


NO_ENDPOINTS: Final = Endpoints()


@dataclass(frozen=True, slots=True)
class Address:
    """One `--endpoint`. `namespace` and `pool` say whose it is, as far as they were given."""

    namespace: str | None
    pool: str | None
    url: str

    def is_for(self, key: PoolKey) -> bool:
        """Whether it is this pool's, by name."""
        return self.pool == key.name and self.namespace in {None, key.namespace}


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says, about all pools."""

    addresses: tuple[Address, ...]
    simulated: int

    def settled(self, pools: Collection[PoolKey]) -> Given:
        """The same, with every address given to a pool, of those that there are at the start.

        Raises:
            OptionInvalid: it cannot be said whose one is.
        """
        return replace(self, addresses=tuple(_settled(each, pools) for each in self.addresses))

    def of(self, key: PoolKey) -> Endpoints:
        """The endpoints of a pool; none if nothing was said about it."""
        urls = [address.url for address in self.addresses if address.is_for(key)]
        if urls:
            return Endpoints(tuple(EndpointSettings(name=f"endpoint-{n}", url=url) for n, url in enumerate(urls)))
        return Endpoints(simulated=self.simulated)


def given(endpoints: Sequence[str], simulated: int | None) -> Given:
    """What the command line says.

    Raises:
        OptionInvalid: it cannot be used, or says nothing.
    """
    if not endpoints and simulated is None:
        raise OptionInvalid(
            "say where engines are: --endpoint URL for each that runs, such as http://127.0.0.1:8000, or --simulate N "
            "for N simulated ones"
        )
    if simulated is not None and not 0 < simulated <= 64:
        raise OptionInvalid("--simulate: must be a number of engines from 1 to 64")
    addresses = tuple(_address(text) for text in endpoints)
    if len({address.url for address in addresses}) < len(addresses):
        raise OptionInvalid("--endpoint: one URL is given twice, and its slots would count twice: leave one out")
    return Given(addresses, simulated or 0)


def _address(text: str) -> Address:
    found = _GIVEN.fullmatch(text)
    assert found is not None, "any text is an address"
    try:
        url = EndpointSettings(name="endpoint", url=found["url"]).url
    except ValidationError as error:
        problem = describe(error, {}, "")[0].removeprefix("url: ")
    else:
        return Address(found["namespace"], found["pool"], url)
    # Outside the handler: the validation error quotes the address, in which a credential may be.
    raise OptionInvalid(f"--endpoint: {problem}; or POOL= and that, where there are several pools")


def _settled(address: Address, pools: Collection[PoolKey]) -> Address:
    fitting = [key for key in pools if address.pool is None or address.is_for(key)]
    if len(fitting) == 1:
        return replace(address, namespace=fitting[0].namespace, pool=fitting[0].name)
    if not fitting:
        raise OptionInvalid(f"--endpoint {address.pool}=URL: there is no such pool, only {_named(pools)}")
    raise OptionInvalid(
        f"--endpoint: there are several pools, {_named(fitting)}: say whose each is, as in "
        f"--endpoint {min(fitting)}={address.url}"
    )


def _named(pools: Iterable[PoolKey]) -> str:
    return ", ".join(str(key) for key in sorted(pools))
