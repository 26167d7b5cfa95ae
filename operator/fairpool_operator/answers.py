"""What the API server's answers mean: about what was sent, or about the server.

What always holds: an answer about what was sent is no reason to try nothing else, and one about the server is. A
webhook that is away is about what was sent, for it is asked about some things only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from fairpool_operator.errors import (
    ClusterError,
    ClusterUnavailable,
    Conflict,
    Forbidden,
    NotNow,
    NotThere,
    RejectedByServer,
)
from fairpool_operator.view import Object

_STORAGE: Final = ("etcdserver:", "rpc error:")
"""How the words begin that come from where the server keeps everything."""
_DENIAL: Final = re.compile(r"admission webhook \"|.*\bValidatingAdmissionPolicy '", re.DOTALL)
"""How a webhook, or a policy, denies something, by any status that it likes."""

_MEANINGS: Final[Mapping[int, type[ClusterError]]] = {
    403: Forbidden,
    404: NotThere,
    409: Conflict,
    **dict.fromkeys((401, 408, 425, 429, 503), ClusterUnavailable),
}


def checked(method: str, path: str, status: int, text: bytes) -> Object:
    """What the server answered.

    Raises:
        NotThere: 404.
        Conflict: 409.
        Forbidden: 403.
        RejectedByServer: another 4xx, or by admission: what was sent can never be accepted as it is.
        NotNow: 5xx in the API server's own words (of which a 504 has no kind), or admission's 429 or 5xx.
        ClusterUnavailable: no JSON, or what a proxy says; or 401, 408, 425, 429, 503 or etcd's words, which say nothing
            about what was sent.
    """
    try:
        answer: Object = json.loads(text)
    except ValueError:
        answer = {"message": text[:200].decode(errors="replace")}
        if 200 <= status < 300:
            raise ClusterUnavailable(f"{method} {path}: the answer is not JSON") from None
    if 200 <= status < 300:
        return answer
    words = str(answer.get("message", status))
    raise _meaning(status, words, is_servers=answer.get("status") == "Failure")(f"{method} {path}: {words}", words)


def _meaning(status: int, words: str, *, is_servers: bool) -> type[ClusterError]:
    if status != 403 and _DENIAL.match(words):
        return NotNow if status == 429 or status >= 500 else RejectedByServer
    if status in _MEANINGS:
        return _MEANINGS[status]
    if status >= 500 and is_servers and not words.startswith(_STORAGE):
        return NotNow
    return RejectedByServer if 400 <= status < 500 else ClusterUnavailable
