"""The verdict on all resources of some files: what the API server says of each, and then the operator of all together.

What always holds: a resource that the server would refuse is in nobody's way, it is as if it were not there; what only
another repository or the cluster can show is a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import count
from typing import Any

from fairpool_operator.compile import Refusal, Settings, compile_pool
from fairpool_operator.errors import NotAllowed, PoolNotFound, SecretNotFound
from fairpool_operator.manifests import Document, Manifests, Steps
from fairpool_operator.validate.causes import rendered
from fairpool_operator.validate.findings import Finding, Report, Severity
from fairpool_operator.validate.kinds import is_in_a_namespace, is_ours, mistake
from fairpool_operator.validate.metadata import name_of, new_name
from fairpool_operator.validate.server import check
from fairpool_operator.validate.surroundings import Surroundings
from fairpool_operator.view import LABEL, PoolKey, View

_Known = tuple[str, str, str]
"""A kind, a namespace and a name."""


def validate(manifests: Manifests, namespace: str, now: datetime) -> Report:
    """What is to be said of files; resources that name no namespace are in `namespace`."""
    return _Validation(namespace).report(manifests, now)


class _Validation:
    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._around = Surroundings()
        self._found: list[Finding] = []
        self._documents: dict[_Known, Document] = {}
        self._refused_secrets: set[_Known] = set()
        self._named: set[_Known] = set()
        self._numbers = count(1)

    def report(self, manifests: Manifests, now: datetime) -> Report:
        self._found += [
            Finding(each.file, each.line, Severity.ERROR, "", "", "", "", each.message) for each in manifests.problems
        ]
        self._named = {_known(each.kind, self._with_namespace(each.object)) for each in manifests.documents}
        others = 0
        for document in manifests.documents:
            others += not is_ours(document)
            if (mistaken := mistake(document)) is not None:
                self._tell(document, Severity.ERROR, *mistaken)
            elif is_ours(document):
                self._resource(document)
            else:
                self._other(document)
        for view in self._around.views():
            self._unread(view)
            for refusal in compile_pool(view, Settings(gateway_image=""), now).refusals:
                self._refused(refusal, view)
        order = {file: number for number, file in enumerate(manifests.files)}
        found = sorted(dict.fromkeys(self._found), key=lambda each: (order[each.file], each.line))
        return Report(tuple(found), len(manifests.files), len(manifests.documents) - others, others)

    def _other(self, document: Document) -> None:
        if (document.api_version, document.kind) == ("v1", "Secret"):
            secret = self._with_namespace(document.object)
            for cause in self._around.add_secret(secret):
                self._tell(document, Severity.ERROR, cause.path, cause.message, cause.place)
                self._refused_secrets.add(_known("Secret", secret))
            self._once(document, secret)
        elif (document.api_version, document.kind) == ("v1", "Namespace"):
            self._around.add_namespace(document.object)
            self._once(document, document.object)

    def _resource(self, document: Document) -> None:
        resource = self._with_namespace(document.object)
        causes, stored = check(resource)
        for cause in causes:
            self._tell(document, Severity.ERROR, cause.path, cause.message)
        if causes:
            if document.kind == "FairPool":
                self._around.unusable_pools.add(PoolKey(*_known(document.kind, resource)[1:]))
            return
        if not _is_named(resource):
            stored["metadata"]["name"] = new_name(
                resource["metadata"],
                self._numbers,
                lambda name: (document.kind, resource["metadata"]["namespace"], name) in self._named,
            )
        self._once(document, stored)
        self._around.add(stored)

    def _once(self, document: Document, resource: Mapping[str, Any]) -> None:
        """Know where a resource is, and tell of one that is elsewhere too, under a name of its own."""
        if not _is_named(resource):
            return
        known = _known(document.kind, resource)
        if known in self._documents:
            before = self._documents[known]
            place = f"{before.file}:{before.line()}"
            self._tell(document, Severity.WARNING, (), f"is at {place} too: whichever is applied last counts")
        self._documents[known] = document

    def _with_namespace(self, resource: Mapping[str, Any]) -> Mapping[str, Any]:
        metadata = resource.get("metadata")
        if metadata is None or (isinstance(metadata, dict) and not metadata.get("namespace")):
            return {**resource, "metadata": {**(metadata or {}), "namespace": self._namespace}}
        return resource

    def _refused(self, refusal: Refusal, view: View) -> None:
        metadata, problem = refusal.metadata, refusal.problem
        document = self._documents[refusal.kind, metadata.namespace, metadata.name]
        if unseen := self._unseen(document, refusal, view):
            self._tell(document, Severity.WARNING, problem.field, unseen)
        else:
            self._tell(document, Severity.ERROR, problem.field, self._why_not_there(document, refusal) or str(problem))

    def _unread(self, view: View) -> None:
        """Tell of what the server would store and the operator could not read."""
        found = [("TenantWeight", each) for each in view.unread_weights]
        if view.unread_pool is not None:
            found.append(("FairPool", view.unread_pool))
        for kind, unread in found:
            document = self._documents[kind, unread.metadata.namespace, unread.metadata.name]
            self._tell(document, Severity.ERROR, ("spec",), unread.problem)

    def _unseen(self, document: Document, refusal: Refusal, view: View) -> str:
        """What these files do not show, so that the operator may say otherwise; empty where they show enough."""
        problem, namespace = refusal.problem, refusal.metadata.namespace
        missing = "is in none of these files"
        if isinstance(problem, PoolNotFound):
            return f"FairPool {view.key} {missing}: whether it takes this tenant is not checked"
        if isinstance(problem, NotAllowed) and namespace not in view.namespaces and _selects_namespaces(view):
            return f"Namespace {namespace} {missing}: whether the pool chooses it by its labels is not checked"
        if isinstance(problem, SecretNotFound):
            name = _value(document.object, (*problem.field, "name"))
            if (namespace, name) not in self._around.secrets:
                checked = f"its label {LABEL} and what it holds are not checked"
                return f"Secret {namespace}/{name} {missing}, or encrypted there: {checked}"
        return ""

    def _why_not_there(self, document: Document, refusal: Refusal) -> str:
        """That a Secret is in these files and would be refused itself; empty where something else is the problem."""
        problem, namespace = refusal.problem, refusal.metadata.namespace
        if not isinstance(problem, SecretNotFound):
            return ""
        known = "Secret", namespace, _value(document.object, (*problem.field, "name"))
        if known not in self._refused_secrets:
            return ""
        secret = self._documents[known]
        return f"Secret {namespace}/{known[2]} would be refused itself: mend it first, at {secret.file}:{secret.line()}"

    def _tell(
        self, document: Document, severity: Severity, path: Steps, message: str, written: Steps | None = None
    ) -> None:
        _, namespace, name = _known(document.kind, self._with_namespace(document.object))
        line = document.line(path if written is None else written)
        self._found.append(
            Finding(document.file, line, severity, document.kind, namespace, name, rendered(path), message)
        )


def _known(kind: str, resource: Mapping[str, Any]) -> _Known:
    metadata = resource.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    name = name_of(fields) if all(isinstance(fields.get(each, ""), str) for each in ("name", "generateName")) else ""
    return kind, str(fields.get("namespace") or "") if is_in_a_namespace(kind) else "", name


def _is_named(resource: Mapping[str, Any]) -> bool:
    metadata = resource.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("name"))


def _selects_namespaces(view: View) -> bool:
    return view.pool is not None and view.pool.spec.allowed_tenants.namespaces.from_ == "Selector"


def _value(value: Any, path: Steps) -> Any:
    for step in path:
        value = value[step]
    return value
