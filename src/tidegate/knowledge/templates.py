"""Templates: how names, values and whole objects are made from an object.

    ${spec.secretName}              what stands there; the whole text keeps its type
    ${spec.secretName|name}         the first that is there
    app-${name|'none'}              inside a text, and a fixed text to fall back to; 3 is a number
    ${spec.list[0].name}            an item; [key=value] chooses one, ["a.b/c"] quotes a name
    ${service(spec.server)}         the Service that a URL or a host calls, ${namespace_of(…)} its
                                    namespace; also text(…), lower(…), count(…),
                                    members(…), group_of(…) an apiVersion, option(…,name) among
                                    arguments
    {$for: path, $key: …, $value: …}    a mapping with a key for each item: ${key}, ${item}
    {$for: path, $item: …}              a list
    {$merge: [mapping, mapping]}        one mapping; the last to speak of a key decides
    {$if: path, $then: …, $else: …}     where something stands at the path, or, with $is, this

What is not there is left out: the key, the item, the object without a name.

`shows` tells which stage a status shows. A status that was written may have lost fields which its
CRD does not know. So a field that is missing says nothing; one that stands there and differs says
that it is another stage.
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
"""Stands for the moment of writing until a status is written."""
FOR, KEY, VALUE, ITEM, MERGE = "$for", "$key", "$value", "$item", "$merge"
IF, IS, THEN, ELSE = "$if", "$is", "$then", "$else"
_HOLE = lazy_regex(r"\$\{([^}]*)\}")
_CALL = lazy_regex(r"(\w+)\(([^,]*)(?:,([\w-]+))?\)")
_ADDRESS = lazy_regex(r"(?:\w+://)?(?P<host>[A-Za-z0-9.-]+)")
PUBLIC_DOMAINS = frozenset({"com", "org", "net", "io", "dev", "cloud", "local", "internal", "svc"})
"""Second halves of hosts of two parts that are domains, not namespaces."""


class TemplateOption(NamedTuple):
    """One way to get a value: a fixed text, or a path, through a function if one is named."""

    fixed: str | int | None
    path: tuple[PathStep, ...] = ()
    function: str = ""
    argument: str = ""


TemplatePart: TypeAlias = str | tuple[TemplateOption, ...]


def make_scope(body: JsonObject, kind: Kind) -> JsonObject:
    """What a template may speak of: the object, and short names for what is asked for most."""
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
    """A template filled from a scope; None where a text needs what is not there."""
    match template:
        case str():
            return _fill(template, scope)
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
    """A name; empty where it needs what is not there."""
    made = _fill(template, scope)
    return made if isinstance(made, str) else "" if made is None else str(made)


def list_item_scopes(scope: JsonObject, path: str) -> Iterator[JsonObject]:
    """A scope for each item at a path; the scope itself where no path is given.

    A text is a list of words with commas between them.
    """
    if not path:
        yield scope
        return
    found = find_value(scope, path)
    if isinstance(found, str):
        found = [word.strip() for word in found.split(",") if word.strip()]
    if isinstance(found, dict):
        yield from ({**scope, "key": key, "item": item} for key, item in sorted(found.items()))
    elif isinstance(found, list):
        yield from ({**scope, "key": place, "item": item} for place, item in enumerate(found))


def check_template(template: object) -> None:
    """Raise ValueError for a template with a path that is none."""
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
    """A text as fixed parts and holes. Raises ValueError for a hole that cannot be filled."""
    return tuple(
        tuple(_parse_option(one.strip()) for one in part.split("|")) if is_hole else part
        for part, is_hole in zip(_HOLE.split(text), cycle((False, True)))
        if part or is_hole
    )


def _parse_option(text: str) -> TemplateOption:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return TemplateOption(text[1:-1])
    if text.isdigit():
        return TemplateOption(int(text))
    called = _CALL.fullmatch(text)
    if called is None:
        return TemplateOption(None, parse_path(text))
    if called[1] not in FUNCTIONS:
        known = ", ".join(sorted(FUNCTIONS))
        raise ValueError(f"there is no function `{called[1]}`, only {known}")
    return TemplateOption(None, parse_path(called[2]), called[1], called[3] or "")


def _fill(text: str, scope: JsonObject) -> Json:
    if "${" not in text:
        return text
    pieces = parse_text(text)
    if len(pieces) == 1 and not isinstance(pieces[0], str):
        return _first(pieces[0], scope)
    parts = [piece if isinstance(piece, str) else _first(piece, scope) for piece in pieces]
    if any(part is None or isinstance(part, dict | list) for part in parts):
        return None
    return "".join(_written(part) for part in parts)


def _written(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _first(options: tuple[TemplateOption, ...], scope: JsonObject) -> Json:
    for option in options:
        if option.fixed is not None:
            return option.fixed
        found = follow_path(scope, option.path)
        value = FUNCTIONS[option.function](found, option.argument) if option.function else found
        if value is not None and value != "":
            return value
    return None


def _render_mapping(template: dict[str, object], scope: JsonObject) -> Json:
    if FOR in template:
        return _render_each(template, scope)
    if IF in template:
        found = find_value(scope, str(template[IF]))
        is_so = found == template[IS] if IS in template else found is not None
        return render(template.get(THEN if is_so else ELSE), scope)
    if MERGE in template:
        parts = get_mappings(render(template[MERGE], scope))
        return {name: value for part in parts for name, value in part.items()}
    return _known((render_text(key, scope), render(template[key], scope)) for key in template)


def _render_each(template: dict[str, object], scope: JsonObject) -> Json:
    scopes = list_item_scopes(scope, str(template[FOR]))
    if ITEM in template:
        items = (render(template[ITEM], inner) for inner in scopes)
        return [item for item in items if item is not None]
    key = str(template.get(KEY, "${key}"))
    return _known((render_text(key, inner), render(template.get(VALUE), inner)) for inner in scopes)


def _known(pairs: Iterable[tuple[str, Json]]) -> JsonObject:
    return {name: value for name, value in pairs if name and value is not None}


def _text(value: Json) -> Json:
    return None if value is None or isinstance(value, dict | list) else _written(value)


def _called(address: Json) -> tuple[str, str]:
    """The Service and the namespace that a host names; nothing where it is outside."""
    found = _ADDRESS.match(address) if isinstance(address, str) else None
    parts = found["host"].rstrip(".").split(".") if found else []
    match parts:
        case [service]:
            return service, ""
        case [service, namespace] if namespace not in PUBLIC_DOMAINS:
            return service, namespace
        case [service, namespace, "svc", *_]:
            return service, namespace
        case _:
            return "", ""


def _members(sets: Json) -> Json:
    """How many members the sets of a list ask for together."""
    return int(evaluate_amount({"sets": sets}, "sum(sets,count)")) or None


def _option(arguments: Json, name: str) -> Json:
    """What an option of a command line says: `--name=value`, or `--name` and the next word."""
    words = [str(word) for word in arguments] if isinstance(arguments, list) else []
    for at, word in enumerate(words):
        flag, sign, value = word.lstrip("-").partition("=")
        if word.startswith("-") and flag == name:
            said = value if sign else next(iter(words[at + 1 :]), "")
            return None if "$(" in said else said  # a variable, which nobody knows here
    return None


FUNCTIONS: dict[str, Callable[[Json, str], Json]] = {
    "count": lambda value, _: len(value) if isinstance(value, list | dict) else None,
    "group_of": lambda value, _: value.rpartition("/")[0] if isinstance(value, str) else None,
    "members": lambda value, _: _members(value),
    "lower": lambda value, _: value.lower() if isinstance(value, str) else None,
    "namespace_of": lambda value, _: _called(value)[1] or None,
    "option": _option,
    "service": lambda value, _: _called(value)[0] or None,
    "text": lambda value, _: _text(value),
}


def status_matches(status: Json, wanted: Json) -> bool:
    """Whether a status is this one: it agrees somewhere and differs nowhere."""
    return bool(_agreement(wanted, status))


def _agreement(wanted: Json, actual: Json) -> int | None:
    """How many leaves are the same; None where one differs."""
    if wanted == NOW:
        return 0 if isinstance(actual, str) else None
    if isinstance(wanted, dict):
        if not isinstance(actual, dict):
            return None
        pairs = [(value, actual[key]) for key, value in wanted.items() if key in actual]
        return _together(pairs)
    if isinstance(wanted, list):
        if not isinstance(actual, list) or len(actual) != len(wanted):
            return None
        return _together(
            [(one, find_counterpart(one, place, actual)) for place, one in enumerate(wanted)]
        )
    return 1 if wanted == actual and type(wanted) is type(actual) else None


def _together(pairs: list[tuple[Json, Json]]) -> int | None:
    counts = [_agreement(wanted, actual) for wanted, actual in pairs]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def find_counterpart(item: Json, place: int, actual: list[Json]) -> Json:
    """Conditions are found by their type, whatever order a server keeps them in."""
    if isinstance(item, dict) and "type" in item:
        same = (one for one in actual if isinstance(one, dict) and one.get("type") == item["type"])
        return next(same, None)
    return actual[place]
