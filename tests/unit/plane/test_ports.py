"""Free ports."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

from plane.ports import LOWEST, pick_ports


def test_ports_differ_and_are_below_the_ephemeral_range() -> None:
    first_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])

    ports = astuple(pick_ports())

    assert len(set(ports)) == 6
    assert all(LOWEST <= port < max(first_outgoing, LOWEST + 7) for port in ports)
