"""Descriptions of the values of a chart, read from comments in its `values.yaml`.

    # -- (integer | null) Its own wave.
    syncWave: null

Such a comment makes a value of the key below it; the type in parentheses may be left out if the
default determines it. A key without a comment must be a mapping, and is a section.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

MARK = "# -- "
_COMMENT = re.compile(r"(?:\((?P<kind>[^)]*)\) )?(?P<text>.+)")


@dataclass(frozen=True, slots=True)
class Value:
    """Something a user may set."""

    path: tuple[str, ...]
    kind: str
    default: object
    text: str

    @property
    def name(self) -> str:
        return ".".join(self.path)


def read_values(text: str) -> tuple[Value, ...]:
    """All values of a file, in its order."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode):
        raise TypeError("values.yaml is not a mapping")
    return tuple(_Reader(text).read(node, ()))


class _Reader:
    """Reads keys together with the lines above them."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._loader = yaml.SafeLoader("")

    def read(self, node: yaml.MappingNode, above: tuple[str, ...]) -> Iterator[Value]:
        for key, child in node.value:
            path = (*above, key.value)
            comment = self._comment(key.start_mark.line)
            if comment:
                yield self._value(path, comment, child)
            elif isinstance(child, yaml.MappingNode) and child.value:
                yield from self.read(child, path)
            else:
                line = key.start_mark.line + 1
                raise ValueError(f"line {line}: `{'.'.join(path)}` has no description")

    def _comment(self, line: int) -> str:
        above = self._lines[line - 1].strip() if line else ""
        return above.removeprefix(MARK) if above.startswith(MARK) else ""

    def _value(self, path: tuple[str, ...], comment: str, node: yaml.Node) -> Value:
        result = _COMMENT.fullmatch(comment)
        if result is None:
            raise ValueError(f"`{comment}` does not say what `{'.'.join(path)}` is")
        default = self._loader.construct_object(node, deep=True)
        kind = result["kind"] or kind_of(default)
        return Value(path, kind, default, result["text"])


def kind_of(default: object) -> str:
    """The type of a default. An empty mapping is a mapping of strings, such as annotations."""
    match default:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case str():
            return "string"
        case list():
            return "strings"
        case dict() if not default:
            return "map"
        case _:
            raise ValueError(f"the default `{default}` does not determine a type")
