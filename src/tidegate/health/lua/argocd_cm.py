"""Reads scripts where Argo CD keeps them: in its ConfigMap `argocd-cm`, or in the data of one.

    resource.customizations.health.<group>_<kind>: |        # or <kind>, for the core group
    resource.customizations.useOpenLibs.<group>_<kind>: "true"
    resource.customizations: |                              # the old form; may have patterns
      <group>/<kind>:
        health.lua: |
        health.lua.useOpenLibs: true

The new keys are laid over the old form, field by field. Other customizations are none of health's
business and are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from tidegate.documents import Document, find_locations, read_documents
from tidegate.documents.decoder import FileProblem, decode
from tidegate.errors import KnowledgeError, Location, TidegateError, flatten_errors, sanitize
from tidegate.health.lua.patterns import check_key
from tidegate.health.lua.rules import LuaRules, Script
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json

OLD = "resource.customizations"
NEW = f"{OLD}."
HEALTH, LIBRARIES = "health", "useOpenLibs"
OTHERS = frozenset({"actions", "ignoreDifferences", "ignoreResourceUpdates", "knownTypeFields"})
ALL, EVERYTHING = "all", "*/*"
NAME = "argocd-cm"
SWITCHES = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
"""How Go writes booleans."""


class OldEntry(msgspec.Struct, frozen=True):
    """What the old form says of a kind; other customizations may stand beside it."""

    script: str = msgspec.field(default="", name="health.lua")
    open_libs: bool = msgspec.field(default=False, name="health.lua.useOpenLibs")


def read_lua_rules(content: bytes, name: str) -> LuaRules:
    """The scripts of a file. Raises one ExceptionGroup with an error for each mistake."""
    try:
        settings = [*_settings(content, name)]
    except TidegateError as error:
        raise _refusal(name, [error]) from error
    return _read_all(settings, content, name)


def lua_rules_of(settings: Iterable[tuple[str, str, Location]]) -> LuaRules:
    """The scripts among settings that were read already; others are passed over. Raises the same.

    The old form comes first, wherever it stands.
    """
    mine = [one for one in settings if one[0] == OLD or one[0].startswith(NEW)]
    mine.sort(key=lambda one: one[0] != OLD)
    return _read_all(mine, b"", mine[0][2].name if mine else NAME)


def _read_all(
    settings: Iterable[tuple[str, Json, Location]], content: bytes, name: str
) -> LuaRules:
    scripts: dict[str, Script] = {}
    wrong: list[TidegateError] = []
    for key, value, where in settings:
        try:
            if key == OLD:
                scripts |= _read_old_form(_text(key, value, where), content, where)
            else:
                scripts |= _laid_over(scripts, key, _text(key, value, where), where)
        except* TidegateError as group:
            wrong += flatten_errors(group)
    if wrong:
        raise _refusal(name, wrong)
    return LuaRules.of(scripts.items())


def _settings(content: bytes, name: str) -> Iterator[tuple[str, Json, Location]]:
    """All customizations. The old form comes first: the new keys are laid over it."""
    holders = [document for document in read_documents(content, name) if _has_settings(document)]
    if not holders:
        problem = f"there is no ConfigMap `{NAME}` in it, and no key that begins with `{OLD}`"
        hint = "docs/reference/health-rules.md says what a file of rules looks like"
        raise KnowledgeError("health.lua.none", problem, location=Location(name), hint=hint)
    for document in holders:
        inside = ("data",) if "kind" in document.body else ()
        settings = get_mapping(document.body, *inside)
        keys = [key for key in settings if key == OLD or key.startswith(NEW)]
        keys.sort(key=lambda key: key != OLD)
        places = find_locations(content, [(document, (*inside, key)) for key in keys])
        for key, where in zip(keys, places, strict=True):
            yield key, settings[key], where


def _has_settings(document: Document) -> bool:
    body = document.body
    if "kind" not in body:
        return any(key.startswith(OLD) for key in body)
    return body["kind"] == "ConfigMap" and get_text(body, "metadata", "name") == NAME


def _text(key: str, value: Json, where: Location) -> str:
    if not isinstance(value, str):
        problem = f"the value of `{sanitize(key)}` must be a text"
        hint = "put it in quotes, as a ConfigMap has it"
        raise KnowledgeError("health.lua.value", problem, location=where, hint=hint)
    return value


def _read_old_form(text: str, content: bytes, where: Location) -> dict[str, Script]:
    """Lines in the text become lines of the file, where the text stands in the file as it is.

    `where`: the place of the text's own key in the file that holds `content`.
    """
    inner = text.splitlines()
    outer = content.decode(errors="replace").splitlines()[where.line :]

    def in_file(found: Location | None) -> Location:
        if found is None or not 0 < found.line <= min(len(inner), len(outer)):
            return where
        if inner[found.line - 1].strip() != outer[found.line - 1].strip():
            return where
        return Location(where.name, where.line + found.line, field=found.field)

    try:
        found = decode(text, where.name, dict[str, OldEntry], noun="customization", check=_flaws)
    except* TidegateError as group:
        for error in flatten_errors(group):
            error.location = in_file(error.location)
        raise
    documents = read_documents(text, where.name)[:1]
    wanted = [(document, (key,)) for document in documents for key in document.body]
    placed = zip(found[0].items() if found else (), find_locations(text, wanted), strict=True)
    return {
        key: Script(entry.script, entry.open_libs, in_file(place)) for (key, entry), place in placed
    }


def _flaws(entries: dict[str, OldEntry]) -> Iterator[FileProblem]:
    for key in entries:
        try:
            check_key(key)
        except KnowledgeError as error:
            yield (key,), error


def _laid_over(
    known: dict[str, Script], key: str, value: str, where: Location
) -> dict[str, Script]:
    """A script and its libraries may each be given without the other, in any order."""
    kind_of_rule, *rest = key.removeprefix(NEW).split(".", 1)
    if not rest:
        return {}  # Argo CD does not look at keys without a kind either
    target = _target(rest[0], key, where)
    script = known.get(target, Script(""))
    if kind_of_rule == HEALTH:
        return {target: replace(script, text=value, where=where)}
    if kind_of_rule == LIBRARIES:
        if value not in SWITCHES:
            problem = f"`{sanitize(value)}` is neither true nor false"
            raise KnowledgeError("health.lua.value", problem, location=where)
        return {target: replace(script, open_libs=SWITCHES[value])}
    if kind_of_rule not in OTHERS:
        problem = f"there are no customizations of the type `{sanitize(kind_of_rule)}`"
        known_types = ", ".join(f"`{one}`" for one in (HEALTH, LIBRARIES, *sorted(OTHERS)))
        hint = f"there are {known_types}"
        raise KnowledgeError("health.lua.key", problem, location=where, hint=hint)
    return {}


def _target(group_kind: str, key: str, where: Location) -> str:
    names = group_kind.split("_")
    if not group_kind or len(names) > 2:  # noqa: PLR2004 - a group and a kind
        problem = f"`{sanitize(key)}` does not end with a group and a kind"
        hint = "write <group>_<kind>, or <kind> for the core group"
        raise KnowledgeError("health.lua.key", problem, location=where, hint=hint)
    target = EVERYTHING if group_kind == ALL else "/".join(names)
    check_key(target, where)
    return target


def _refusal(name: str, errors: list[TidegateError]) -> ExceptionGroup[TidegateError]:
    return ExceptionGroup(f"rules of {name} cannot be used", errors)
