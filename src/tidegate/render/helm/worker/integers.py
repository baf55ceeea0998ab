"""Keeps the integers of parameters integers.

For `helm template`, `--set port=8080` is an integer and `port: 8080` in a values file a float.
Values reach the SDK as JSON, where all numbers become floats: `1234567` would be written
`1.234567e+06`, and `eq .Values.port 8080` would be an error. So a chart gets one template more,
which puts the integers back before any other template runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from tidegate.model.k8s.objects import Json
from tidegate.render.helm.parameters import SetInteger, Values

NAME = "tidegate-integers.yaml"
_GLOBAL = "tidegate.dev/global-integers"


def integer_template_path(depth: int) -> str:
    """Where to put it: Helm runs the deepest templates first."""
    return "templates/" + "0/" * depth + NAME


def integer_template(values: Values) -> str:
    """The template that puts back what JSON loses; nothing when it loses nothing."""
    lines = list(_in_mapping({key: item for key, item in values.items() if key != "global"}))
    shared = "".join(_in_mapping({"global": values.get("global")}))
    text = _wrap("with .Values", "".join(lines)) if lines else ""
    if shared:
        # Each subchart has a copy of its own of what is global.
        deeper = _wrap("range .Subcharts", f'{{{{- include "{_GLOBAL}" . -}}}}')
        text += _wrap(f'define "{_GLOBAL}"', _wrap("with .Values", shared) + deeper)
        text += f'{{{{- include "{_GLOBAL}" . -}}}}'
    return text


def _in_mapping(values: Values) -> Iterator[str]:
    """Actions on the mapping that the dot stands for."""
    for key, value in values.items():
        name = json.dumps(key, ensure_ascii=False)
        if isinstance(value, SetInteger):
            yield f"{{{{- $_ := set . {name} {_number(value)} -}}}}"
        elif isinstance(value, dict):
            yield from _inside(f"index . {name}", "map", "".join(_in_mapping(value)))
        elif isinstance(value, list):
            yield from _inside(f"index . {name}", "slice", "".join(_in_list(value)))
            if _holds_whole(value):
                yield f"{{{{- $_ := set . {name} {_rebuild(value, f'(index . {name})')} -}}}}"


def _in_list(items: list[Json]) -> Iterator[str]:
    """Actions on mappings in the list that the dot stands for; they can be changed in place."""
    for index, item in enumerate(items):
        if isinstance(item, dict):
            yield from _inside(f"index . {index}", "map", "".join(_in_mapping(item)))
        elif isinstance(item, list):
            yield from _inside(f"index . {index}", "slice", "".join(_in_list(item)))


def _inside(what: str, kind: str, actions: str) -> Iterator[str]:
    if actions:
        yield _wrap(f"with {what}", _wrap(f'if kindIs "{kind}" .', actions))


def _holds_whole(items: list[Json]) -> bool:
    return any(
        isinstance(item, SetInteger) or (isinstance(item, list) and _holds_whole(item))
        for item in items
    )


def _rebuild(items: list[Json], access: str) -> str:
    """An expression for the list anew: an item of a list cannot be set."""
    parts = ["(list"]
    for index, item in enumerate(items):
        there = f"(index {access} {index})"
        if isinstance(item, SetInteger):
            parts.append(_number(item))
        elif isinstance(item, list) and _holds_whole(item):
            parts.append(_rebuild(item, there))
        else:
            parts.append(there)
    return " ".join(parts) + ")"


def _wrap(action: str, body: str) -> str:
    return f"{{{{- {action} -}}}}{body}{{{{- end -}}}}"


def _number(value: SetInteger) -> str:
    return f'(int64 "{int(value)}")'
