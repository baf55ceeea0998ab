"""What can go wrong with the control plane, with the last words of the program that died."""

from __future__ import annotations

from pathlib import Path

from tidegate.errors import Location, ProcessError

TAIL_LINES = 15
TAIL_BYTES = 16_384


class PlaneError(ProcessError):
    """A program of the control plane, or one that builds it, could not do its part.

    Unlike other errors it shows the end of a log: only developers read it, and the log belongs to
    a cluster that is gone by then.
    """

    def __init__(
        self,
        code: str,
        problem: str,
        *,
        location: Location | None = None,
        hint: str = "",
        tail: tuple[str, ...] = (),
    ) -> None:
        super().__init__(code, problem, location=location, hint=hint)
        self.tail = tail

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"  | {line}" for line in self.tail)])


class PortTakenError(PlaneError):
    """Another process took a port after it was chosen and before it was used."""


def tail_of(log: Path) -> tuple[str, ...]:
    """The last lines of a log; nothing when there is no log."""
    try:
        with log.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - TAIL_BYTES))
            text = stream.read().decode(errors="replace")
    except OSError:
        return ()
    return tuple(text.splitlines()[-TAIL_LINES:])
