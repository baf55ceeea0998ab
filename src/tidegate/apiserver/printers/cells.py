"""Cells of a table, formatted like those of the printers of Kubernetes.

Like `AddHandlers`, `translateTimestampSince` and `formatEndpoints` in
`pkg/printers/internalversion/printers.go` of Kubernetes 1.36.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND, Ms, parse_timestamp

Cell = Callable[[JsonObject, Ms], Json]
NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"
MAX_SHOWN = 3
"""How many items of a list are shown."""
MINUTE, HOUR, DAY, YEAR = 60, 3600, 24 * 3600, 365 * 24 * 3600


class TableColumn(NamedTuple):
    """A column of a table."""

    title: str
    """The title of the column."""
    cell: Cell
    """Returns the value of the cell for an object."""
    type: str = "string"
    """The OpenAPI type."""
    is_wide: bool = False
    """Whether only `-o wide` shows the column."""
    format: str = ""
    """The OpenAPI format."""


def human_duration(seconds: int) -> str:
    """Format a duration with at most two units, coarser the longer it is.

    Like `HumanDuration` in `pkg/util/duration/duration.go` of k8s.io/apimachinery 0.36.4.
    """
    if seconds < -1:
        return "<invalid>"
    steps: tuple[tuple[int, int, int], ...] = (
        (2 * MINUTE, 1, 0),
        (10 * MINUTE, MINUTE, 1),
        (3 * HOUR, MINUTE, 0),
        (8 * HOUR, HOUR, MINUTE),
        (2 * DAY, HOUR, 0),
        (8 * DAY, DAY, HOUR),
        (2 * YEAR, DAY, 0),
        (8 * YEAR, YEAR, DAY),
    )
    for limit, unit, subunit in steps:
        if seconds < limit:
            return _format_units(max(0, seconds), unit, subunit)
    return f"{seconds // YEAR}y"


def _format_units(seconds: int, unit: int, subunit: int) -> str:
    letters = {1: "s", MINUTE: "m", HOUR: "h", DAY: "d", YEAR: "y"}
    remainder = seconds % unit // subunit if subunit else 0
    return f"{seconds // unit}{letters[unit]}" + (
        f"{remainder}{letters[subunit]}" if remainder else ""
    )


def format_age(timestamp: Json, now: Ms, *, unknown: str = UNKNOWN) -> str:
    """Format how long ago a timestamp was."""
    return unknown if not timestamp else human_duration((now - parse_time(timestamp)) // SECOND)


def parse_time(timestamp: Json) -> Ms:
    """Return the time of a timestamp."""
    return parse_timestamp(str(timestamp))


def age_cell(body: JsonObject, now: Ms) -> Json:
    """Return the age of an object."""
    return format_age(get_value(body, "metadata", "creationTimestamp"), now)


def created_cell(body: JsonObject, _now: Ms) -> Json:
    """Return the creation time of an object."""
    return get_value(body, "metadata", "creationTimestamp")


def name_cell(body: JsonObject, _now: Ms) -> Json:
    """Return the name of an object."""
    return get_text(body, "metadata", "name")


def field_cell(*path: str, default: Json = "") -> Cell:
    """Return a cell with the value at a path."""

    def cell(body: JsonObject, _now: Ms) -> Json:
        value = get_value(body, *path)
        return default if value is None or value == "" else value

    return cell


def count_cell(*path: str) -> Cell:
    """Return a cell with the number of entries of a list or a mapping."""

    def cell(body: JsonObject, _now: Ms) -> Json:
        value = get_value(body, *path)
        return len(value) if isinstance(value, list | dict) else 0

    return cell


def format_labels(label_map: Json) -> str:
    """Format labels, sorted by name."""
    pairs = sorted(label_map.items()) if isinstance(label_map, dict) else []
    return ",".join(f"{key}={value}" for key, value in pairs) or NONE


def format_selector(label_selector: Json) -> str:
    """Format a label selector."""
    terms = {
        key: f"{key}={value}" for key, value in get_mapping(label_selector, "matchLabels").items()
    }
    operators = {"In": "in", "NotIn": "notin"}
    for expression in get_mappings(label_selector, "matchExpressions"):
        key, operator = get_text(expression, "key"), get_text(expression, "operator")
        values = f"({','.join(sorted(map(str, get_list(expression, 'values'))))})"
        match operator:
            case "Exists":
                terms[key] = key
            case "DoesNotExist":
                terms[key] = f"!{key}"
            case _:
                terms[key] = f"{key} {operators.get(operator, operator)} {values}"
    return ",".join(term for _, term in sorted(terms.items())) or NONE


def shorten(texts: Sequence[str], *, empty: str = UNSET) -> str:
    """Join the first items of a list, with the number of further ones."""
    more = f" + {len(texts) - MAX_SHOWN} more..." if len(texts) > MAX_SHOWN else ""
    return f"{','.join(texts[:MAX_SHOWN])}{more}" or empty


def is_condition_true(body: JsonObject, condition: str) -> bool:
    """Return whether a condition of an object is true."""
    return any(
        get_text(entry, "type") == condition and get_text(entry, "status") == "True"
        for entry in get_mappings(body, "status", "conditions")
    )


def container_columns(*path: str) -> tuple[TableColumn, TableColumn]:
    """Return the columns for names and images of the containers of a pod template."""

    def names(body: JsonObject, _now: Ms) -> Json:
        return _join(
            get_text(container, "name")
            for container in get_mappings(body, *path, "spec", "containers")
        )

    def images(body: JsonObject, _now: Ms) -> Json:
        return _join(
            get_text(container, "image")
            for container in get_mappings(body, *path, "spec", "containers")
        )

    return TableColumn("Containers", names, is_wide=True), TableColumn(
        "Images", images, is_wide=True
    )


def selector_column(*path: str) -> TableColumn:
    """Return a column with the label selector at a path."""
    return TableColumn(
        "Selector", lambda body, _: format_selector(get_value(body, *path)), is_wide=True
    )


def _join(texts: Iterable[str]) -> str:
    return ",".join(texts)


NAME = TableColumn("Name", name_cell, format="name")
AGE = TableColumn("Age", age_cell)
CREATED_COLUMNS = (NAME, TableColumn("Created At", created_cell, "date"))
