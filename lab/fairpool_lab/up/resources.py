"""The resources in force: what the files hold or, of what cannot be used, what they held last.

A cluster has an API server that refuses what is wrong, and keeps what was there before. What always holds here: the
same; a resource goes only when it is in no file any more and nothing in the files may be that resource under a name, or
of a kind, that cannot be told; what stays for that is said; and whoever was there first is the older one, as in a
cluster, whatever is edited.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from fairpool_lab.up.admission import judge
from fairpool_operator.manifests import Document, Manifests, Problem, Steps
from fairpool_operator.store import Store
from fairpool_operator.validate.kinds import API_VERSIONS, mistake
from fairpool_operator.validate.metadata import new_name
from fairpool_operator.validate.secrets import values_of
from fairpool_operator.view import LABEL

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MOST_NAMED: Final = 3


class Identity(NamedTuple):
    """What tells resources apart."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"


@dataclass(frozen=True, slots=True)
class Held:
    """A resource in force: where it stands, as it is stored, and its place in the order of age."""

    document: Document
    stored: Mapping[str, Any]
    age: int


class Resources:
    """Follows the files from one reading to the next.

    Attributes:
        others: how many resources of other kinds the last reading had.
    """

    def __init__(self, namespace: str = "default") -> None:
        self.others = 0
        self._namespace = namespace
        self._held: dict[Identity, Held] = {}
        self._next_age = 0
        self._numbers = count(1)
        self._generated: dict[tuple[Identity, Path, int], Identity] = {}

    def take(self, manifests: Manifests) -> tuple[Problem, ...]:
        """Have what was read in force, as far as it can be used; returns what cannot."""
        self.others = sum(not _is_known(each) for each in manifests.documents)
        untold = [*manifests.problems, *filter(None, map(_mistaken, manifests.documents))]
        twice: list[Problem] = []
        found: dict[Identity, Held] = {}
        refused: list[tuple[Identity, Problem]] = []
        named = {self._written(each) for each in manifests.documents if _is_named(each)}
        for document, nth in _counted(manifests.documents):
            if not _is_looked_at(document):
                continue
            identity = self._identity(document, nth, named)
            before = self._held.get(identity)
            written = self._with_namespace(document.object, identity)
            verdict = judge(written, before.stored if before and _is_named(document) else None)
            if verdict.causes:
                refused += [(identity, _refused(document, identity, *cause)) for cause in verdict.causes]
            elif identity in found:
                first = found[identity].document
                again = f"{identity} is in {first.file}:{first.line()} already, which counts: remove one of the two"
                twice.append(Problem(document.file, document.line(), again))
            else:
                found[identity] = Held(document, verdict.stored, before.age if before else self._age())
        bad = {identity for identity, _ in refused}
        kept = self._kept(bad, bool(untold), found)
        self._held = found | kept
        marked = (_marked(problem) if identity in kept else problem for identity, problem in refused)
        unsure = [(identity.kind, problem) for identity, problem in refused if identity not in kept]
        return (*untold, *twice, *marked, *_staying(sorted(kept.keys() - bad), untold, unsure))

    def store(self) -> Store:
        """The same, as the operator knows a cluster."""
        store = Store()
        for identity, held in self._held.items():
            store.put(identity.kind, _as_in_a_cluster(identity, held))
        labels: dict[str, dict[str, str]] = {identity.namespace: {} for identity in self._held if identity.namespace}
        labels |= {
            identity.name: dict(held.stored["metadata"].get("labels") or {})
            for identity, held in self._held.items()
            if identity.kind == "Namespace"
        }
        for name, own in labels.items():
            named = {**own, "kubernetes.io/metadata.name": name}
            store.put("Namespace", {"metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": named}})
        return store

    def place(self, kind: str, namespace: str, name: str, field: Steps = ()) -> str:
        """Where a resource stands, or a field of it: the file and the line."""
        document = self._held[Identity(kind, namespace, name)].document
        return f"{document.file}:{document.line(field)}"

    def value(self, namespace: str, name: str, key: str) -> bytes:
        """A value of a Secret, space around it left out; empty if there is none."""
        held = self._held.get(Identity("Secret", namespace, name))
        return b"" if held is None else values_of(held.stored).get(key, b"").strip()

    def _written(self, document: Document) -> Identity:
        """What it is called in its file; one without a name has none."""
        fields = _metadata(document)
        namespace = "" if document.kind == "Namespace" else str(fields.get("namespace") or self._namespace)
        return Identity(document.kind, namespace, str(fields.get("name") or ""))

    def _identity(self, document: Document, nth: int, named: Collection[Identity]) -> Identity:
        """What it is; one without a name has one of its `generateName`, by its file and its place there.

        So none becomes another while a file before it cannot be read. No other has that name, of `named` none either.
        """
        identity = self._written(document)
        beginning = _metadata(document).get("generateName")
        if identity.name or not isinstance(beginning, str) or not beginning:
            return identity
        place = identity._replace(name=beginning), document.file, nth
        if place not in self._generated or self._generated[place] in named:
            name = new_name(
                _metadata(document),
                self._numbers,
                lambda name: any(identity._replace(name=name) in each for each in (named, self._held)),
            )
            self._generated[place] = identity._replace(name=name)
        return self._generated[place]

    def _with_namespace(self, object_: Mapping[str, Any], identity: Identity) -> dict[str, Any]:
        metadata = {} if object_.get("metadata") is None else object_["metadata"]
        if not isinstance(metadata, dict) or metadata.get("namespace") not in (None, "") or not identity.namespace:
            return dict(object_)
        return {**object_, "metadata": {**metadata, "namespace": identity.namespace}}

    def _kept(self, refused: set[Identity], some_untold: bool, found: Collection[Identity]) -> dict[Identity, Held]:
        """What stays as it was: what is refused now, and what something in the files may be instead of what it says.

        What cannot be read, or is of no kind, may be anything; what is refused under a name that is nothing's, or
        something else's, may be anything of its kind.
        """
        missing = {identity: held for identity, held in self._held.items() if identity not in found}
        unsure = {identity.kind for identity in refused if identity not in missing}
        return {
            identity: held
            for identity, held in missing.items()
            if some_untold or identity.kind in unsure or identity in refused
        }

    def _age(self) -> int:
        self._next_age += 1
        return self._next_age


def _is_named(document: Document) -> bool:
    """Whether it can be edited: what has no name of its own is made anew in a cluster."""
    return bool(_metadata(document).get("name"))


def _metadata(document: Document) -> Mapping[str, Any]:
    metadata = document.object.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _counted(documents: Sequence[Document]) -> Iterator[tuple[Document, int]]:
    """Each with how many there are before it in its file that have the same `generateName`, of whatever kind."""
    before: Counter[tuple[Path, str]] = Counter()
    for document in documents:
        alike = document.file, str(_metadata(document).get("generateName"))
        yield document, before[alike]
        before[alike] += 1


def _is_known(document: Document) -> bool:
    return document.api_version == API_VERSIONS.get(document.kind)


def _is_looked_at(document: Document) -> bool:
    """Whether it counts; a Secret does with its label alone, as in a cluster, or where nobody can say if it has it."""
    if document.kind != "Secret" or not _is_known(document):
        return _is_known(document)
    metadata = document.object.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else metadata
    return LABEL in labels if isinstance(labels, dict) else labels is not None


def _mistaken(document: Document) -> Problem | None:
    if (found := mistake(document)) is None:
        return None
    field, why = found
    return Problem(document.file, document.line(field), why)


def _refused(document: Document, identity: Identity, path: Steps, why: str) -> Problem:
    named = identity if identity.name else identity.kind
    return Problem(document.file, document.line(path), f"{named}: {why}")


def _marked(problem: Problem) -> Problem:
    return Problem(problem.file, problem.line, f"{problem.message} (its last good edition stays in force)")


def _staying(
    identities: Sequence[Identity], untold: Sequence[Problem], unsure: Sequence[tuple[str, Problem]]
) -> Iterator[Problem]:
    """What is told of resources that are not found in the files, and stay for what there is, of each kind together.

    Args:
        identities: those that stay, in order.
        untold: what may be anything.
        unsure: what may be anything of its kind.
    """
    for kind in dict.fromkeys(each.kind for each in identities):
        alike = [each for each in identities if each.kind == kind]
        because = (*untold, *(problem for of, problem in unsure if of == kind))
        for first in because[:1]:
            yield Problem(first.file, first.line, _until_corrected(alike))


def _until_corrected(identities: Sequence[Identity]) -> str:
    number = "1 resource that is found in no file stays"
    if len(identities) > 1:
        number = f"{len(identities)} resources that are found in no file stay"
    named = ", ".join(map(str, identities[:_MOST_NAMED]))
    more = f" and {len(identities) - _MOST_NAMED} more" if len(identities) > _MOST_NAMED else ""
    return f"{number} until this is corrected: {named}{more}"


def _as_in_a_cluster(identity: Identity, held: Held) -> dict[str, Any]:
    """With what the server would add: who it is, and since when."""
    metadata = held.stored["metadata"]
    resource = {
        **held.stored,
        "metadata": {
            "name": identity.name,
            "namespace": identity.namespace,
            "labels": dict(metadata.get("labels") or {}),
            "uid": f"{identity}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": (_EPOCH + timedelta(seconds=held.age)).isoformat(),
        },
    }
    if identity.kind == "Secret":
        resource["data"] = {key: base64.b64encode(value).decode() for key, value in values_of(held.stored).items()}
        resource.pop("stringData", None)
    return resource
