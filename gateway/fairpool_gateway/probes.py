"""Asks endpoints whether they are well, so that a sick one is found before a tenant's request finds it.

Any answer will do but 502, 503 and 504: a server without that path is alive, and llama.cpp says 503 while it loads. No
connection, or one that breaks before an answer, is as bad as these. Silence tells nothing, for an engine with much to
do may be slow to say so; the log tells of it.

"""

from __future__ import annotations

import logging

import httpx

from fairpool_gateway.asking import Asker, Question
from fairpool_gateway.endpoints import Endpoint
from fairpool_gateway.health import SUSPICIOUS

log = logging.getLogger(__name__)


class Prober(Asker):
    """Probes each endpoint once in an interval, and tells of what has changed."""

    async def _ask(self, question: Question) -> float:
        problem = await self._probe(question)
        if problem != question.told:
            _tell(question.endpoint, problem)
        question.told = problem
        return question.settings.interval

    async def _probe(self, question: Question) -> str | None:
        """Put the question, and have the answer heeded; returns what is wrong, or None."""
        try:
            status, _ = await question.put(question.settings.path)
        except httpx.ReadTimeout:
            return f"no answer within {question.settings.timeout:g} s"
        except httpx.TransportError as error:
            self._broker.probed(question.endpoint, None)
            return str(error)
        self._broker.probed(question.endpoint, status)
        return f"it answers {status}" if status in SUSPICIOUS else None


def _tell(endpoint: Endpoint, problem: str | None) -> None:
    name = endpoint.spec.id
    if problem is None:
        log.info("endpoint %s answers its probe again", name, extra={"endpoint": name})
    else:
        log.warning("endpoint %s fails its probe: %s", name, problem, extra={"endpoint": name})
