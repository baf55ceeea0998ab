"""Reader of health scripts in the ConfigMap `argocd-cm`, or in its bare data.

    resource.customizations.health.<group>_<kind>: |        # or <kind>, for the core group
    resource.customizations.useOpenLibs.<group>_<kind>: "true"
    resource.customizations: |                              # the legacy form; may have patterns
      <group>/<kind>:
        health.lua: |
        health.lua.useOpenLibs: true

The new keys override the legacy form, field by field. Other customizations are ignored.

Like `GetResourceOverrides` in `util/settings/settings.go` of Argo CD 3.5.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from tidegate.documents import Document, find_locations, read_documents
from tidegate.documents.decoder import FileProblem, decode
from tidegate.errors import KnowledgeError, Location, TidegateError, flatten_errors, sanitize
from tidegate.health.lua.patterns import check_key
from tidegate.health.lua.rules import LuaRules, LuaScript
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json

LEGACY_KEY = "resource.customizations"
KEY_PREFIX = f"{LEGACY_KEY}."
HEALTH, OPEN_LIBS = "health", "useOpenLibs"
OTHER_CUSTOMIZATIONS = frozenset(
    {"actions", "ignoreDifferences", "ignoreResourceUpdates", "knownTypeFields"}
)
ALL_KINDS, ANY_GROUP_KIND = "all", "*/*"
CONFIG_MAP_NAME = "argocd-cm"
GO_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
"""Spellings that Go accepts for booleans (`strconv.ParseBool`)."""


class LegacyCustomization(msgspec.Struct, frozen=True):
    """A customization in the legacy form. Other fields may be present."""

    script: str = msgspec.field(default="", name="health.lua")
    """The health script; empty for none."""
    open_libs: bool = msgspec.field(default=False, name="health.lua.useOpenLibs")
    """Whether the script may use the standard libraries of Lua."""


def read_lua_rules(content: bytes, name: str) -> LuaRules:
    """Return the scripts of a file. Raises one ExceptionGroup with an error for each mistake."""
    try:
        settings = [*_settings(content, name)]
    except TidegateError as error:
        raise _error_group(name, [error]) from error
    return _read_all(settings, content, name)


def lua_rules_from_settings(settings: Iterable[tuple[str, str, Location]]) -> LuaRules:
    """Return the scripts among settings and ignore other settings.

    The legacy form is applied first. Raises one ExceptionGroup with an error for each mistake.
    """
    customizations = [
        setting
        for setting in settings
        if setting[0] == LEGACY_KEY or setting[0].startswith(KEY_PREFIX)
    ]
    customizations.sort(key=lambda setting: setting[0] != LEGACY_KEY)
    return _read_all(
        customizations, b"", customizations[0][2].name if customizations else CONFIG_MAP_NAME
    )


def _read_all(
    settings: Iterable[tuple[str, Json, Location]], content: bytes, name: str
) -> LuaRules:
    scripts: dict[str, LuaScript] = {}
    errors: list[TidegateError] = []
    for key, value, location in settings:
        try:
            if key == LEGACY_KEY:
                scripts |= _read_legacy_form(_require_text(key, value, location), content, location)
            else:
                scripts |= _read_customization(
                    scripts, key, _require_text(key, value, location), location
                )
        except* TidegateError as group:
            errors += flatten_errors(group)
    if errors:
        raise _error_group(name, errors)
    return LuaRules.from_scripts(scripts.items())


def _settings(content: bytes, name: str) -> Iterator[tuple[str, Json, Location]]:
    """Yield all customizations. The legacy form comes first, since the new keys override it."""
    holders = [document for document in read_documents(content, name) if _has_settings(document)]
    if not holders:
        problem = (
            f"no ConfigMap `{CONFIG_MAP_NAME}` found, and no key that starts with `{LEGACY_KEY}`"
        )
        hint = "see docs/reference/health-rules.md for the format"
        raise KnowledgeError("health.lua.none", problem, location=Location(name), hint=hint)
    for document in holders:
        parent = ("data",) if "kind" in document.body else ()
        settings = get_mapping(document.body, *parent)
        keys = [key for key in settings if key == LEGACY_KEY or key.startswith(KEY_PREFIX)]
        keys.sort(key=lambda key: key != LEGACY_KEY)
        locations = find_locations(content, [(document, (*parent, key)) for key in keys])
        for key, location in zip(keys, locations, strict=True):
            yield key, settings[key], location


def _has_settings(document: Document) -> bool:
    body = document.body
    if "kind" not in body:
        return any(key.startswith(LEGACY_KEY) for key in body)
    return body["kind"] == "ConfigMap" and get_text(body, "metadata", "name") == CONFIG_MAP_NAME


def _require_text(key: str, value: Json, location: Location) -> str:
    if not isinstance(value, str):
        problem = f"the value of `{sanitize(key)}` must be a string"
        hint = "put it in quotes, as in a ConfigMap"
        raise KnowledgeError("health.lua.value", problem, location=location, hint=hint)
    return value


def _read_legacy_form(text: str, content: bytes, location: Location) -> dict[str, LuaScript]:
    """Return the scripts of the legacy form.

    Locations in the text are mapped to lines of the file if the text is literally part of
    `content`. `location` is that of the key in the file.
    """
    inner = text.splitlines()
    outer = content.decode(errors="replace").splitlines()[location.line :]

    def in_file(customizations: Location | None) -> Location:
        if customizations is None or not 0 < customizations.line <= min(len(inner), len(outer)):
            return location
        if inner[customizations.line - 1].strip() != outer[customizations.line - 1].strip():
            return location
        return Location(
            location.name, location.line + customizations.line, field=customizations.field
        )

    try:
        customizations = decode(
            text,
            location.name,
            dict[str, LegacyCustomization],
            noun="customization",
            check=_find_key_problems,
        )
    except* TidegateError as group:
        for error in flatten_errors(group):
            error.location = in_file(error.location)
        raise
    documents = read_documents(text, location.name)[:1]
    fields = [(document, (key,)) for document in documents for key in document.body]
    located = zip(
        customizations[0].items() if customizations else (),
        find_locations(text, fields),
        strict=True,
    )
    return {
        key: LuaScript(entry.script, entry.open_libs, in_file(place))
        for (key, entry), place in located
    }


def _find_key_problems(entries: dict[str, LegacyCustomization]) -> Iterator[FileProblem]:
    for key in entries:
        try:
            check_key(key)
        except KnowledgeError as error:
            yield (key,), error


def _read_customization(
    scripts: dict[str, LuaScript], key: str, value: str, location: Location
) -> dict[str, LuaScript]:
    """Return the changed script. A script and its `useOpenLibs` may come in any order."""
    customization, *rest = key.removeprefix(KEY_PREFIX).split(".", 1)
    if not rest:
        return {}  # Argo CD ignores keys without a kind, too
    target = _target(rest[0], key, location)
    script = scripts.get(target, LuaScript(""))
    if customization == HEALTH:
        return {target: replace(script, text=value, location=location)}
    if customization == OPEN_LIBS:
        if value not in GO_BOOLEANS:
            problem = f"`{sanitize(value)}` is neither true nor false"
            raise KnowledgeError("health.lua.value", problem, location=location)
        return {target: replace(script, open_libs=GO_BOOLEANS[value])}
    if customization not in OTHER_CUSTOMIZATIONS:
        problem = f"unknown customization `{sanitize(customization)}`"
        known_types = ", ".join(
            f"`{name}`" for name in (HEALTH, OPEN_LIBS, *sorted(OTHER_CUSTOMIZATIONS))
        )
        hint = f"use one of {known_types}"
        raise KnowledgeError("health.lua.key", problem, location=location, hint=hint)
    return {}


def _target(group_kind: str, key: str, location: Location) -> str:
    names = group_kind.split("_")
    if not group_kind or len(names) > 2:  # noqa: PLR2004 - a group and a kind
        problem = f"`{sanitize(key)}` does not end with a group and a kind"
        hint = "write <group>_<kind>, or <kind> for the core group"
        raise KnowledgeError("health.lua.key", problem, location=location, hint=hint)
    target = ANY_GROUP_KIND if group_kind == ALL_KINDS else "/".join(names)
    check_key(target, location)
    return target


def _error_group(name: str, errors: list[TidegateError]) -> ExceptionGroup[TidegateError]:
    return ExceptionGroup(f"cannot use the rules of {name}", errors)
