"""Integers of parameters, kept as integers.

For `helm template`, `--set port=8080` is an integer and `port: 8080` in a values file is a float.
The SDK gets values as JSON, where all numbers become floats: `1234567` would be written
`1.234567e+06`, and `eq .Values.port 8080` would be an error. So the chart gets another template,
which restores the integers before any other template runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from tidegate.model.k8s.objects import Json
from tidegate.render.helm.parameters import SetInteger, Values

TEMPLATE_NAME = "tidegate-integers.yaml"
_GLOBAL_TEMPLATE = "tidegate.dev/global-integers"


def integer_template_path(depth: int) -> str:
    """Return the path of the template: Helm runs the deepest templates first.

    Like `sortTemplates` in `pkg/engine/engine.go` of Helm 4.2.4.
    """
    return "templates/" + "0/" * depth + TEMPLATE_NAME


def integer_template(values: Values) -> str:
    """Return the template that restores the integers; empty without integers."""
    actions = list(_mapping_actions({key: item for key, item in values.items() if key != "global"}))
    global_actions = "".join(_mapping_actions({"global": values.get("global")}))
    text = _wrap("with .Values", "".join(actions)) if actions else ""
    if global_actions:
        # Each subchart has its own copy of the global values.
        deeper = _wrap("range .Subcharts", f'{{{{- include "{_GLOBAL_TEMPLATE}" . -}}}}')
        text += _wrap(
            f'define "{_GLOBAL_TEMPLATE}"', _wrap("with .Values", global_actions) + deeper
        )
        text += f'{{{{- include "{_GLOBAL_TEMPLATE}" . -}}}}'
    return text


def _mapping_actions(values: Values) -> Iterator[str]:
    """Yield actions that restore the integers in the mapping at the dot."""
    for key, value in values.items():
        name = json.dumps(key, ensure_ascii=False)
        if isinstance(value, SetInteger):
            yield f"{{{{- $_ := set . {name} {_integer_expression(value)} -}}}}"
        elif isinstance(value, dict):
            yield from _actions_inside(f"index . {name}", "map", "".join(_mapping_actions(value)))
        elif isinstance(value, list):
            yield from _actions_inside(f"index . {name}", "slice", "".join(_list_actions(value)))
            if _has_integer(value):
                restored = _list_expression(value, f"(index . {name})")
                yield f"{{{{- $_ := set . {name} {restored} -}}}}"


def _list_actions(items: list[Json]) -> Iterator[str]:
    """Yield actions that restore the integers in mappings in the list at the dot."""
    for index, item in enumerate(items):
        if isinstance(item, dict):
            yield from _actions_inside(f"index . {index}", "map", "".join(_mapping_actions(item)))
        elif isinstance(item, list):
            yield from _actions_inside(f"index . {index}", "slice", "".join(_list_actions(item)))


def _actions_inside(expression: str, kind: str, actions: str) -> Iterator[str]:
    if actions:
        yield _wrap(f"with {expression}", _wrap(f'if kindIs "{kind}" .', actions))


def _has_integer(items: list[Json]) -> bool:
    return any(
        isinstance(item, SetInteger) or (isinstance(item, list) and _has_integer(item))
        for item in items
    )


def _list_expression(items: list[Json], expression: str) -> str:
    """Return an expression for a new list, because items of a list cannot be set."""
    parts = ["(list"]
    for index, item in enumerate(items):
        item_expression = f"(index {expression} {index})"
        if isinstance(item, SetInteger):
            parts.append(_integer_expression(item))
        elif isinstance(item, list) and _has_integer(item):
            parts.append(_list_expression(item, item_expression))
        else:
            parts.append(item_expression)
    return " ".join(parts) + ")"


def _wrap(action: str, body: str) -> str:
    return f"{{{{- {action} -}}}}{body}{{{{- end -}}}}"


def _integer_expression(value: SetInteger) -> str:
    return f'(int64 "{int(value)}")'
