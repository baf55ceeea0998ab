"""Free ports on loopback.

They are taken from below the range that the system gives to outgoing connections: so a client
cannot by chance sit on the port of a part that is about to come back.
"""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path

from plane.errors import PlaneError
from plane.parts.site import HOST, Ports

LOWEST = 10_240
_USUAL_FIRST_OUTGOING = 32_768
_TRIES = 1_000
_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def pick_ports() -> Ports:
    """As many ports as a control plane needs, all free at one moment."""
    return Ports(*free_ports(len(fields(Ports))))


def free_ports(count: int) -> list[int]:
    """Ports that are all free at one moment."""
    with ExitStack() as held:
        return [_hold_free_port(held) for _ in range(count)]


def _hold_free_port(held: ExitStack) -> int:
    highest = max(LOWEST + 1, _first_outgoing())
    # The system's own generator: a seed that a test fixed must not make two planes collide.
    rng = random.SystemRandom()
    for _ in range(_TRIES):
        port = rng.randrange(LOWEST, highest)
        listener = held.enter_context(socket.socket())
        try:
            listener.bind((HOST, port))
        except OSError:
            continue
        return port
    raise PlaneError("plane.ports", f"no port of `{HOST}` from {LOWEST} to {highest} is free")


def _first_outgoing() -> int:
    try:
        return int(_RANGE_FILE.read_text().split()[0])
    except (OSError, ValueError):
        return _USUAL_FIRST_OUTGOING
