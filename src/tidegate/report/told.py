"""What a cluster tells of units: Events as `flux events` shows them, and what containers print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tidegate.model.moment import MINUTE, SECOND, Ms
from tidegate.model.objects import Ref
from tidegate.report.tables import noted_lines, told_lines

HEADS = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
HOUR, DAY = Ms(60 * MINUTE), Ms(24 * 60 * MINUTE)


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    """An Event: when it was told last, of whom, and how often."""

    at: Ms
    type: str
    reason: str
    namespace: str
    object: str
    message: str
    times: int = 1


class ContainerLog(msgspec.Struct, frozen=True, kw_only=True):
    """What a container has printed last; `owner` is the object of the unit that it runs for."""

    owner: Ref
    pod: Ref
    container: str
    state: str
    lines: tuple[str, ...] = ()


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that a container has printed."""

    pod: Ref
    container: str
    line: str

    def __str__(self) -> str:
        return f"{self.pod.name}/{self.container} | {self.line}"


def event_lines(
    rows: Sequence[EventRow], now: Ms, *, everywhere: bool, room: int | None = None
) -> Iterator[str]:
    """A table; with `everywhere` each says its namespace.

    With too little room a message stands below its line.
    """
    first = 0 if everywhere else 1
    heads = ("NAMESPACE", *HEADS)[first:]
    rows_of = [
        (row.namespace, age(Ms(now - row.at)), row.type, row.reason, row.object, _message(row))
        for row in rows
    ]
    yield from noted_lines(heads, [one[first:] for one in rows_of], room)


def _message(row: EventRow) -> str:
    told = row.message.replace("\n", " ")
    return f"{told} (x{row.times})" if row.times > 1 else told


def age(span: Ms) -> str:
    """As kubectl tells how long ago something was."""
    for unit, word in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m")):
        if span >= 2 * unit:
            return f"{span // unit}{word}"
    return f"{max(0, span) // SECOND}s"


def event_document(row: EventRow) -> dict[str, object]:
    return msgspec.structs.asdict(row)


def log_lines(logs: Iterable[ContainerLog], room: int | None = None) -> Iterator[str]:
    """Each container behind a line that says whose it is."""
    for number, one in enumerate(logs):
        if number:
            yield ""
        head = f"==> {one.pod}, container {one.container}, of {one.owner}: {one.state}"
        yield from told_lines(head, room)
        yield from one.lines or ("(it has printed nothing)",)


def line_document(one: LogLine) -> dict[str, object]:
    return {"pod": str(one.pod), "container": one.container, "line": one.line}


def log_document(one: ContainerLog) -> dict[str, object]:
    return {
        "object": str(one.owner),
        "pod": str(one.pod),
        "container": one.container,
        "state": one.state,
        "lines": list(one.lines),
    }
