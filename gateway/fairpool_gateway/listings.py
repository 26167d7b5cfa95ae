"""Asks endpoints which models they serve, so that none gets requests that it would refuse.

What counts is an answer: the list, or that there is none. Where there is no answer, or one that says that the endpoint
cannot or may not tell at the moment, it is believed to serve what it said last.
"""

from __future__ import annotations

import logging
from typing import Final

import httpx

from fairpool_gateway.asking import Asker, Question
from fairpool_gateway.models import read_list

log = logging.getLogger(__name__)

PATH: Final = "/v1/models"
_MOST_BYTES: Final = 4 << 20
_SELDOM: Final = 30.0
"""Seconds between questions to an endpoint whose answer is known and good."""
_NO_SUCH_LIST: Final = frozenset({404, 405, 501})


class Lister(Asker):
    """Asks each endpoint for its models: as often as it is probed, or seldom once it has told and may take part."""

    async def _ask(self, question: Question) -> float:
        endpoint, interval = question.endpoint, question.settings.interval
        try:
            status, body = await question.put(PATH, most=_MOST_BYTES)
        except httpx.TransportError:
            status, body = 0, b""
        models = endpoint.models
        if status == 200:
            models = read_list(body)
        elif status in _NO_SUCH_LIST:
            models = None
        self._broker.listed(endpoint, models)
        wanting = endpoint.wanting
        if wanting != question.told:
            _tell(endpoint.spec.id, wanting)
        question.told = wanting
        told = status == 200 or status in _NO_SUCH_LIST
        return max(interval, _SELDOM) if told and wanting is None else interval


def _tell(name: str, wanting: str | None) -> None:
    if wanting is None:
        log.info("endpoint %s serves the pool's models now", name, extra={"endpoint": name})
    else:
        log.warning("endpoint %s gets no slot: it %s", name, wanting, extra={"endpoint": name})
