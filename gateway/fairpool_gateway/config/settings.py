"""The parts of a configuration. Field names are those of the custom resources: camelCase in files, snake_case here.

What always holds: an object of these classes is complete (defaults filled in) and immutable, and each of its fields
is right by itself. A part ignores fields that it does not know, so that an older gateway can read what a newer
operator wrote; `loading.load` can refuse them, for a person who may have mistyped one.
"""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from fairpool_gateway.config.names import (
    CaFile,
    Digest,
    EndpointUrl,
    FilePath,
    HeaderName,
    KeyName,
    LabelKey,
    LabelValue,
    Name,
    PortName,
    RequestPath,
    ResourceName,
    ServerName,
    TenantName,
    VariableName,
)
from fairpool_gateway.config.quantities import Bytes, Count, Instant, Seconds, Truth, whole_number
from fairpool_gateway.cost import CostModel, OutputEstimator
from fairpool_gateway.sfq import LEAST_WEIGHT, MOST_WEIGHT

Weight = Annotated[int, whole_number(LEAST_WEIGHT, MOST_WEIGHT)]
Slots = Annotated[int, whole_number(1, 10_000)]
PortNumber = Annotated[int, whole_number(1, 65_535)]
TokenWeight = Annotated[int, whole_number(0, 1000)]
ContextLength = Annotated[int, whole_number(1, 1_000_000_000)]

Overtaking = Literal["Refuse", "Allow"]
"""What becomes of requests that ask to pass others inside an engine, by `priority` or `background`."""


class Settings(BaseModel):
    """What all parts are."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        frozen=True,
        serialize_by_alias=True,
        validate_by_alias=True,
        validate_by_name=True,
    )


class KeySettings(Settings):
    """One key of a tenant, by the SHA-256 digest of its bytes, and the last instant at which it opens anything.

    The name is for people, to tell keys apart.
    """

    name: KeyName | None = None
    digest: Digest
    not_after: Instant | None = None


class OwnQueueSettings(Settings):
    """What one tenant may have waiting, where that differs from the pool's `queue.perTenant`."""

    max_requests: Count | None = None
    max_bytes: Bytes | None = None


class TenantSettings(Settings):
    """One tenant: its weight, or None for the pool's default, and its keys, several at once while they rotate."""

    name: TenantName
    weight: Weight | None = None
    keys: tuple[KeySettings, ...] = ()
    queue: OwnQueueSettings = OwnQueueSettings()
    suspend: Truth = False


class EndpointSettings(Settings):
    """One inference server at a fixed address, and its slots, or None for the pool's `slots.perEndpoint`.

    One that is to `drain` finishes what it runs and gets no more.
    """

    name: Name
    url: EndpointUrl
    slots: Slots | None = None
    drain: Truth = False

    @property
    def host(self) -> str:
        """The host to connect to; an IPv6 address without its brackets."""
        return self._host_and_port()[0]

    @property
    def port(self) -> int:
        """The port to connect to."""
        return self._host_and_port()[1]

    @property
    def over_tls(self) -> bool:
        """Whether it is reached over TLS."""
        return self.url.startswith("https:")

    def _host_and_port(self) -> tuple[str, int]:
        host, _, port = urlsplit(self.url).netloc.rpartition(":")
        return host.strip("[]"), int(port)


class EndpointTlsSettings(Settings):
    """How endpoints prove themselves over TLS: who vouches for them, and for which name.

    There is one name for all, for the addresses of endpoints come and go.
    """

    ca_file: CaFile
    server_name: ServerName


class RequirementSettings(Settings):
    """One of Kubernetes' `matchExpressions`: what the pods' label `key` has to be."""

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[LabelValue, ...] = ()


class SelectorSettings(Settings):
    """Which pods, by their labels, as in Kubernetes: all that is said has to hold."""

    match_labels: dict[LabelKey, LabelValue] = {}
    match_expressions: tuple[RequirementSettings, ...] = ()


class TargetPortSettings(Settings):
    """A port of a pod: its number, or the name that a container gives it."""

    number: PortNumber | None = None
    name: PortName | None = None


class AcceleratorSettings(Settings):
    """How a pod shows that accelerators were scheduled for it: a container asks for one of these, or it has a claim.

    With `Observe` nothing is asked of pods, and accelerators are only counted.
    """

    policy: Literal["Require", "Observe"] = "Require"
    resource_names: tuple[ResourceName, ...] = (
        "nvidia.com/gpu",
        "amd.com/gpu",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        "habana.ai/gaudi",
        "google.com/tpu",
        "aws.amazon.com/neuron",
    )


class DiscoverySettings(Settings):
    """Which pods of the gateway's namespace are endpoints: one for each of their target ports, over `tls` or not."""

    selector: SelectorSettings
    target_ports: tuple[TargetPortSettings, ...]
    accelerators: AcceleratorSettings = AcceleratorSettings()
    tls: Truth = False


class ProbeSettings(Settings):
    """How endpoints are asked whether they are well: where, how often, and how long an answer may take."""

    path: RequestPath = "/health"
    interval: Seconds = 5.0
    timeout: Seconds = 2.0


class SlotSettings(Settings):
    """How many requests an endpoint may have outstanding."""

    policy: Literal["Fixed"] = "Fixed"
    per_endpoint: Slots = 64


class TenantQueueSettings(Settings):
    """What each tenant may have waiting."""

    max_requests: Count = 512
    max_bytes: Bytes = 64 << 20


class QueueSettings(Settings):
    """What may wait in all, how large one request may be, and how long it may wait."""

    timeout: Seconds = 45.0
    max_request_bytes: Bytes = 32 << 20
    max_requests: Count = 4096
    max_bytes: Bytes = 256 << 20
    per_tenant: TenantQueueSettings = TenantQueueSettings()


class TimeoutSettings(Settings):
    """How long an endpoint may take: to connect, to the first byte of a stream or of another answer, between bytes."""

    connect: Seconds = 2.0
    first_byte: Seconds = 60.0
    first_byte_unary: Seconds = 600.0
    idle: Seconds = 60.0


class CostSettings(Settings):
    """What a token weighs, and how the length of an answer is estimated before it exists.

    `carry`: whether what a tenant's estimates were off by is in its next charges (`cost.carry`).
    """

    input_weight: TokenWeight = 1
    output_weight: TokenWeight = 2
    output_estimator: OutputEstimator = OutputEstimator.TENANT_AVERAGE
    context_length: ContextLength | None = None
    carry: bool = False

    def model(self) -> CostModel:
        """The same, as the estimator takes it."""
        return CostModel(
            self.input_weight, self.output_weight, self.output_estimator, self.context_length, carry=self.carry
        )


class CredentialSettings(Settings):
    """Where a credential is that has to be sent as it is: in a file or in an environment variable of the gateway.

    So it stands in no configuration and on no command line.
    """

    from_file: FilePath | None = None
    from_environment: VariableName | None = None


class ProxyCredentialSettings(Settings):
    """The credential by which a trusted proxy is known, by its SHA-256 digest, and while it changes the next one's."""

    digest: Digest
    next_digest: Digest | None = None

    def digests(self) -> set[str]:
        """All that are good."""
        return {self.digest} | ({self.next_digest} if self.next_digest else set())


class AuthenticationSettings(Settings):
    """How a request says whose it is: by a tenant's key, by the word of a trusted proxy, or not at all.

    A proxy names the tenant in `header`. Tenants that are not listed are refused, or admitted with the default weight;
    at most `max_tenants` of these are told apart at a time, and the others share one tenant.
    """

    type: Literal["APIKey", "TrustedHeader", "Anonymous"] = "APIKey"
    header: HeaderName | None = None
    proxy_credential: ProxyCredentialSettings | None = None
    unknown_tenants: Literal["Refuse", "Admit"] = "Refuse"
    max_tenants: Count = 10_000
