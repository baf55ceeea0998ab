"""The worker side of the worker protocol: requests in, responses out, each after its length.

The module imports little, so that a worker starts fast.
"""

from __future__ import annotations

import os
from collections.abc import Callable

HEADER_SIZE = 8
STDIN, STDOUT, STDERR = 0, 1, 2


def frame(payload: bytes) -> bytes:
    """Return a request or a response with its length, as it is sent."""
    return len(payload).to_bytes(HEADER_SIZE, "big") + payload


def serve(handler: Callable[[bytes], bytes]) -> None:
    """Process requests with `handler` until stdin is closed."""
    channel = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)  # a library that prints must not break the line
    with os.fdopen(STDIN, "rb", closefd=False) as requests, os.fdopen(channel, "wb") as responses:
        response = b""  # the first frame only signals readiness
        while True:
            responses.write(frame(response))
            responses.flush()
            size = requests.read(HEADER_SIZE)
            if not size:
                return
            response = handler(requests.read(int.from_bytes(size, "big")))
