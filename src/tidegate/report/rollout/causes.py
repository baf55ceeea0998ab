"""Causes why a gate stays closed."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.report.rollout.evidence import ContainerFailure, Evidence

COMMON_WARNINGS = frozenset({"Unhealthy", "BackOff"})
"""Warnings of every normal start, and warnings that container statuses report better."""
CRASH_LOOP = "CrashLoopBackOff"
"""The message of this reason only names the back-off delay."""


def find_cause(evidence: Evidence) -> str:
    """Return the most likely cause why an object is not ready; empty where none is known."""
    return next(_causes(evidence), "")


def _causes(evidence: Evidence) -> Iterator[str]:
    for pod in evidence.pods:
        yield from (
            _container_message(container)
            for container in pod.containers
            if container.reason and not container.is_running
        )
    warnings = [
        event
        for event in evidence.events
        if event.is_warning and event.reason not in COMMON_WARNINGS
    ]
    yield from (f"{event.reason}: {event.message}" for event in reversed(warnings))
    yield from (f"{missing.ref} is not there" for missing in evidence.missing)


def _container_message(container: ContainerFailure) -> str:
    """Return `container web: ImagePullBackOff: ...` with the last log line."""
    code = "" if container.exit_code is None else f", exit code {container.exit_code}"
    message = (
        f": {container.message}" if container.message and container.reason != CRASH_LOOP else ""
    )
    log_line = f"; it printed: {container.log[-1]}" if container.log else ""
    return f"container {container.name}: {container.reason}{code}{message}{log_line}"
