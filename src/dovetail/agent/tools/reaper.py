"""Ends what a run has started when the run itself was killed and could not.

Runs as a script of its own with nothing but the standard library: reaper.py MARK. Its standard input is a pipe that the
run holds open; when the pipe ends, every process with the mark in its environment is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

# One that forks or executes while we look can be missed, so the search goes on until it found nobody this often.
_TIMES_NOBODY = 3
_POLL_S = 0.01
_MAX_SWEEPS = 500


def main() -> None:
    """Wait for the end of the pipe, then sweep."""
    os.closerange(3, 1024)
    while os.read(0, 1):
        pass
    nobody = 0
    for _ in range(_MAX_SWEEPS):
        nobody = 0 if _sweep(os.fsencode(sys.argv[1])) else nobody + 1
        if nobody == _TIMES_NOBODY:
            return
        time.sleep(_POLL_S)


def _sweep(mark: bytes) -> bool:
    killed = False
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read():
                    os.kill(int(name), signal.SIGKILL)
                    killed = True
    return killed


if __name__ == "__main__":
    main()
