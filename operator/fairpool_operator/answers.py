"""What the API server's answers mean: about what was sent, or about the server.

What always holds: an answer about what was sent is no reason to try nothing else, and one about the server is. A
webhook that is away is about what was sent, for it is asked about some things only.
"""

from __future__ import annotations

import json
from typing import Final

from fairpool_operator.errors import ClusterUnavailable, Conflict, Forbidden, NotNow, NotThere, RejectedByServer
from fairpool_operator.view import Object

_STORAGE: Final = "etcdserver:"
"""How the words begin that come from where the server keeps everything."""


def checked(method: str, path: str, status: int, text: bytes) -> Object:
    """What the server answered.

    Raises:
        NotThere: 404.
        Conflict: 409.
        Forbidden: 403.
        RejectedByServer: another 4xx: what was sent can never be accepted as it is.
        NotNow: 5xx in the API server's own words (of which a 504 has no kind).
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
    said = f"{method} {path}: {words}"
    match status:
        case 404:
            raise NotThere(said, words)
        case 409:
            raise Conflict(said, words)
        case 403:
            raise Forbidden(said, words)
        case 401 | 408 | 425 | 429 | 503:
            raise ClusterUnavailable(said, words)
        case _ if status >= 500 and answer.get("status") == "Failure" and not words.startswith(_STORAGE):
            raise NotNow(said, words)
        case _ if 400 <= status < 500:
            raise RejectedByServer(said, words)
        case _:
            raise ClusterUnavailable(said, words)
