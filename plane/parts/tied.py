"""Become another program that dies together with its parent, even when the parent is killed.

    python tied.py PARENT PROGRAM ARGUMENT...

Run as a script, because the alternative (code between fork and exec) is not safe in a process with
threads. Linux forgets the wish when the *thread* that started us ends, so start from a thread that
lives as long as the cluster.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    parent, program = int(arguments[0]), arguments[1]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        # The parent died before it could be watched.
        sys.exit(1)
    os.execv(program, arguments[1:])  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
