"""What serves one pool here, kept as the last decision about it wants it.

What always holds: an edit that the gateway can follow restarts nothing, and waits for nothing else that is wanted; the
gateway ends before its engines do, so that what runs is finished; what cannot be done now is said, tried again and
takes nothing away that serves; and what ends by itself is told once, to whoever started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from fairpool_gateway.app.certificate import Certificate
from fairpool_gateway.config import EndpointSettings, dump
from fairpool_gateway.errors import CannotStart
from fairpool_lab.errors import CertificateInvalid, LabError, OutputInvalid, ProcessFailed
from fairpool_lab.processes import Program
from fairpool_lab.up import programs
from fairpool_lab.up.local import TLS_CERTIFICATE, TLS_KEY, Local, configured, serves_nobody
from fairpool_lab.up.programs import Ports
from fairpool_lab.up.started import Failed, Started
from fairpool_lab.up.state import CONFIG, PoolState, headers, key

_WORTH_TELLING = re.compile(r"^\S+ (?:WARNING|ERROR) \S+ (.+)")
_FOLLOWED = re.compile(r"^\S+ INFO \S+ an edit of .+ is in force")
_PAIR = (TLS_CERTIFICATE, TLS_KEY)

FINISHES = "what it ran before is being finished first"
_STARTS = "it is being started"
_STARTS_ENGINES = "engines of its models are being started"
_AGAIN_SECONDS = 2.0
"""Before what failed is tried again; each time twice as long, up to the other."""
_AGAIN_SECONDS_AT_MOST = 30.0

Came = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Served:
    """Where a pool is served, for tenants and for whoever looks after it, and which models simulated engines have."""

    url: str
    admin_url: str
    simulated: tuple[str, ...]


class Pool:
    """One pool. `want` says how it is to be; a task of its own sees to it.

    Attributes:
        served: where it is served; None while it is not.
        late: why it is not as it was wanted: that takes long, or failed. `came` is called when there is an end to it.
        failure: what failed, until that succeeds or something else is wanted.
    """

    def __init__(
        self,
        files: PoolState,
        ports: Ports,
        drain_seconds: int,
        say: Callable[[str], None],
        failed: Failed,
        came: Came,
    ) -> None:
        self.served: Served | None = None
        self.late: str | None = None
        self.failure: LabError | None = None
        self._files = files
        self._ports = ports
        self._drain_seconds = drain_seconds
        self._say = say
        self._failed = failed
        self._came = came
        self._wanted: Local | None = None
        self._last_good: Local | None = None
        self._changed = asyncio.Event()
        self._met = asyncio.Event()
        self._is_late = asyncio.Event()
        self._over_tls = False
        self._needed: set[str] = set()
        self._may_be_read: set[str] = set()
        self._again_seconds = _AGAIN_SECONDS
        self._next_number = 0
        self._models: tuple[str, ...] = ()
        self._endpoints: tuple[EndpointSettings, ...] = ()
        self._gateway: Started | None = None
        self._engines: Started | None = None
        self._earlier_engines: list[Started] = []
        self._task = asyncio.create_task(self._run())

    def want(self, local: Local) -> None:
        """Have it so from now on; where there are problems it stays as it is, but for what a cluster would follow."""
        if local == self._wanted:
            return
        if self.failure is not None:
            self.failure = self.late = None
        self._wanted, self._again_seconds = local, _AGAIN_SECONDS
        if local.config is None:
            self._last_good = _following(self._last_good, local)
        elif local.idle is not None:
            self._last_good = _serving_nobody(self._last_good, local.idle)
        else:
            self._last_good = local
        with contextlib.suppress(OutputInvalid):  # which the task will meet, and tell
            self._have_the_gateway_follow()
        self._met.clear()
        self._changed.set()

    async def settled(self, *, or_late: bool) -> None:
        """Wait until it is as it was wanted last, or has failed; or, if so asked, until it is late."""
        ends = [asyncio.ensure_future(each.wait()) for each in (self._met, *([self._is_late] if or_late else []))]
        await asyncio.wait((*ends, self._task), return_when=asyncio.FIRST_COMPLETED)
        for each in ends:
            each.cancel()

    async def end(self) -> None:
        """Finish what waits and runs, then end everything."""
        self._task.cancel()
        await asyncio.wait((self._task,))
        await self._end()

    def hurry(self) -> None:
        """Wait no longer for what runs."""
        for started in self._all_started():
            started.hurry()

    async def _run(self) -> None:
        try:
            await self._keep_as_wanted()
        except Exception as fault:  # of this program, for failures are met there
            self._failed(fault)

    async def _keep_as_wanted(self) -> None:
        while True:
            try:
                await asyncio.wait_for(self._changed.wait(), None if self.failure is None else self._again_seconds)
            except TimeoutError:
                self._again_seconds = min(2 * self._again_seconds, _AGAIN_SECONDS_AT_MOST)
            self._changed.clear()
            wanted = self._wanted
            assert wanted is not None, "something was wanted"
            failure: LabError | None = None
            try:
                await self._meet(wanted if wanted.config is not None else self._last_good)
            except LabError as problem:
                failure = problem
            if wanted is self._wanted:
                self._be_done(failure)

    def _be_done(self, failure: LabError | None) -> None:
        """Have it known that it is as it was wanted, or what failed, which is told once."""
        before = self.late
        if failure is None:
            self.late = None
        elif self.failure is None or _problem(failure) != _problem(self.failure):
            self.late = f"this cannot be done yet, and is tried again: {failure}".rstrip()
        self.failure = failure
        self._is_late.clear()
        self._met.set()
        if self.late != before:
            self._came()

    async def _meet(self, local: Local | None) -> None:
        if local is None:
            return
        if local.idle is not None:
            if self._gateway is not None:
                self.served = None
                self._be_late(FINISHES)
            await self._end()
            self._files.forget_secrets()
        else:
            self._have_the_gateway_follow()
            if self._gateway is None:
                self._ports.see_that_they_are_free()
                self._see_that_the_certificate_can_be_used(local)
            await self._simulate(local)
            self._have_the_gateway_follow()
            if local is not self._last_good:  # what is so now comes first
                return
            if self._gateway is not None and self._over_tls != local.over_tls:
                self._see_that_the_certificate_can_be_used(local)
                self.served = None
                self._be_late(FINISHES)
                await self._gateway.end()
                self._gateway = None
            if self._gateway is None and local is self._last_good:
                self._write(local)
                await self._start_gateway(local)

    def _be_late(self, why: str) -> None:
        """Have nobody wait for what is done now, who has other pools to see to."""
        if self.failure is None:
            self.late = why
        self._is_late.set()

    def _see_that_the_certificate_can_be_used(self, local: Local) -> None:
        """Say it before anything is started or ended for a gateway that could not start."""
        if not local.over_tls:
            return
        self._files.write({name: local.files[name] for name in _PAIR})
        try:
            Certificate(*map(self._files.path, _PAIR))
        except CannotStart as problem:
            what = "the certificate that spec.gateway.tls names cannot be used"
            raise CertificateInvalid(f"{local.place}: {what}: {problem}") from None

    async def _simulate(self, local: Local) -> None:
        """Have the pool's endpoints. Requests go on in engines of other models, which end with the next change."""
        assert local.config is not None
        models = local.config.models
        if local.endpoints.given:
            self._endpoints = local.endpoints.given
        elif self._engines is None or _simulated(models) != _simulated(self._models):
            self._be_late(_STARTS_ENGINES)
            for earlier in self._earlier_engines:
                earlier.tell()
            numbers = range(self._next_number, self._next_number + local.endpoints.simulated)
            named = _simulated(models)
            engines = [
                programs.engine(f"simulated engine {n} of {local.key}", named, self._files.path(f"engine-{n}.log"))
                for n in numbers
            ]
            urls = [said[1] for said in await self._started_engines(engines)]
            self._next_number = numbers.stop
            self._endpoints = tuple(
                EndpointSettings(name=f"simulated-{n}", url=url) for n, url in zip(numbers, urls, strict=True)
            )
        self._models = models
        if self.served is not None:
            self.served = replace(self.served, simulated=_simulated(models))

    async def _started_engines(self, engines: list[Program]) -> list[re.Match[str]]:
        """Start engines in the place of those that there are, which go on for now; what each announced."""
        self._earlier_engines = [each for each in self._earlier_engines if not each.have_ended]
        before, self._engines = self._engines, Started(engines, self._failed)
        if before is not None:
            self._earlier_engines.append(before)
        try:
            return await self._engines.said()
        except LabError:
            self._engines = before
            if before is not None:
                self._earlier_engines.remove(before)
            raise

    def _have_the_gateway_follow(self) -> None:
        """Have in force at once what it can follow of what was wanted last, for the endpoints that there are."""
        if self._gateway is not None and self._last_good is not None:
            self._write(self._last_good)

    def _write(self, local: Local) -> None:
        """Everything that the gateway reads, its configuration after what that names, and then the keys to try with.

        What else came of Secrets goes: at once, or what a gateway may read once it has followed this.
        """
        assert local.config is not None
        config = local.config.model_copy(update={"models": self._models})
        written = dump(configured(config, self._endpoints, self._files.directory))
        credentials: dict[str, bytes] = {}
        for tenant in local.tenants:
            if tenant.credential:
                lines = "".join(f"{name}: {value}\n" for name, value in tenant.credential.items())
                credentials[headers(tenant.name)] = lines.encode()
            if tenant.key is not None:
                credentials[key(tenant.name)] = tenant.key.encode()
        self._files.write({**local.files, CONFIG: written.encode()})
        self._files.write(credentials)
        self._needed = {*local.files, *credentials}
        self._may_be_read.update(local.files)
        self._forget_secrets(is_followed=self._gateway is None)

    def _forget_secrets(self, *, is_followed: bool) -> None:
        """Remove what nobody needs any more of what came of Secrets."""
        if is_followed:
            self._may_be_read &= self._needed
        listens_with = _PAIR if self._gateway is not None and self._over_tls else ()
        self._files.forget_secrets(but=self._needed.union(self._may_be_read, listens_with))

    async def _start_gateway(self, local: Local) -> None:
        self._be_late(_STARTS)
        tls: tuple[str, ...] = ()
        if local.over_tls:
            certificate, certificate_key = (str(self._files.path(name)) for name in _PAIR)
            tls = ("--tls-certificate", certificate, "--tls-key", certificate_key)

        def heard(line: str) -> None:
            if found := _WORTH_TELLING.match(line):
                self._say(f"{local.key}: {found[1]}")
            elif _FOLLOWED.match(line):
                with contextlib.suppress(OutputInvalid):  # which the next edit meets, or the end tells
                    self._forget_secrets(is_followed=True)

        program = programs.gateway(
            f"the gateway of {local.key}",
            self._files.config,
            self._ports,
            self._files.path("gateway.log"),
            *tls,
            drain_seconds=self._drain_seconds,
            heard=heard,
        )
        self._over_tls, self._gateway = local.over_tls, Started([program], self._failed)
        try:
            [said] = await self._gateway.said()
        except LabError:
            self._gateway = None
            raise
        self.served = Served(said[1], said[2], _simulated(self._models))

    async def _end(self) -> None:
        for started in self._all_started():
            await started.end()
        self._gateway = self._engines = self.served = None
        self._earlier_engines.clear()

    def _all_started(self) -> list[Started]:
        """The gateway, which ends first, and the engines."""
        return [each for each in (self._gateway, self._engines, *self._earlier_engines) if each is not None]


def _problem(failure: LabError) -> str:
    """What failed, without the words of a program, which differ each time."""
    return failure.problem if isinstance(failure, ProcessFailed) else str(failure)


def _serving_nobody(local: Local | None, idle: str | None) -> Local | None:
    """What a gateway can follow that is to end or to wait, for a configuration without any tenant it would refuse."""
    if local is None or local.config is None:
        return None
    return replace(local, idle=idle, tenants=(), config=local.config.model_copy(update={"suspend": True}))


def _following(last_good: Local | None, local: Local) -> Local | None:
    """The last good decision, with what a later one with problems needs nothing missing for: tenants, keys, bounds."""
    if last_good is None or last_good.config is None or last_good.idle is not None or local.followed is None:
        return last_good
    if serves_nobody(local.followed) is not None:
        return _serving_nobody(last_good, None)
    before = last_good.config
    needs = {"endpoint_tls": before.endpoint_tls, "endpoint_credential": before.endpoint_credential}
    return replace(last_good, tenants=local.tenants, config=local.followed.model_copy(update=needs))


def _simulated(models: tuple[str, ...]) -> tuple[str, ...]:
    """The models of simulated engines, of a pool that names these."""
    return models or (programs.SIMULATED_MODEL,)
