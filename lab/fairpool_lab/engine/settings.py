"""All that one engine is told at its start, in one value that the command line and the tests build alike."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairpool_lab.engine.batching import Limits
from fairpool_lab.engine.faults import Fault
from fairpool_lab.engine.tokens import Language
from fairpool_lab.errors import SettingsInvalid


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How to run one engine.

    Attributes:
        models: the names it answers to; the first is the one it calls itself.
        host: where it listens; loopback unless told otherwise.
        port: 0 lets the kernel choose.
        speed: simulated seconds per real second.
        tokens_per_event: how many tokens a stream gathers before it sends an event.
        limits: the model of the GPU.
        language: how it counts and speaks; holds the seed.
        max_num_queued_reqs: how many requests may wait inside before others get a 503; None for any number.
        api_key: the key without which /v1 answers 401; None for none.
        keep_alive: seconds after which an idle connection is closed.
        fault: what goes wrong from the start.
    """

    models: tuple[str, ...] = ("sim",)
    host: str = "127.0.0.1"
    port: int = 0
    speed: float = 1.0
    tokens_per_event: int = 1
    limits: Limits = field(default_factory=Limits)
    language: Language = field(default_factory=Language)
    max_num_queued_reqs: int | None = None
    api_key: str | None = None
    keep_alive: int = 5
    fault: Fault | None = None

    def __post_init__(self) -> None:
        if not self.models:
            raise SettingsInvalid("an engine serves at least one model")
        if not self.speed > 0:
            raise SettingsInvalid(f"speed must be positive, not {self.speed}")
        if self.tokens_per_event < 1:
            raise SettingsInvalid(f"tokens_per_event must be at least 1, not {self.tokens_per_event}")
