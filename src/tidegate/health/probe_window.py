"""How long a pod's own probes let it take until it is ready.

Sidecars start one after the other, before the containers; these start together. An init container
that ends takes as long as it takes, and counts nothing.
"""

from __future__ import annotations

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, mappings, number

PERIOD_SECONDS = 10
FAILURE_THRESHOLD = 3
SUCCESS_THRESHOLD = 1


def pod_window(spec: dict[str, Json]) -> Ms:
    """Of a pod's spec: 0 where it has no probes that hold it back."""
    inits = mappings(spec, "initContainers")
    before = sum(_startup_seconds(one) for one in inits if one.get("restartPolicy") == "Always")
    together = max((_container_seconds(one) for one in mappings(spec, "containers")), default=0)
    return Ms((before + together) * SECOND)


def _container_seconds(container: dict[str, Json]) -> int:
    """Readiness is asked when its delay is over and the container has started up."""
    started, readiness = _startup_seconds(container), mapping(container, "readinessProbe")
    if not readiness:
        return started
    delay = number(readiness, "initialDelaySeconds")
    successes = _at_least_one(readiness, "successThreshold", SUCCESS_THRESHOLD)
    period = _at_least_one(readiness, "periodSeconds", PERIOD_SECONDS)
    return max(started, delay) + period * successes


def _startup_seconds(container: dict[str, Json]) -> int:
    """Until the last attempt that its startup probe grants."""
    probe = mapping(container, "startupProbe")
    if not probe:
        return 0
    attempts = _at_least_one(probe, "failureThreshold", FAILURE_THRESHOLD)
    period = _at_least_one(probe, "periodSeconds", PERIOD_SECONDS)
    return max(0, number(probe, "initialDelaySeconds")) + period * attempts


def _at_least_one(probe: dict[str, Json], field: str, default: int) -> int:
    """The API server takes 0 for `not said`."""
    found = number(probe, field)
    return found if found > 0 else default
