"""The credential that endpoints ask for, read where the configuration says it is.

It is read at the start, with each edit, and every few seconds, so that it can be replaced without a restart. What
always holds: no message holds it, and no other file's content.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from fairpool_gateway.config import CredentialSettings
from fairpool_gateway.errors import ConfigInvalid

_LONGEST: Final = 8192
_FIT_FOR_A_HEADER: Final = re.compile(rb"[\x21-\x7e]+")


def read_credential(place: CredentialSettings | None) -> bytes | None:
    """The credential, without space around it; None where endpoints ask for none.

    Raises:
        ConfigInvalid: it is not there, or cannot be sent in a header.
    """
    if place is None:
        return None
    if place.from_file is not None:
        where, found = "endpointCredential.fromFile", _in_file(place.from_file)
    else:
        assert place.from_environment is not None
        where, found = "endpointCredential.fromEnvironment", _in_environment(place.from_environment)
    credential = found.strip()
    if not credential:
        raise ConfigInvalid([f"{where}: there is nothing in it"])
    if len(credential) > _LONGEST or not _FIT_FOR_A_HEADER.fullmatch(credential):
        raise ConfigInvalid([f"{where}: what is in it is no credential: one line, without spaces, is needed"])
    return credential


def _in_file(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(_LONGEST + 1024)
    except OSError as error:
        raise ConfigInvalid([f"endpointCredential.fromFile: cannot be read: {error.strerror}"]) from None


def _in_environment(name: str) -> bytes:
    if name not in os.environ:
        raise ConfigInvalid(["endpointCredential.fromEnvironment: there is no such variable"])
    return os.environb[name.encode()]
