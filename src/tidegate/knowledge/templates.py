"""Templates: names, values and whole objects made from an object.

    ${spec.secretName}              the value at a path; a lone placeholder keeps its type
    ${spec.secretName|name}         the first that exists
    app-${name|'none'}              inside a text, with a fixed text as the default; 3 is a number
    ${spec.list[0].name}            an item; [key=value] chooses one, ["a.b/c"] quotes a name
    ${service(spec.server)}         the Service of a URL or host, ${namespace_of(…)} its
                                    namespace; also text(…), lower(…), count(…),
                                    members(…), group_of(…) an apiVersion, option(…,name) among
                                    arguments
    {$for: path, $key: …, $value: …}    a mapping with a key for each item: ${key}, ${item}
    {$for: path, $item: …}              a list
    {$merge: [mapping, mapping]}        one mapping; the last value of a key counts
    {$if: path, $then: …, $else: …}     if there is a value at the path or, with $is, this value

A missing value leaves out its key, its item, or the object whose name needs it.

`status_matches` finds the stage that a status shows. A CRD may have pruned fields of a status. So a
missing field is ignored, and a different value means another stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import cycle
from typing import NamedTuple, TypeAlias

from tidegate.model.k8s.json_fields import get_mapping, get_mappings
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.k8s.paths import PathStep, find_value, follow_path, parse_path
from tidegate.model.operators.amounts import evaluate_amount
from tidegate.model.text.lazy_regex import lazy_regex

NOW = "\x00now"
"""Placeholder for the current time until a status is written."""
FOR, KEY, VALUE, ITEM, MERGE = "$for", "$key", "$value", "$item", "$merge"
IF, IS, THEN, ELSE = "$if", "$is", "$then", "$else"
_PLACEHOLDER = lazy_regex(r"\$\{([^}]*)\}")
_CALL = lazy_regex(r"(\w+)\(([^,]*)(?:,([\w-]+))?\)")
_ADDRESS = lazy_regex(r"(?:\w+://)?(?P<host>[A-Za-z0-9.-]+)")
PUBLIC_DOMAINS = frozenset({"com", "org", "net", "io", "dev", "cloud", "local", "internal", "svc"})
"""Second parts of two-part hosts that are domains, not namespaces."""


class TemplateOption(NamedTuple):
    """One way to get a value: a fixed text or number, or a path with an optional function."""

    fixed: str | int | None
    """A fixed text or number; None for a path."""
    path: tuple[PathStep, ...] = ()
    """The path of the value."""
    function: str = ""
    """The function to apply to the value; empty for none."""
    argument: str = ""
    """The second argument of the function."""


TemplatePart: TypeAlias = str | tuple[TemplateOption, ...]
"""A fixed text, or the options of a placeholder."""


def make_scope(body: JsonObject, kind: Kind) -> JsonObject:
    """Return what a template can use: the object, and short names for common fields."""
    metadata = get_mapping(body, "metadata")
    return {
        **body,
        "name": metadata.get("name"),
        "namespace": metadata.get("namespace"),
        "uid": metadata.get("uid"),
        "generation": metadata.get("generation"),
        "kind": kind.name,
        "group": kind.group,
        "now": NOW,
    }


def render(template: object, scope: JsonObject) -> Json:
    """Return a filled template, or None if a text needs a missing value."""
    match template:
        case str():
            return _fill_text(template, scope)
        case dict():
            return _render_mapping(template, scope)
        case list() | tuple():
            items = (render(item, scope) for item in template)
            return [item for item in items if item is not None]
        case bool() | int() | float():
            return template
        case _:
            return None


def render_text(template: str, scope: JsonObject) -> str:
    """Return a filled text, or "" if it needs a missing value."""
    value = _fill_text(template, scope)
    return value if isinstance(value, str) else "" if value is None else str(value)


def list_item_scopes(scope: JsonObject, path: str) -> Iterator[JsonObject]:
    """Yield a scope for each item at a path, or the scope itself without a path.

    A text is a comma-separated list.
    """
    if not path:
        yield scope
        return
    items = find_value(scope, path)
    if isinstance(items, str):
        items = [word.strip() for word in items.split(",") if word.strip()]
    if isinstance(items, dict):
        yield from ({**scope, "key": key, "item": item} for key, item in sorted(items.items()))
    elif isinstance(items, list):
        yield from ({**scope, "key": index, "item": item} for index, item in enumerate(items))


def check_template(template: object) -> None:
    """Raise ValueError for a template with an invalid path."""
    if isinstance(template, str):
        parse_text(template)
    elif isinstance(template, dict):
        for key in (FOR, IF):
            if key in template:
                parse_path(str(template[key]))
        for value in template.values():
            check_template(value)
    elif isinstance(template, list | tuple):
        for item in template:
            check_template(item)


@cache
def parse_text(text: str) -> tuple[TemplatePart, ...]:
    """Split a text into fixed parts and placeholders.

    Raises ValueError for an invalid placeholder.
    """
    return tuple(
        tuple(_parse_option(option.strip()) for option in part.split("|"))
        if is_placeholder
        else part
        for part, is_placeholder in zip(_PLACEHOLDER.split(text), cycle((False, True)))
        if part or is_placeholder
    )


def _parse_option(text: str) -> TemplateOption:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return TemplateOption(text[1:-1])
    if text.isdigit():
        return TemplateOption(int(text))
    call = _CALL.fullmatch(text)
    if call is None:
        return TemplateOption(None, parse_path(text))
    if call[1] not in FUNCTIONS:
        known = ", ".join(sorted(FUNCTIONS))
        raise ValueError(f"unknown function `{call[1]}`; use {known}")
    return TemplateOption(None, parse_path(call[2]), call[1], call[3] or "")


def _fill_text(text: str, scope: JsonObject) -> Json:
    if "${" not in text:
        return text
    pieces = parse_text(text)
    if len(pieces) == 1 and not isinstance(pieces[0], str):
        return _first_value(pieces[0], scope)
    parts = [piece if isinstance(piece, str) else _first_value(piece, scope) for piece in pieces]
    if any(part is None or isinstance(part, dict | list) for part in parts):
        return None
    return "".join(scalar_text(part) for part in parts)


def scalar_text(value: Json) -> str:
    """Return a scalar as text, as YAML writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _first_value(options: tuple[TemplateOption, ...], scope: JsonObject) -> Json:
    for option in options:
        if option.fixed is not None:
            return option.fixed
        raw = follow_path(scope, option.path)
        value = FUNCTIONS[option.function](raw, option.argument) if option.function else raw
        if value is not None and value != "":
            return value
    return None


def _render_mapping(template: dict[str, object], scope: JsonObject) -> Json:
    if FOR in template:
        return _render_each(template, scope)
    if IF in template:
        value = find_value(scope, str(template[IF]))
        is_met = value == template[IS] if IS in template else value is not None
        return render(template.get(THEN if is_met else ELSE), scope)
    if MERGE in template:
        parts = get_mappings(render(template[MERGE], scope))
        return {name: value for part in parts for name, value in part.items()}
    return _without_missing(
        (render_text(key, scope), render(template[key], scope)) for key in template
    )


def _render_each(template: dict[str, object], scope: JsonObject) -> Json:
    scopes = list_item_scopes(scope, str(template[FOR]))
    if ITEM in template:
        items = (render(template[ITEM], item_scope) for item_scope in scopes)
        return [item for item in items if item is not None]
    key = str(template.get(KEY, "${key}"))
    return _without_missing(
        (render_text(key, item_scope), render(template.get(VALUE), item_scope))
        for item_scope in scopes
    )


def _without_missing(pairs: Iterable[tuple[str, Json]]) -> JsonObject:
    return {name: value for name, value in pairs if name and value is not None}


def _scalar_text(value: Json) -> Json:
    return None if value is None or isinstance(value, dict | list) else scalar_text(value)


def _parse_address(address: Json) -> tuple[str, str]:
    """Return the Service and the namespace that a host names, or empty texts for a public host."""
    match_ = _ADDRESS.match(address) if isinstance(address, str) else None
    parts = match_["host"].rstrip(".").split(".") if match_ else []
    match parts:
        case [service]:
            return service, ""
        case [service, namespace] if namespace not in PUBLIC_DOMAINS:
            return service, namespace
        case [service, namespace, "svc", *_]:
            return service, namespace
        case _:
            return "", ""


def _count_members(sets: Json) -> Json:
    """Return the sum of the members of a list of sets."""
    return int(evaluate_amount({"sets": sets}, "sum(sets,count)")) or None


def _read_option(arguments: Json, name: str) -> Json:
    """Return the value of a command line option: `--name=value` or `--name value`."""
    words = [str(word) for word in arguments] if isinstance(arguments, list) else []
    for index, word in enumerate(words):
        flag, separator, value = word.lstrip("-").partition("=")
        if word.startswith("-") and flag == name:
            text = value if separator else next(iter(words[index + 1 :]), "")
            return None if "$(" in text else text  # an unknown variable
    return None


FUNCTIONS: dict[str, Callable[[Json, str], Json]] = {
    "count": lambda value, _: len(value) if isinstance(value, list | dict) else None,
    "group_of": lambda value, _: value.rpartition("/")[0] if isinstance(value, str) else None,
    "members": lambda value, _: _count_members(value),
    "lower": lambda value, _: value.lower() if isinstance(value, str) else None,
    "namespace_of": lambda value, _: _parse_address(value)[1] or None,
    "option": _read_option,
    "service": lambda value, _: _parse_address(value)[0] or None,
    "text": lambda value, _: _scalar_text(value),
}


def status_matches(status: Json, expected: Json) -> bool:
    """Return whether a status matches: at least one leaf is equal and none differs."""
    return bool(_count_matches(expected, status))


def _count_matches(expected: Json, actual: Json) -> int | None:
    """Return how many leaves are equal, or None if one differs."""
    if expected == NOW:
        return 0 if isinstance(actual, str) else None
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return None
        pairs = [(value, actual[key]) for key, value in expected.items() if key in actual]
        return _sum_matches(pairs)
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return None
        return _sum_matches(
            [(item, find_counterpart(item, index, actual)) for index, item in enumerate(expected)]
        )
    return 1 if expected == actual and type(expected) is type(actual) else None


def _sum_matches(pairs: list[tuple[Json, Json]]) -> int | None:
    counts = [_count_matches(expected, actual) for expected, actual in pairs]
    matching = [count for count in counts if count is not None]
    return sum(matching) if len(matching) == len(counts) else None


def find_counterpart(item: Json, index: int, actual: list[Json]) -> Json:
    """Return the item to compare with. Conditions are found by type: a server may reorder them."""
    if isinstance(item, dict) and "type" in item:
        matches = (
            candidate
            for candidate in actual
            if isinstance(candidate, dict) and candidate.get("type") == item["type"]
        )
        return next(matches, None)
    return actual[index]
