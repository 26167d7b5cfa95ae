"""The keys of one TenantWeight: which are good, and what is wrong with the others.

What always holds: a key is one tenant's only, and whose TenantWeight comes first keeps it; one bad key takes no other
with it; a key that ended stays in the configuration, where its end is, so that time alone never changes what gateways
get.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fairpool_gateway.config import KeySettings
from fairpool_gateway.config.quantities import format_instant
from fairpool_operator.compile.references import fit_for, value_of
from fairpool_operator.errors import Invalid, KeyNotUnique, KeysEnded, ReferenceRefused, Refused
from fairpool_operator.resources import ApiKey, TenantWeight
from fairpool_operator.view import KEYS, View


@dataclass(frozen=True, slots=True)
class Keys:
    """What a TenantWeight's keys came to.

    Attributes:
        settings: those that the configuration gets, in order of their names.
        problems: what is wrong with the others, or with all.
        ended: the names of those that ended.
        next_end: when the next of them ends.
    """

    settings: tuple[KeySettings, ...] = ()
    problems: tuple[Refused, ...] = ()
    ended: tuple[str, ...] = ()
    next_end: datetime | None = None


NO_KEYS: Final = Keys()


def keys_of(weight: TenantWeight, view: View, taken: Mapping[str, str], now: datetime) -> Keys:
    """The keys of a TenantWeight; `taken` says whose each digest is already."""
    settings: list[KeySettings] = []
    problems: list[Refused] = []
    for number, key in sorted(enumerate(weight.spec.api_keys), key=lambda each: each[1].name):
        source = "secretKeyRef" if key.digest is None else "digest"
        try:
            digest = _digest(weight, key, view)
            if digest in taken:
                raise KeyNotUnique(
                    f"Key {key.name} is also TenantWeight {taken[digest]}'s, which keeps it, being older or of the "
                    "pool's own namespace. Remove it here, and give this tenant a key of its own."
                )
            end = key.not_after and format_instant(key.not_after)
            settings.append(KeySettings(name=key.name, digest=digest, not_after=end))
        except Refused as problem:
            problems.append(problem.at("apiKeys", number, source))
    ends = [(each.not_after, each.name or "") for each in settings if each.not_after is not None]
    ended = tuple(name for end, name in ends if end <= now)
    if ended and len(ended) == len(settings) and not problems:
        told = f"Every key has ended ({', '.join(ended)}). Add one that is good, or a later notAfter."
        problems.append(KeysEnded(told, "apiKeys"))
    return Keys(tuple(settings), tuple(problems), ended, min((end for end, _ in ends if end > now), default=None))


def _digest(weight: TenantWeight, key: ApiKey, view: View) -> str:
    if key.digest is not None:
        return key.digest
    reference = key.secret_key_ref
    if reference is None:
        raise Invalid(f"Key {key.name} has neither secretKeyRef nor digest. Give one of the two.")
    namespace = weight.metadata.namespace
    try:
        value = value_of(view, namespace, reference.name, reference.key, KEYS, "secretKeyRef.key")
        fit_for(value, f"Secret {namespace}/{reference.name}, key {reference.key}")
    except ReferenceRefused as problem:
        raise type(problem)(f"Key {key.name}: {problem}") from None
    assert value.digest is not None
    return value.digest
