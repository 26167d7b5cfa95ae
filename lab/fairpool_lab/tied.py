"""Runs a command that ends with the process that started it, even when that one is killed and can clean up nothing.

`python tied.py PID SIGNAL COMMAND...`, started by the process of that id, becomes the command. On Linux the kernel then
sends it the signal at the death of its parent (of the very thread that started it); on other systems the command merely
runs. SIGTERM lets it end in order, SIGKILL ends it even when it is stopped. A file of its own that needs nothing but
the standard library, since it runs before every process of the demonstration.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, number: int, command: list[str]) -> None:
    """Become the command, unless the parent is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 - the command is the parent's own, and no shell takes part


if __name__ == "__main__":
    main(int(sys.argv[1]), signal.Signals[sys.argv[2]], sys.argv[3:])
