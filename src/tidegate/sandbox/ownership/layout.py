"""A shape made ready for walking along a value.

Every field of every write is looked up here, so what a shape says in words is answered by plain
attributes and dictionaries, once for each shape.
"""

from __future__ import annotations

from functools import lru_cache

from tidegate.schema.shape import DEDUCED, Merge, Shape, Type, child

KEPT = 4096
_NULL = type(None)
_ACCEPTED: dict[Type, frozenset[type]] = {
    Type.ANY: frozenset({_NULL, dict, list, str, int, float, bool}),
    Type.OBJECT: frozenset({_NULL, dict}),
    Type.ARRAY: frozenset({_NULL, list}),
    Type.STRING: frozenset({_NULL, str}),
    Type.INTEGER: frozenset({_NULL, int, float}),
    Type.NUMBER: frozenset({_NULL, int, float}),
    Type.BOOLEAN: frozenset({_NULL, bool}),
    Type.INT_OR_STRING: frozenset({_NULL, str, int, float, bool}),
}


class Layout:
    """How the values of one place are walked."""

    __slots__ = ("accepted", "children", "is_atomic", "is_deduced", "is_list", "keys", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.accepted = _ACCEPTED[shape.type]
        """The Python types that a value of this place may have."""
        self.children = Children(shape)
        self.is_atomic = shape.merge is Merge.ATOMIC
        """Any value is one piece."""
        self.is_deduced = shape.merge is Merge.FIELDS and shape.type is Type.ANY
        """Any value but a map is one piece."""
        self.is_list = shape.merge is Merge.KEYED or shape.merge is Merge.SET
        self.keys = tuple(
            (key, shape.key_defaults.get(key)) for key in sorted(shape.keys) if self.is_list
        )
        """Keys of items with their defaults; none in a set."""

    @property
    def items(self) -> Layout:
        """What the items of a list are."""
        return layout_of(self.shape.items()) if self.shape.items is not None else ANYTHING


class Children(dict[str, Layout]):
    """What the fields of an object are, by name; asking for an unknown one is no error."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._shape = shape

    def __missing__(self, name: str) -> Layout:
        found = child(self._shape, name)
        if found is None:
            return UNKNOWN
        layout = layout_of(found)
        # Names in a map are anybody's: they are not kept.
        if name in self._shape.fields:
            self[name] = layout
        return layout


@lru_cache(maxsize=KEPT)
def layout_of(shape: Shape) -> Layout:
    return Layout(shape)


ANYTHING = layout_of(DEDUCED)
UNKNOWN = Layout(DEDUCED)
"""A field that the schema does not have: it is what its value is, and accepted is nothing."""
UNKNOWN.accepted = frozenset()
