"""How much of the answers may wait here for readers that are slower than their endpoints.

An endpoint's slot is worth more than memory: an answer that fits is read to its end at the endpoint's own pace, so
that the slot comes free, however slowly its tenant takes it. Memory is bounded all the same, for each answer and
for all of them, and beyond that the endpoint is held back.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Final

HIGH_WATER: Final = 1 << 20
"""Bytes of one answer that may wait; one segment may come on top."""

MOST_IN_ALL: Final = 64 << 20
"""Bytes of all answers that may wait, but for `ALWAYS` of each."""

ALWAYS: Final = 64 << 10
"""Bytes of one answer that may wait however much others hold, so that none of them stands still."""

_IN_THE_KERNEL: Final = 64 << 10
"""Bytes, and so what a read of the socket brings at most. The kernel doubles it, for what it needs beside them."""


def hold_little(transport: asyncio.BaseTransport) -> None:
    """Have the kernel hold little of what an endpoint sends and nobody reads yet.

    Left to itself it holds up to 32 MiB for each connection, and with a thousand tenants that do not read it runs out
    of memory for the connections of the whole machine. An endpoint is near, where this is enough for full speed.
    """
    connected: socket.socket = transport.get_extra_info("socket")
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _IN_THE_KERNEL)


class Buffers:
    """What waits of all answers of one client; `held` counts its bytes."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = 0

    def have_room(self, held: int) -> bool:
        """Whether an answer of which so many bytes wait may go on."""
        return held <= ALWAYS or (held <= HIGH_WATER and self.held <= MOST_IN_ALL)
