"""The worker's side of its line: requests in, answers out, each behind its length.

It imports little, so that a worker is there soon.
"""

from __future__ import annotations

import os
from collections.abc import Callable

HEADER = 8
STDIN, STDOUT, STDERR = 0, 1, 2


def framed(text: bytes) -> bytes:
    """A request or an answer as it goes over the line."""
    return len(text).to_bytes(HEADER, "big") + text


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Answer requests until there are no more. Never returns early."""
    line = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)  # a library that prints must not break the line
    with os.fdopen(STDIN, "rb", closefd=False) as requests, os.fdopen(line, "wb") as answers:
        reply = b""  # the first says no more than that it is ready
        while True:
            answers.write(framed(reply))
            answers.flush()
            size = requests.read(HEADER)
            if not size:
                return
            reply = answer(requests.read(int.from_bytes(size, "big")))
