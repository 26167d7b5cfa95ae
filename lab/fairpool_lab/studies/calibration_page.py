"""The page of the study of calibration: its tables from the figures, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import mean, median
from typing import Final

from fairpool_lab.comparison.estimating import Foretold
from fairpool_lab.policies import POLICIES
from fairpool_lab.studies import calibration
from fairpool_lab.studies.calibration import Found
from fairpool_lab.studies.foretelling import DEFAULT, ORACLE, WAYS
from fairpool_lab.studies.study import Given, Listed, Made, Traces, Walk

NAME: Final = "calibration"

CARRYING: Final = f"{DEFAULT}, carry"


def page(found: Found) -> str:
    """The study's page, from its figures."""
    return _WORDS.format(
        requests=f"{found.requests:,}",
        files=" \\\n".join(f"  {name}" for name in dict.fromkeys(each.trace for each in found.foretold)),
        first=f"{calibration.FIRST:,}",
        slots=max(each.slots for each in found.foretold),
        foretold="\n".join(_of_ways(found)),
        without=f"{_mean_share_error(found, DEFAULT):.2%}",
        carried=f"{_mean_share_error(found, CARRYING):.2%}",
        by_slots="\n".join(_by_slots(found)),
        by_trace="\n".join(_by_trace(found)),
        of_ways="\n".join(_gains(found, [("sfq", way.name) for way in WAYS], lambda _, way: way)),
        of_orders="\n".join(_gains(found, [(name, DEFAULT) for name in POLICIES], lambda order, _: order)),
        strangers=", ".join(f"{part:+.0%} where {bound}" for bound, part in found.strangers.items()),
    )


def _make(given: Sequence[Given], walk: Walk) -> Made:
    found = calibration.study(given, walk)
    return Made(found, page(found))


LISTED: Final = Listed(NAME, "how well costs are foretold, and what tricks gain", Traces.SOME, _make)


def _of(found: Found, way: str, slots: int) -> list[Foretold]:
    return [each.how for each in found.foretold if (each.how.estimator, each.slots) == (way, slots)]


def _mean_share_error(found: Found, way: str) -> float:
    return mean(each.share_error for each in _of(found, way, max(each.slots for each in found.foretold)))


def _of_ways(found: Found) -> Iterable[str]:
    most = max(each.slots for each in found.foretold)
    for way in WAYS:
        told = _of(found, way.name, most)
        biases, off = [each.bias for each in told], [each.share_error for each in told]
        worst = max((each.worst_bias for each in told), key=abs)
        error = median(each.error for each in told)
        yield (
            f"| {way.name} | {_percent(min(biases))} … {_percent(max(biases))} | {error:.0%} "
            f"| {_percent(worst)} | {mean(off):.2%} | {max(off):.2%} |"
        )


def _by_slots(found: Found) -> Iterable[str]:
    slots = sorted({each.slots for each in found.foretold})
    yield f"| | {' | '.join(f'{number} slots' if number > 1 else '1 slot' for number in slots)} |"
    yield f"|---|{'--:|' * len(slots)}"
    for way in WAYS:
        means = (mean(each.share_error for each in _of(found, way.name, number)) for number in slots)
        yield f"| {way.name} | {' | '.join(f'{part:.2%}' for part in means)} |"


def _by_trace(found: Found) -> Iterable[str]:
    most = max(each.slots for each in found.foretold)
    shown = (DEFAULT, "MaxTokensRatio", CARRYING, "MaxTokensRatio, carry", ORACLE)
    yield f"| | {' | '.join(shown)} |"
    yield f"|---|{'--:|' * len(shown)}"
    for name in dict.fromkeys(each.trace for each in found.foretold):
        told = {each.how.estimator: each.how for each in found.foretold if (each.trace, each.slots) == (name, most)}
        yield f"| {name} | {' | '.join(f'{told[way].share_error:.2%}' for way in shown)} |"


def _gains(found: Found, rows: Sequence[tuple[str, str]], called: Callable[[str, str], str]) -> Iterable[str]:
    tricks = list(dict.fromkeys(each.trick for each in found.gains))
    gains = {(each.order, each.way, each.trick): each.gain for each in found.gains}
    yield f"| | {' | '.join(tricks)} |"
    yield f"|---|{'--:|' * len(tricks)}"
    for order, way in rows:
        yield f"| {called(order, way)} | {' | '.join(_percent(gains[order, way, trick]) for trick in tricks)} |"


def _percent(part: float) -> str:
    """So much in percent, of which nothing has no sign."""
    return f"{part:+.0%}" if round(100 * part) else "0%"


_WORDS: Final = """\
# Calibration

What a request will cost is not known when its charge is made. How well can it be foretold, what do errors do to shares,
and what can a tenant gain by making them?

```sh
fairpool lab study calibration --out docs/studies --trace \\
{files}
```

makes this page, in about two minutes of one core.

## How well costs are foretold

The first {first} requests of each trace ({requests} in all) are played on a server that gives two thirds of what is
asked for, in fair order. Traces that name no tenants are dealt to 20. No trace tells `max_tokens`, so tenants are given
one of three habits in turn: the least power of two that the answer fits, eight times that, and always 8,192. With
{slots} slots:

| | bias, by trace | error | worst bias of a tenant | share error, mean | share error, worst |
|---|--:|--:|--:|--:|--:|
{foretold}

*Bias* is by how much all charges exceed what was used; *error* the mean distance of a charge from it, as a part of the
mean cost, in the median of the traces; the *worst bias of a tenant* is that of any with 20 requests or more; the *share
error* is the greatest difference between the share of the work that a tenant received until the last arrival and the
one it was entitled to, as a part of all work.

`TenantAverage` and `MaxTokensRatio` are the gateway's; the latter is kept for each tenant, over about the last 50
requests. *Pool-wide* has one ratio for all, *per tenant* one for each over all its requests. *Carry* adds what earlier
charges of a tenant were off by to its next ones (the gateway's `cost.carry`). An *oracle* knows; what is left of
its share error is that requests cannot be divided.

The mean share error, by slots:

{by_slots}

The share error with {slots} slots, by trace:

{by_trace}

- A constant is far off, and so is a ratio that the whole pool shares: tenants' habits differ.
- With many requests in flight averages lag behind, and mostly charge too little. A faster rate than the gateway's 0.02
  is no worse here for shares: it follows tenants that change, as those of these traces do. But the fastest is the
  easiest to lead astray on purpose, as will be seen.
- `MaxTokensRatio` is closer than `TenantAverage`, with limits that were made from the answers. Of limits that people
  set it says nothing.
- Carry makes single charges worse and shares truer: what was wrong once is made good by the next request.

## What tricks gain

Four tenants ask for more than an A10G gives; one of them plays a trick. What it gets beyond its share, in percent of
it; -100 % is nothing at all. First in fair order, by what foretells costs:

{of_ways}

Then under every order, costs by `TenantAverage` where an order asks for them:

{of_orders}

| trick | |
|---|---|
| none | eight requests outstanding, of 100 tokens and answers of 100, as the others have; all set `max_tokens` to 128 |
| a million | the same, with `max_tokens` of a million; the pool is told no context length, which would cap it |
| split | the same work in ten times as many requests of a tenth |
| padded | prompts eight times as long |
| mixed | answers of 4 and of 400 tokens, drawn by chance |
| mixed by turns | ten seconds of the short ones, ten of the long ones |
| cancelled | answers of 400 tokens, all cancelled at the 390th |
| mixed, the long cancelled | one client takes answers of 4 tokens to their end, seven cancel 400 at the 390th |
| 1,000 identities | a thousand names with a client each |
| leave and return | ten seconds there, ten away; only the time in which it asks counts |
| one at a time | on one slot, large requests one by one; the other tenant's two clients pause for 50 ms each |
| cancel and resubmit | the same, cancelled and sent again every 20 ms while it waits |

- Splitting, padding, leaving and returning, and cancelling what waits gain nothing in fair order. Orders that count
  requests pay for large ones. VTC lets who comes one at a time have far more than half.
- **Cancelling what runs pays.** A cancelled request teaches nothing, so a tenant that takes 390 of 400 tokens and
  leaves is charged for ever by what the pool's answers are like: it gets twice its share, and more if a few short
  answers tell the estimator that all of its are short. A ratio kept for each tenant stops the first and not the second.
  Carry stops both, for what was seen of a cancelled request is owed; but only if what cancelled requests used counts
  for the most that it charges at once (`tests/lab/proof/test_tricks.py` has the other way as a control).
- Changing by turns gains some by whatever is learned of each tenant, and nothing with carry.
- A `max_tokens` of a million harms who sets it: the first charges are by what others use of theirs.
- Under every order a thousand names take all. In a pool with API keys a name is a TenantWeight, which no tenant makes
  by itself. Behind a proxy `maxTenants` bounds them. Beside three tenants with weights of their own they gain
  {strangers} of them are told apart.

## What follows

**The default stays `TenantAverage`.** `MaxTokensRatio` leaves shares truer here, with limits that this study made up,
and a tenant that sets a limit it never uses loses by it. Who knows that the tenants' limits mean something may choose
it.

**Carry should be on.** With it the mean share error of `TenantAverage` falls from {without} to {carried} with {slots}
slots, and of all that is learned of each tenant only what is carried leaves nothing to gain by cancelling. Its price: a
request may be charged for more than it will cost, at most by the greatest that the tenant ever used or by as much again
as was estimated, and the bound on the gap, which is in charges, grows with the charges. The gateway's
`cost.carry` turns it on; it is off by default in this release.

What is not here: padding that costs bytes and no tokens, and text of other languages (a simulated prompt has four bytes
a token); images; limits that people set. Runs are short, {first} requests and 240 seconds, and begin with estimators
that have learned nothing.
"""
