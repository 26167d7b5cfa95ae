"""What a report shows, as plain values: whoever has run something fills these in, and nothing here knows how it ran.

Times are seconds from the beginning of the run. The charts of a report's runs share their scales, so it should hold
runs of the same requests, or of the same pool.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Curve:
    """A value over time: from `times[k]` on it was `values[k]`; the times never go back."""

    times: tuple[float, ...] = ()
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Distances:
    """How far any tenant got ahead of another, in tokens per weight, against the bound of that pair at that time.

    Attributes:
        gap: the gap to look at: the greatest, or where a bound was exceeded the one that exceeds it most.
        bound: the bound of that same gap, at the same times.
        pairs: how many ordered pairs of tenants were ever compared.
        exceeded: how many of them exceeded their bound.
    """

    gap: Curve
    bound: Curve
    pairs: int
    exceeded: int


@dataclass(frozen=True, slots=True)
class TenantResult:
    """What one tenant got.

    Attributes:
        tenant: its name.
        weight: its weight at the end.
        requests: how many arrived.
        entitled_share: the part of all tokens given that was due to it while demand lasted.
        received_share: the part that it got.
        service: tokens per weight that it had got by then.
        waits: seconds from arrival to dispatch, of each request that was dispatched, in any order.
        first_tokens: seconds from arrival to the first token, where these are known.
        slowdowns: how many times longer answers took than in an idle engine, where that is known.
    """

    tenant: str
    weight: int
    requests: int
    entitled_share: float
    received_share: float
    service: Curve
    waits: tuple[float, ...]
    first_tokens: tuple[float, ...] = ()
    slowdowns: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """One policy on the report's requests.

    Attributes:
        policy: its name.
        source: where it is from, in a line; empty if there is nothing to say.
        seconds: how long the run took.
        until: when demand ended, which is where shares are compared: the last arrival.
        tenants: what each got.
        distances: how far tenants got ahead of each other.
        utilisation: the part of the engines' slots that were taken, from 0 to 1.
        figures: what is said of the run in numbers: a name, the same in every run, and the number in words.
    """

    policy: str
    source: str
    seconds: float
    until: float
    tenants: tuple[TenantResult, ...]
    distances: Distances
    utilisation: Curve
    figures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """Several policies side by side.

    Attributes:
        title: what was compared.
        about: how: a name and a value each, such as the trace, the engine, the seed and the command.
        runs: at least one.
    """

    title: str
    about: tuple[tuple[str, str], ...]
    runs: tuple[PolicyRun, ...]
