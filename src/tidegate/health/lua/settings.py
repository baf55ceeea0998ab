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

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tidegate.documents import Document, FieldPath, find_places, read
from tidegate.errors import DocumentError, OperatorsError, Place, TidegateError, foreign
from tidegate.health.lua.old_form import read_old_form
from tidegate.health.lua.patterns import check_key
from tidegate.health.lua.rules import LuaRules, Script
from tidegate.model.objects import Json
from tidegate.model.reading import text

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


def read_lua_rules(content: bytes, name: str) -> LuaRules:
    """The scripts of a file. Raises one ExceptionGroup with an error for each mistake."""
    try:
        documents = read(content, name)
    except DocumentError as error:
        raise _refusal(name, [error]) from error
    reading = _Reading(content, name)
    found = [one for document in documents for one in _settings(document)]
    if not found:
        problem = f"there is no ConfigMap `{NAME}` in it, and no key that begins with `{OLD}`"
        hint = "docs/reference/health-rules.md says what a file of rules looks like"
        place = Place(name)
        raise _refusal(name, [OperatorsError("health.lua.none", problem, where=place, hint=hint)])
    for document, inside, settings in found:
        reading.take(document, inside, settings)
    if reading.wrong:
        raise _refusal(name, reading.wrong)
    return LuaRules.of(reading.scripts.items())


def _settings(document: Document) -> Iterator[tuple[Document, FieldPath, dict[str, Json]]]:
    """Where the settings of a document stand, if it has any."""
    body = document.body
    if "kind" not in body and any(key.startswith(OLD) for key in body):
        yield document, (), body
    data = body.get("data")
    if body.get("kind") == "ConfigMap" and text(body, "metadata", "name") == NAME:
        yield document, ("data",), data if isinstance(data, dict) else {}


@dataclass(slots=True)
class _Reading:
    """What has been read of a file so far, and what is wrong with it."""

    content: bytes
    name: str
    scripts: dict[str, Script] = field(default_factory=dict)
    wrong: list[TidegateError] = field(default_factory=list)

    def take(self, document: Document, inside: FieldPath, settings: dict[str, Json]) -> None:
        """The old form first: the new keys are laid over it."""
        keys = [key for key in settings if key == OLD or key.startswith(NEW)]
        keys.sort(key=lambda key: key != OLD)
        places = find_places(self.content, [(document, (*inside, key)) for key in keys])
        for key, where in zip(keys, places, strict=True):
            try:
                self._take_key(key, settings[key], where)
            except OperatorsError as error:
                self.wrong.append(error)
            except ExceptionGroup as group:
                ours, others = group.split(TidegateError)
                if ours is None or others is not None:
                    raise
                self.wrong += [one for one in ours.exceptions if isinstance(one, TidegateError)]

    def _take_key(self, key: str, value: Json, where: Place) -> None:
        if not isinstance(value, str):
            problem = f"the value of `{foreign(key)}` must be a text"
            hint = "put it in quotes, as a ConfigMap has it"
            raise OperatorsError("health.lua.value", problem, where=where, hint=hint)
        if key == OLD:
            self.scripts.update(read_old_form(value, self.content, where))
            return
        kind_of_rule, *rest = key.removeprefix(NEW).split(".", 1)
        for group_kind in rest:  # Argo CD does not look at keys without one either
            target = _target(group_kind, key, where)
            known = self.scripts.get(target, Script(""))
            self.scripts[target] = _laid_over(known, kind_of_rule, value, where)


def _target(group_kind: str, key: str, where: Place) -> str:
    names = group_kind.split("_")
    if not group_kind or len(names) > 2:  # noqa: PLR2004 - a group and a kind
        problem = f"`{foreign(key)}` does not end with a group and a kind"
        hint = "write <group>_<kind>, or <kind> for the core group"
        raise OperatorsError("health.lua.key", problem, where=where, hint=hint)
    target = EVERYTHING if group_kind == ALL else "/".join(names)
    check_key(target, where)
    return target


def _laid_over(script: Script, kind_of_rule: str, value: str, where: Place) -> Script:
    """A script and its libraries may each be given without the other, in any order."""
    if kind_of_rule == HEALTH:
        return replace(script, text=value, where=where)
    if kind_of_rule == LIBRARIES:
        return replace(script, open_libs=_switch(value, where))
    if kind_of_rule not in OTHERS:
        problem = f"there are no customizations of the type `{foreign(kind_of_rule)}`"
        known = ", ".join(f"`{one}`" for one in (HEALTH, LIBRARIES, *sorted(OTHERS)))
        raise OperatorsError("health.lua.key", problem, where=where, hint=f"there are {known}")
    return script


def _switch(value: str, where: Place) -> bool:
    if value not in SWITCHES:
        problem = f"`{foreign(value)}` is neither true nor false"
        raise OperatorsError("health.lua.value", problem, where=where)
    return SWITCHES[value]


def _refusal(name: str, errors: list[TidegateError]) -> ExceptionGroup[TidegateError]:
    return ExceptionGroup(f"rules of {name} cannot be used", errors)
