"""A release after this one, made of this one's sources by a few edits, as releases are.

Its operator writes more than this release knows, on the gateway's command line (an option, and a value of another) and
in its configuration, and its gateway knows all of it. So what an upgrade lets meet is code of two ages, not one code
under two names.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

FIELD: Final = "ofTheNextRelease"
"""What its configuration has and this one's has not."""

OPTION: Final = "--of-the-next-release"
"""What its operator writes on the gateway's command line, with a value."""

VALUE: Final = "of-the-next-release"
"""What its operator writes there for `--log-format`."""

_PROGRAMS: Final = ("gateway/fairpool_gateway", "operator/fairpool_operator")
_EDITS: Final = (
    (
        "fairpool_operator/compile/objects/deployment.py",
        '"--log-format": "json",\n',
        f'"--log-format": "{VALUE}",\n        "{OPTION}": "some-value",\n',
    ),
    (
        "fairpool_gateway/main.py",
        '    parser.add_argument("--decision-log"',
        f'    parser.add_argument("{OPTION}")\n    parser.add_argument("--decision-log"',
    ),
    (
        "fairpool_gateway/main.py",
        '"--log-format", choices=("text", "json")',
        f'"--log-format", choices=("text", "json", "{VALUE}")',
    ),
    (
        "fairpool_gateway/config/pool.py",
        "    suspend: Truth = False\n\n    def apis",
        "    suspend: Truth = False\n    of_the_next_release: Truth = True\n\n    def apis",
    ),
)


def write(root: Path, directory: Path) -> None:
    """Write both of its packages, made of those of a clone, into a directory."""
    for program in _PROGRAMS:
        copied = directory / Path(program).name
        shutil.copytree(root / program, copied, ignore=shutil.ignore_patterns("__pycache__"))
    for name, this, following in _EDITS:
        path = directory / name
        text = path.read_text(encoding="utf-8")
        assert text.count(this) == 1, f"{name} has not just once: {this}"
        path.write_text(text.replace(this, following), encoding="utf-8")
