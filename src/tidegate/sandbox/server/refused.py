"""A refusal on its way out of the server."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.sandbox.server.register import KindEntry
from tidegate.world.facts import Cause, Conflict, Invalid, Missing, Refusal


class Refused(Exception):  # noqa: N818 - it is an answer, not an error
    """Raised where the reason is known, answered where the request came in."""

    def __init__(self, outcome: Refusal) -> None:
        super().__init__(outcome)
        self.outcome = outcome


def missing(entry: KindEntry, name: str) -> Refused:
    return Refused(Missing(f'{entry.title} "{name}" not found'))


def invalid(entry: KindEntry, name: str, causes: Iterable[Cause]) -> Refused:
    sorted_causes = tuple(sorted(causes))
    told = ", ".join(f"{cause.field}: {cause.message}" for cause in sorted_causes)
    shown = f"[{told}]" if len(sorted_causes) > 1 else told
    title = f"{entry.kind.name}.{entry.kind.group}".rstrip(".")
    return Refused(Invalid(f'{title} "{name}" is invalid: {shown}', sorted_causes))


def stale(entry: KindEntry, name: str, why: str) -> Refused:
    return Refused(Conflict(f'Operation cannot be fulfilled on {entry.title} "{name}": {why}'))
