"""When two values mean the same to a server, and how values are shown.

A server writes quantities in one canonical form, turns `stringData` of a Secret into `data`, and
leaves out what is empty.
"""

from __future__ import annotations

import base64

import msgspec

from tidegate.errors import foreign
from tidegate.model.objects import Json
from tidegate.model.quantity import quantity_of
from tidegate.model.reading import mapping
from tidegate.plan.diff.owned import Body, Scalar


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHOWN = 80
BEFORE_CHANGE = 20
"""How many characters of two long texts are shown before they part."""
QUANTITY_MAPS = words(
    "capacity default defaultRequest hard limits max maxLimitRequestRatio min overhead "
    "podFixed requests"
)
QUANTITIES = words("averageValue capacity divisor maximumVolumeSize sizeLimit tolerance")
BYTES = frozenset(["caBundle", "request"])
BYTES_MAPS = frozenset(["binaryData"])


def same_scalar(wanted: Json, live: Json, *, name: str, parent: str) -> bool:
    """Whether a field of a built-in kind has the value that is wanted."""
    if is_equal(wanted, live):
        return True
    if name in QUANTITIES or parent in QUANTITY_MAPS or (name, parent) == ("value", "target"):
        amount = quantity_of(wanted)
        return amount is not None and amount == quantity_of(live)
    if isinstance(wanted, str) and (name in BYTES or parent in BYTES_MAPS):
        return "".join(wanted.split()) == live
    return False


def is_equal(wanted: Json, live: Json) -> bool:
    """Equal as JSON: 1 and 1.0 are, 1 and true are not."""
    return wanted == live and isinstance(wanted, bool) == isinstance(live, bool)


def is_hollow(value: Json) -> bool:
    """Nothing is said: null, false, 0, an empty text, or a collection of nothing else."""
    if isinstance(value, dict):
        return all(map(is_hollow, value.values()))
    return not value


def fold_text(wanted: Body) -> Body:
    """A Secret as servers store it: `stringData` in `data`, which has no line breaks.

    What no server can read stays as it is written, and is refused for it.
    """
    values, texts = wanted.get("data"), wanted.get("stringData")
    if not (values or texts) or not (_is_text_map(values) and _is_text_map(texts)):
        return wanted
    folded: Body = {name: _unbroken(value) for name, value in mapping(wanted, "data").items()}
    for name, value in mapping(wanted, "stringData").items():
        folded[name] = base64.b64encode(str(value or "").encode()).decode()
    rest = {name: value for name, value in wanted.items() if name != "stringData"}
    return {**rest, "data": folded}


def _is_text_map(value: Json) -> bool:
    """A server reads null as an empty map, and in a map as an empty text."""
    if not isinstance(value, dict):
        return value is None
    return all(part is None or isinstance(part, str) for part in value.values())


def _unbroken(value: Json) -> Json:
    """Encoded bytes without their line breaks, which is all that a server overlooks in them."""
    return value.replace("\r", "").replace("\n", "") if isinstance(value, str) else value


def show_pair(before: Json, after: Json) -> tuple[str, str]:
    """Two values in short; of two long texts, what comes where they part."""
    old, new = _written(before), _written(after)
    if len(old) > SHOWN and len(new) > SHOWN:
        start = _parting(old, new) - BEFORE_CHANGE
        if start > 0:
            old, new = "…" + old[start:], "…" + new[start:]
    return _short(old), _short(new)


def _parting(one: str, other: str) -> int:
    """Where two texts part."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (mine, its) in pairs if mine != its), min(len(one), len(other)))


def show_scalar(value: Scalar) -> str:
    return _short(_written(value))


def _written(value: Json) -> str:
    match value:
        case None:
            return ""
        case str():
            return value or '""'
        case _:
            return msgspec.json.encode(value).decode()


def _short(written: str) -> str:
    line = foreign(written[: 4 * SHOWN])
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
