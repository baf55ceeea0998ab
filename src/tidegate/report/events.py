"""Events, formatted like the output of `flux events`, and container logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tidegate.model.rollouts.evidence import ContainerLog
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.model.views.events import EventRow, LogLine
from tidegate.report.tables import message_table_lines, wrap_lines

COLUMNS = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
HOUR, DAY = Ms(60 * MINUTE), Ms(24 * 60 * MINUTE)


def event_lines(
    rows: Sequence[EventRow], now: Ms, *, all_namespaces: bool, max_width: int | None = None
) -> Iterator[str]:
    """Yield a table, with namespaces if `all_namespaces`.

    On a narrow terminal a message is placed below its line.
    """
    first_column = 0 if all_namespaces else 1
    columns = ("NAMESPACE", *COLUMNS)[first_column:]
    cells = [
        (
            row.namespace,
            format_age(Ms(now - row.at)),
            row.type,
            row.reason,
            row.object,
            _event_message(row),
        )
        for row in rows
    ]
    yield from message_table_lines(
        columns, [row_cells[first_column:] for row_cells in cells], max_width
    )


def _event_message(row: EventRow) -> str:
    message = row.message.replace("\n", " ")
    return f"{message} (x{row.times})" if row.times > 1 else message


def format_age(duration: Ms) -> str:
    """Format a duration like the age column of kubectl."""
    for unit, suffix in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m")):
        if duration >= 2 * unit:
            return f"{duration // unit}{suffix}"
    return f"{max(0, duration) // SECOND}s"


def event_row_document(row: EventRow) -> dict[str, object]:
    return msgspec.structs.asdict(row)


def container_log_lines(
    logs: Iterable[ContainerLog], max_width: int | None = None
) -> Iterator[str]:
    """Yield the log of each container after a line with its pod and object."""
    for index, log in enumerate(logs):
        if index:
            yield ""
        title = f"==> {log.pod}, container {log.container}, of {log.object}: {log.state}"
        yield from wrap_lines(title, max_width)
        yield from log.lines or ("(no output)",)


def log_line_document(line: LogLine) -> dict[str, object]:
    return {"pod": str(line.pod), "container": line.container, "line": line.line}


def container_log_document(log: ContainerLog) -> dict[str, object]:
    return {
        "object": str(log.object),
        "pod": str(log.pod),
        "container": log.container,
        "state": log.state,
        "lines": list(log.lines),
    }
