"""What stands in a cell: texts as Kubernetes' own printers write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tidegate.model.moment import SECOND, Ms, parse_moment
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, part, text

Body = dict[str, Json]
Cell = Callable[[Body, Ms], Json]
NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"
SHOWN = 3
"""How many of a list are written out."""
MINUTE, HOUR, DAY, YEAR = 60, 3600, 24 * 3600, 365 * 24 * 3600


class Printer(NamedTuple):
    """A column: its title, what stands in it, and whether only a wide table has it."""

    title: str
    cell: Cell
    type: str = "string"
    wide: bool = False
    format: str = ""


def human(seconds: int) -> str:
    """A span in at most two units, coarser the longer it is."""
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
    for limit, unit, rest in steps:
        if seconds < limit:
            return _units(max(0, seconds), unit, rest)
    return f"{seconds // YEAR}y"


def _units(seconds: int, unit: int, rest: int) -> str:
    letters = {1: "s", MINUTE: "m", HOUR: "h", DAY: "d", YEAR: "y"}
    left = seconds % unit // rest if rest else 0
    return f"{seconds // unit}{letters[unit]}" + (f"{left}{letters[rest]}" if left else "")


def since(moment: Json, now: Ms, *, unknown: str = UNKNOWN) -> str:
    """How long ago a moment was."""
    return unknown if not moment else human((now - at(moment)) // SECOND)


def at(moment: Json) -> Ms:
    return parse_moment(str(moment))


def age(body: Body, now: Ms) -> Json:
    return since(part(body, "metadata", "creationTimestamp"), now)


def created_at(body: Body, _now: Ms) -> Json:
    return part(body, "metadata", "creationTimestamp")


def name(body: Body, _now: Ms) -> Json:
    return text(body, "metadata", "name")


def field(*path: str, default: Json = "") -> Cell:
    """What stands at a path."""

    def cell(body: Body, _now: Ms) -> Json:
        found = part(body, *path)
        return default if found is None or found == "" else found

    return cell


def count(*path: str) -> Cell:
    """How many entries a list or a mapping has."""

    def cell(body: Body, _now: Ms) -> Json:
        found = part(body, *path)
        return len(found) if isinstance(found, list | dict) else 0

    return cell


def labels(found: Json) -> str:
    """Labels as texts, by name."""
    pairs = sorted(found.items()) if isinstance(found, dict) else []
    return ",".join(f"{key}={value}" for key, value in pairs) or NONE


def selector(found: Json) -> str:
    """A label selector as text."""
    wanted = {key: f"{key}={value}" for key, value in mapping(found, "matchLabels").items()}
    words = {"In": "in", "NotIn": "notin"}
    for one in mappings(found, "matchExpressions"):
        key, operator = text(one, "key"), text(one, "operator")
        values = f"({','.join(sorted(map(str, listed(one, 'values'))))})"
        match operator:
            case "Exists":
                wanted[key] = key
            case "DoesNotExist":
                wanted[key] = f"!{key}"
            case _:
                wanted[key] = f"{key} {words.get(operator, operator)} {values}"
    return ",".join(told for _, told in sorted(wanted.items())) or NONE


def shortened(found: Sequence[str], *, empty: str = UNSET) -> str:
    """The first of a list, and how many more there are."""
    more = f" + {len(found) - SHOWN} more..." if len(found) > SHOWN else ""
    return f"{','.join(found[:SHOWN])}{more}" or empty


def is_true(body: Body, condition: str) -> bool:
    return any(
        text(one, "type") == condition and text(one, "status") == "True"
        for one in mappings(body, "status", "conditions")
    )


def containers(*path: str) -> tuple[Printer, Printer]:
    """The names and the images of a pod template's containers."""

    def names(body: Body, _now: Ms) -> Json:
        return _joined(text(one, "name") for one in mappings(body, *path, "spec", "containers"))

    def images(body: Body, _now: Ms) -> Json:
        return _joined(text(one, "image") for one in mappings(body, *path, "spec", "containers"))

    return Printer("Containers", names, wide=True), Printer("Images", images, wide=True)


def selected(*path: str) -> Printer:
    return Printer("Selector", lambda body, _: selector(part(body, *path)), wide=True)


def _joined(found: Iterable[str]) -> str:
    return ",".join(found)


NAME = Printer("Name", name, format="name")
AGE = Printer("Age", age)
CREATED = (NAME, Printer("Created At", created_at, "date"))
