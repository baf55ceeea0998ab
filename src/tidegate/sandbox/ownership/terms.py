"""On which terms fields are owned: what a kind, or a subresource of it, lets a write change.

A server resets some fields after a write (`status` through the object itself, `spec` through
`status`), so nobody comes to own them there.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.objects import Json, Kind
from tidegate.sandbox.kinds import RESETS, STATUS_ALONE
from tidegate.sandbox.ownership.fields import NOTHING, Fields, fields_from
from tidegate.schema.shape import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for every write to a kind, or to one of its subresources."""

    shape: Shape
    version: str
    subresource: str = ""
    resets: Fields = NOTHING
    """Fields that a write through here cannot change, and so does not own."""
    blank: dict[str, Json]
    """An object of this kind of which nothing was said yet: `blank_of` built-in ones, else `{}`."""


METADATA, SPEC, STATUS = ("f:metadata",), ("f:spec",), ("f:status",)


def resets_of(
    kind: Kind, *, subresource: str = "", has_status: bool, is_custom: bool = False
) -> Fields:
    """The fields that a write to a kind (or through its subresource) cannot change."""
    special = RESETS.get((kind.group, kind.name, subresource))
    if special is not None:
        return fields_from([f"f:{name}" for name in path.split(".")] for path in special)
    if subresource == "status":
        is_alone = is_custom or (kind.group, kind.name) in STATUS_ALONE
        return fields_from([SPEC, METADATA] if is_alone else [SPEC])
    return fields_from([STATUS]) if has_status and not subresource else NOTHING


def blank_of(shape: Shape) -> dict[str, Json]:
    """An object of a built-in kind of which nothing was said: structs, and lists never left out."""
    blank: dict[str, Json] = {}
    for name, asked in shape.fields.items():
        place = asked()
        if name in shape.always:
            blank[name] = {**blank_of(place)}
        elif name in shape.required and place.items is not None:
            blank[name] = None
    return blank
