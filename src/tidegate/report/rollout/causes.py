"""Why an object does not become ready, in one sentence: what a person would look for first."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.report.rollout.evidence import ContainerEnd, Evidence

USUAL = frozenset({"Unhealthy", "BackOff"})
"""Warnings that every start has (a probe is asked before its container answers), and those that
its containers tell better, and only as long as they are true."""
LOOP = "CrashLoopBackOff"
"""Its message only says how long the pause is."""


def cause_of(found: Evidence) -> str:
    """The cause, or nothing where none is known: then it may simply take its time."""
    return next(_causes(found), "")


def _causes(found: Evidence) -> Iterator[str]:
    for pod in found.pods:
        yield from (_told(one) for one in pod.containers if one.reason and not one.runs)
    warnings = [one for one in found.notes if one.warning and one.reason not in USUAL]
    yield from (f"{one.reason}: {one.message}" for one in reversed(warnings))
    yield from (f"{one.ref} is not there" for one in found.lacks)


def _told(container: ContainerEnd) -> str:
    """`container web: ImagePullBackOff: ...`, with the last line that it printed."""
    code = "" if container.exit_code is None else f", exit code {container.exit_code}"
    message = f": {container.message}" if container.message and container.reason != LOOP else ""
    printed = f"; it printed: {container.log[-1]}" if container.log else ""
    return f"container {container.name}: {container.reason}{code}{message}{printed}"
