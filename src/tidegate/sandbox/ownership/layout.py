"""Shapes of a schema, prepared for fast traversal of values.

Every field of every write is looked up here, so the answers of a shape are stored in plain
attributes and dictionaries, once for each shape.
"""

from __future__ import annotations

from functools import lru_cache

from tidegate.schema.shape import DEDUCED, Merge, Shape, Type, find_child_shape

CACHE_SIZE = 4096
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
    """A shape, prepared for the traversal of values."""

    __slots__ = ("accepted", "children", "is_atomic", "is_deduced", "is_list", "keys", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.accepted = _ACCEPTED[shape.type]
        """The Python types that a value of this place may have."""
        self.children = ChildLayouts(shape)
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
        """The layout of the items of a list."""
        return get_layout(self.shape.items()) if self.shape.items is not None else ANY_LAYOUT


class ChildLayouts(dict[str, Layout]):
    """Layouts of the fields of an object, by name; unknown fields are no error."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._shape = shape

    def __missing__(self, name: str) -> Layout:
        child_shape = find_child_shape(self._shape, name)
        if child_shape is None:
            return UNKNOWN_FIELD_LAYOUT
        layout = get_layout(child_shape)
        # Names in a map are arbitrary, so they are not cached.
        if name in self._shape.fields:
            self[name] = layout
        return layout


@lru_cache(maxsize=CACHE_SIZE)
def get_layout(shape: Shape) -> Layout:
    """Return the layout of a shape."""
    return Layout(shape)


ANY_LAYOUT = get_layout(DEDUCED)
UNKNOWN_FIELD_LAYOUT = Layout(DEDUCED)
"""The layout of a field that the schema does not have: no type is accepted."""
UNKNOWN_FIELD_LAYOUT.accepted = frozenset()
