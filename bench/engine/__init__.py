"""The engine, compared with bare loops that do the same without a plan, a gate or a journal.

Engine and loop take turns on one control plane, so that both share the load of the machine. The
figures depend on the machine; the ratios hardly do.
"""

from __future__ import annotations

from bench.engine import applies, chains, gates, memory, steps
from bench.engine.cluster import Bench
from plane import ControlPlane


def measure() -> dict[str, float]:
    """All figures of the engine."""
    figures = steps.measure()
    with ControlPlane.start() as plane:
        bench = Bench(plane)
        for part in (gates, chains, applies, memory):
            figures |= part.measure(bench)
    return figures
