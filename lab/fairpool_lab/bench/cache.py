"""Where the project keeps what it built or installed for this machine: outside of any clone, and never in the image."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """Under XDG_CACHE_HOME, or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairpool"
