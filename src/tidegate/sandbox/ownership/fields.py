"""Sets of field paths of an object, as in managed fields.

    {"f:data": {".": {}, "f:color": {}}}        the field `data` and the field `data.color`
    {"f:data": {"f:color": {}}}                 the field `data.color` only

A set is a tree of immutable nodes, as in structured-merge-diff 6.3.3. Sets share common
nodes, and an operation that changes nothing returns the same set. A path consists of elements in
the notation of managed fields; equal elements are equal strings.

    f:spec                          a field
    k:{"name":"app"}                an item of a list map
    v:"example.org/hold"            an item of a set
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias

import msgspec

from tidegate.model.k8s.objects import Json
from tidegate.sandbox.ownership.layout import Layout

PathElement: TypeAlias = str
"""One element of a path, in the notation of managed fields."""
FIELD_PREFIX, KEY_PREFIX, VALUE_PREFIX = "f:", "k:", "v:"
_encode = msgspec.json.encode
_decode = msgspec.json.decode
# Like other Go programs, the server escapes these characters for HTML.
_HTML_ESCAPES = str.maketrans(
    {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026", "\u2028": r"\u2028", "\u2029": r"\u2029"}
)
ElementPath: TypeAlias = tuple[PathElement, ...]
SELF = "."


def element_for_item(item: Json, layout: Layout) -> PathElement | None:
    """Return the element of an item in a list map or set; None if it cannot be identified.

    Like `listItemToPathElement` in `typed/helpers.go` of structured-merge-diff 6.3.3.
    """
    if not layout.keys:
        return (
            None
            if item is None or isinstance(item, dict | list)
            else VALUE_PREFIX + _encode_text(item)
        )
    if not isinstance(item, dict):
        return None
    keys: list[tuple[str, Json]] = []
    for key, default in layout.keys:
        if key in item:
            keys.append((key, item[key]))
        elif default is not None:
            keys.append((key, default))
    return (
        _key_element(tuple(keys))
        if all(map(_is_plain, keys))
        else KEY_PREFIX + _encode_text(dict(keys))
    )


def _is_plain(key: tuple[str, Json]) -> bool:
    return type(key[1]) is str or type(key[1]) is int


@lru_cache(maxsize=8192)
def _key_element(keys: tuple[tuple[str, str | int], ...]) -> PathElement | None:
    return KEY_PREFIX + _encode_text({**dict(keys)}) if keys else None


def parse_element(text: str) -> PathElement | None:
    """Return an element in canonical form; None for an unknown prefix.

    Like `DeserializePathElement` in `fieldpath/serialize-pe.go` of structured-merge-diff 6.3.3.
    """
    prefix, value = text[:2], text[2:]
    match prefix:
        case "f:":
            return text
        case "k:":
            keys: dict[str, Json] = _decode(value, type=dict)
            return KEY_PREFIX + _encode_text({key: keys[key] for key in sorted(keys)})
        case "v:":
            return VALUE_PREFIX + _encode_text(_decode(value))
        case _:
            return None


def format_element(element: PathElement) -> str:
    """Format an element as in conflict messages: `.spec`, `[name="app"]`, `[="x"]`.

    Like `String` in `fieldpath/element.go` of structured-merge-diff 6.3.3.
    """
    prefix, encoded = element[:2], element[2:]
    match prefix:
        case "k:":
            keys: dict[str, Json] = _decode(encoded, type=dict)
            return (
                "[" + ",".join(f"{key}={_format_value(value)}" for key, value in keys.items()) + "]"
            )
        case "v:":
            return f"[={_format_value(_decode(encoded))}]"
        case _:
            return f".{encoded}"


def element_sort_key(element: PathElement) -> tuple[str, tuple[tuple[str, int, float, str], ...]]:
    """Return the sort key of the server: fields, then keys, then values; numbers by size.

    Like `Less` in `fieldpath/element.go` of structured-merge-diff 6.3.3.
    """
    prefix, encoded = element[:2], element[2:]
    match prefix:
        case "k:":
            keys: dict[str, Json] = _decode(encoded, type=dict)
            return prefix, tuple((key, *_value_sort_key(value)) for key, value in keys.items())
        case "v:":
            return prefix, (("", *_value_sort_key(_decode(encoded))),)
        case _:
            return prefix, ((encoded, 0, 0.0, ""),)


def _value_sort_key(value: Json) -> tuple[int, float, str]:
    match value:
        case bool():
            return 2, float(value), ""
        case int() | float():
            return 0, float(value), ""
        case str():
            return 1, 0.0, value
        case _:
            return 3, 0.0, _encode_text(value)


def _encode_text(value: Json) -> str:
    return _encode(value).decode().translate(_HTML_ESCAPES)


def _format_value(value: Json) -> str:
    return _encode(value).decode()


class FieldSet(msgspec.Struct, frozen=True, gc=False):
    """A node of a set of field paths. No child is empty.

    Like `Set` in `fieldpath/set.go` of structured-merge-diff 6.3.3.
    """

    is_member: bool
    """Whether the path of this node is in the set."""
    children: dict[PathElement, FieldSet]
    """Paths of the set below this node, by their next element."""

    @property
    def is_empty(self) -> bool:
        """Whether the set has no path."""
        return not self.is_member and not self.children

    def __or__(self, other: FieldSet) -> FieldSet:
        return _union(self, other)

    def __sub__(self, other: FieldSet) -> FieldSet:
        """Return the paths that are not in the other set; paths below its paths remain."""
        return _difference(self, other)

    def __and__(self, other: FieldSet) -> FieldSet:
        return _intersection(self, other)

    def recursive_difference(self, other: FieldSet) -> FieldSet:
        """Return the paths that are neither in the other set nor below one of its paths.

        Like `RecursiveDifference` in `fieldpath/set.go` of structured-merge-diff 6.3.3.
        """
        return _recursive_difference(self, other)

    def paths(self) -> Iterator[ElementPath]:
        """Yield every path in the order of servers: those of a node before those below it.

        Like `Iterate` in `fieldpath/set.go` of structured-merge-diff 6.3.3.
        """
        return _paths(self, ())


EMPTY = FieldSet(False, {})
LEAF = FieldSet(True, {})


def field_set_from_paths(paths: Iterable[Iterable[PathElement]]) -> FieldSet:
    """Return the set of these paths."""
    result = EMPTY
    for path in paths:
        subset = LEAF
        for element in reversed(tuple(path)):
            subset = FieldSet(False, {element: subset})
        result |= subset
    return result


def make_node(is_member: bool, children: dict[PathElement, FieldSet]) -> FieldSet:  # noqa: FBT001 - as the fields are
    """Return a node; common ones are shared."""
    if children:
        return FieldSet(is_member, children)
    return LEAF if is_member else EMPTY


def parse_fields_v1(value: object) -> FieldSet:
    """Parse a set in the format `fieldsV1`; elements with an unknown prefix are dropped.

    Like `FromJSON` in `fieldpath/serialize.go` of structured-merge-diff 6.3.3.
    """
    if not isinstance(value, dict):
        return EMPTY
    children: dict[PathElement, FieldSet] = {}
    for text, inner in value.items():
        if text != SELF and (element := parse_element(text)) is not None:
            child = parse_fields_v1(inner)
            is_member = not child.children or (isinstance(inner, dict) and SELF in inner)
            children[element] = make_node(is_member, child.children)
    return make_node(False, children)


def to_fields_v1(fields: FieldSet) -> dict[str, Json]:
    """Return the set in the format `fieldsV1`, in the order of the server.

    Like `ToJSON` in `fieldpath/serialize.go` of structured-merge-diff 6.3.3.
    """
    result: dict[str, Json] = {SELF: {}} if fields.is_member and fields.children else {}
    for element in _sort_elements(fields.children):
        inner = fields.children[element]
        result[element] = {} if inner is LEAF else to_fields_v1(inner)
    return result


def format_path(path: ElementPath) -> str:
    """Format a path as in conflict messages: `.spec.template.spec.containers[name="app"].image`."""
    return "".join(format_element(element) for element in path)


def _union(fields: FieldSet, other: FieldSet) -> FieldSet:
    if fields is other or other is EMPTY:
        return fields
    if fields is EMPTY:
        return other
    is_member = fields.is_member or other.is_member
    children: dict[PathElement, FieldSet] | None = None
    for element, inner in other.children.items():
        existing = fields.children.get(element)
        child = inner if existing is None else _union(existing, inner)
        if child is not existing:
            children = dict(fields.children) if children is None else children
            children[element] = child
    if children is None:
        return fields if is_member == fields.is_member else FieldSet(is_member, fields.children)
    return FieldSet(is_member, children)


def _difference(fields: FieldSet, other: FieldSet) -> FieldSet:
    is_member = fields.is_member and not other.is_member
    children: dict[PathElement, FieldSet] | None = None
    if fields.children and other.children:
        for element in _common_elements(fields, other):
            child, other_child = fields.children[element], other.children[element]
            remaining = EMPTY if child is other_child else _difference(child, other_child)
            children = _with_child(fields, children, element, remaining)
    if children is None:
        return fields if is_member == fields.is_member else make_node(is_member, fields.children)
    return make_node(is_member, children)


def _recursive_difference(fields: FieldSet, other: FieldSet) -> FieldSet:
    if other.is_member:
        return EMPTY
    children: dict[PathElement, FieldSet] | None = None
    if fields.children and other.children:
        for element in _common_elements(fields, other):
            remaining = _recursive_difference(fields.children[element], other.children[element])
            children = _with_child(fields, children, element, remaining)
    return fields if children is None else make_node(fields.is_member, children)


def _with_child(
    fields: FieldSet,
    children: dict[PathElement, FieldSet] | None,
    element: PathElement,
    child: FieldSet,
) -> dict[PathElement, FieldSet] | None:
    """Return the children with one replaced; copied when the first one changes."""
    if child is fields.children[element]:
        return children
    children = dict(fields.children) if children is None else children
    if child.is_empty:
        del children[element]
    else:
        children[element] = child
    return children


def _intersection(fields: FieldSet, other: FieldSet) -> FieldSet:
    if fields is other:
        return fields
    children: dict[PathElement, FieldSet] = {}
    for element in _common_elements(fields, other):
        child = _intersection(fields.children[element], other.children[element])
        if not child.is_empty:
            children[element] = child
    return make_node(fields.is_member and other.is_member, children)


def _common_elements(fields: FieldSet, other: FieldSet) -> list[PathElement]:
    """Return the elements that both nodes have; iterates over the smaller one."""
    if len(fields.children) <= len(other.children):
        return [element for element in fields.children if element in other.children]
    return [element for element in other.children if element in fields.children]


def _paths(fields: FieldSet, prefix: ElementPath) -> Iterator[ElementPath]:
    elements = _sort_elements(fields.children)
    for element in elements:
        if fields.children[element].is_member:
            yield (*prefix, element)
    for element in elements:
        yield from _paths(fields.children[element], (*prefix, element))


def _sort_elements(children: dict[PathElement, FieldSet]) -> list[PathElement]:
    elements = sorted(children)
    # Fields come before keys and values: if the last one is a field, they all are.
    if not elements or elements[-1].startswith(FIELD_PREFIX):
        return elements
    return sorted(children, key=element_sort_key)
