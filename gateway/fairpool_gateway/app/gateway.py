"""One running gateway: its parts, put together from a configuration and kept in step with its edits."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Iterable
from itertools import count

from fairpool_gateway.app.body import Bodies
from fairpool_gateway.app.certificate import Certificate
from fairpool_gateway.app.credential import read_credential
from fairpool_gateway.app.shutdown import Shutdown
from fairpool_gateway.asking import Asker
from fairpool_gateway.broker import Broker
from fairpool_gateway.config import PoolConfig
from fairpool_gateway.decision_log import DecisionLog
from fairpool_gateway.discovery import Found, Pod, PodFollower, find_endpoints
from fairpool_gateway.dispatcher import Dispatcher, Request
from fairpool_gateway.endpoints import EndpointSpec
from fairpool_gateway.errors import ConfigInvalid, Refused
from fairpool_gateway.identity import Directory, Headers
from fairpool_gateway.listings import Lister
from fairpool_gateway.ordering import OrderingFactory
from fairpool_gateway.probes import Prober
from fairpool_gateway.sfq import Scheduler
from fairpool_gateway.tallies import ANSWERED, NOBODY, Tally
from fairpool_gateway.tracing import Tracing
from fairpool_gateway.upstream import Client, Target, Tls
from fairpool_gateway.writes import Writes

log = logging.getLogger(__name__)


class Gateway:
    """What the routes work with. To be made on the event loop that it will run on."""

    def __init__(
        self,
        config: PoolConfig,
        *,
        ordering: OrderingFactory[Request] = Scheduler,
        log: DecisionLog | None = None,
        in_pod: bool = False,
        tracing: Tracing | None = None,
        certificate: Certificate | None = None,
        pods: PodFollower | None = None,
    ) -> None:
        _can_discover(config, pods)
        self.config = config
        self.config_hash = ""
        self.credential = read_credential(config.endpoint_credential)
        self.credential_problem: str | None = None
        self.directory = Directory(config)
        self.apis = config.apis()
        self.writes = Writes()
        self.client = Client(writes=self.writes)
        self._tls = _tls(config)
        self.broker = Broker(Dispatcher(config, ordering=ordering, log=log))
        self.found: Found | None = None
        self._pods: tuple[Pod, ...] | None = None
        self._pod_follower = pods
        self.bodies = Bodies(self.broker)
        self._askers: tuple[Asker, ...] = ()
        self.tracing = tracing
        self.certificate = certificate
        self.config_problem: str | None = None
        self.shutdown = Shutdown(in_pod=in_pod)
        self.loop = asyncio.get_running_loop()
        self._run = secrets.token_hex(4)
        self._numbers = count(1)
        self._place_endpoints()

    def apply(self, config: PoolConfig) -> None:
        """Follow an edit of the configuration; nothing that waits or runs is dropped, unless it is suspended.

        Raises:
            ConfigInvalid: the endpoints' credential cannot be read, or pods cannot be found; nothing has changed.
        """
        _can_discover(config, self._pod_follower)
        self.renew_credential(read_credential(config.endpoint_credential))
        self.config = config
        self.config_problem = None
        self.directory = Directory(config, before=self.directory)
        self.apis = config.apis()
        # What still goes to endpoints over TLS that the edit took out is protected as before.
        self._tls = _tls(config) or self._tls
        self.broker.configure(config)
        self._place_endpoints()
        self.discover()

    @property
    def models(self) -> tuple[str, ...]:
        """What is served, as far as is known."""
        return self.broker.dispatcher.models

    def probe_endpoints(self) -> None:
        """Ask endpoints how they are and which models they serve, from now on."""
        self._askers = tuple(asker(self.broker, self.client, lambda: self.credential) for asker in (Prober, Lister))
        self._ask_endpoints()

    def discover(self) -> None:
        """Find endpoints among pods, where the configuration says so, from now on."""
        discovery = self.config.discovery
        if discovery is None:
            self._pods = None
        if self._pod_follower is not None:
            self._pod_follower.follow(None if discovery is None else discovery.selector, self._saw)

    @property
    def knows_its_endpoints(self) -> bool:
        """Whether those that are to be found have been looked for."""
        return self.config.discovery is None or self._pods is not None

    @property
    def unseen_pods(self) -> str | None:
        """Why nothing was seen yet of what the selector chooses, if so; what one before it chose stays until then."""
        return None if self._pod_follower is None else self._pod_follower.unseen

    def _saw(self, pods: Iterable[Pod]) -> None:
        self._pods = tuple(pods)
        self._place_endpoints()

    def _place_endpoints(self) -> None:
        """Have those endpoints that there are now."""
        config = self.config
        if config.discovery is None:
            self.found = None
            self.broker.replace_endpoints(_endpoint_specs(config))
        else:
            self.found = find_endpoints(self._pods or (), config.discovery, config.slots.per_endpoint)
            self.broker.replace_endpoints(self.found.endpoints)
        self._ask_endpoints()

    def _ask_endpoints(self) -> None:
        for asker in self._askers:
            asker.follow(self.config.probe, self._tls)

    def refuse_config(self, problem: ConfigInvalid) -> None:
        """An edit cannot be used: keep the last good configuration, and say so."""
        self.config_problem = str(problem)

    def renew_credential(self, credential: bytes | None) -> None:
        """This is what endpoints ask for from now on."""
        self.credential = credential
        self.credential_problem = None

    def identify(self, given: Headers) -> str:
        """The tenant whose request has these headers; raises what `Directory.identify` raises."""
        return self.directory.identify(given, time.time())

    def new_request_id(self) -> str:
        """An id that no other request of this pool has had."""
        return f"req-{self._run}-{next(self._numbers)}"

    def tally_of(self, tenant: str | None) -> Tally[Request]:
        """Where a tenant's requests count; None: nobody knows whose they are."""
        tallies = self.broker.dispatcher.tallies
        return tallies.nobody if tenant is None else tallies.of(tenant)

    def answered(self, tenant: str) -> None:
        """Note that the gateway itself answered a tenant what it had asked for."""
        self.tally_of(tenant).outcomes[ANSWERED] += 1

    def refused(self, refusal: Refused, tenant: str | None, request_id: bytes) -> None:
        """Note one refusal, by its reason and by whose request it was."""
        tenant, request = tenant or refusal.tenant, request_id.decode()
        self.tally_of(tenant).refused(self.loop.time(), tenant or NOBODY, request, refusal.reason)
        fields = {"request": request, "tenant": tenant, "reason": refusal.reason}
        log.info("request %s of tenant %s was refused: %s", request, tenant, refusal.reason, extra=fields)

    def turned_away(self, refusal: Refused) -> bytes:
        """Note the refusal of what has not become a request; returns the id that it gets."""
        made = self.new_request_id().encode()
        self.refused(refusal, None, made)
        return made

    def target_of(self, spec: EndpointSpec) -> Target:
        """Where an endpoint listens, and over TLS how it proves itself."""
        return Target(spec.host, spec.port, self._tls if spec.over_tls else None)

    async def aclose(self) -> None:
        """End what runs in the background."""
        if self._pod_follower is not None:
            await self._pod_follower.aclose()
        for asker in self._askers:
            await asker.aclose()
        self.broker.close()
        await self.client.aclose()
        if self.tracing is not None:
            await asyncio.to_thread(self.tracing.close)


def _endpoint_specs(config: PoolConfig) -> list[EndpointSpec]:
    """The configured endpoints; one whose address changes under its name is another endpoint."""
    return [
        EndpointSpec(
            id=f"{endpoint.name}@{endpoint.host}:{endpoint.port}",
            host=endpoint.host,
            port=endpoint.port,
            slots=config.slots_of(endpoint),
            draining=endpoint.drain,
            over_tls=endpoint.over_tls,
        )
        for endpoint in config.endpoints
    ]


def _can_discover(config: PoolConfig, pods: PodFollower | None) -> None:
    if config.discovery is not None and pods is None:
        raise ConfigInvalid(["discovery: pods can be found in a namespace only: name it with --namespace"])


def _tls(config: PoolConfig) -> Tls | None:
    settings = config.endpoint_tls
    return None if settings is None else Tls(settings.ca_file, settings.server_name)
