"""Argo CD's sync options: comma lists in annotations of objects, and the list that a unit has."""

from __future__ import annotations

from difflib import get_close_matches

import msgspec

from tidegate.errors import foreign
from tidegate.model.objects import Json, Propagation
from tidegate.model.policy import Consent, Handling, Policy
from tidegate.model.reading import mapping

OPTIONS = "argocd.argoproj.io/sync-options"
KEEP = "helm.sh/resource-policy"
CONSENTS = {"false": Consent.NO, "confirm": Consent.ASK}
PROPAGATIONS = {
    "PrunePropagationPolicy=background": Propagation.BACKGROUND,
    "PrunePropagationPolicy=foreground": Propagation.FOREGROUND,
    "PrunePropagationPolicy=orphan": Propagation.ORPHAN,
}
"""The first of these that a unit has counts."""
SWITCH = ("true", "false")
UNIT_OPTIONS = {
    "ApplyOutOfSyncOnly": SWITCH,
    "ClientSideApplyMigration": SWITCH,
    "CreateNamespace": SWITCH,
    "Delete": (*SWITCH, "confirm"),
    "FailOnSharedResource": SWITCH,
    "Prune": (*SWITCH, "confirm"),
    "PruneLast": SWITCH,
    "PrunePropagationPolicy": ("foreground", "background", "orphan"),
    "Replace": SWITCH,
    "RespectIgnoreDifferences": SWITCH,
    "ServerSideApply": SWITCH,
    "SkipDryRunOnMissingResource": SWITCH,
    "Validate": SWITCH,
}
"""What a unit may say, and the values of each."""
FORCES = "Force=true"
REFUSES_SHARED = "FailOnSharedResource=true"
REPLACES = "Replace=true"
Body = dict[str, Json]


def notes_of(body: Body) -> dict[str, str]:
    """The annotations that are texts."""
    notes = mapping(body, "metadata", "annotations")
    return {name: note for name, note in notes.items() if isinstance(note, str)}


def read_list(text: str) -> tuple[str, ...]:
    """The parts between commas: trimmed, none empty, each once."""
    parts = (part.strip() for part in text.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def says(body: Body, option: str) -> bool:
    """Whether an object has an option of its own."""
    note = mapping(body, "metadata", "annotations").get(OPTIONS)
    return isinstance(note, str) and option in read_list(note)


def what_is_wrong(option: str) -> str:
    """Why a unit cannot say this, and what it could say; empty where it can."""
    name, sign, value = option.partition("=")
    values = UNIT_OPTIONS.get(name)
    if name == "Force":
        return f"`Force` is for one object at a time: write it into its annotation `{OPTIONS}`"
    if values is None:
        known = {one.lower(): one for one in UNIT_OPTIONS}
        near = get_close_matches(name.lower(), known, n=1)
        all_of_them = f"there are {', '.join(UNIT_OPTIONS)}"
        hint = f"did you mean `{known[near[0]]}`?" if near else all_of_them
        return f"there is no option `{foreign(name)}`; {hint}"
    if value in values:
        return ""
    wrong = f"is not `{foreign(value)}`" if sign else "needs a value"
    return f"`{name}` {wrong}; it is one of {', '.join(values)}"


def with_options(policy: Policy, options: tuple[str, ...]) -> Policy:
    """The policy of a unit that has these options."""
    handling = Handling(
        replaces=REPLACES in options,
        checks="Validate=false" not in options,
        waits_for_kind="SkipDryRunOnMissingResource=true" in options,
        prune=_consent(options, "Prune", Consent.YES),
        delete=_consent(options, "Delete", Consent.YES),
        last="PruneLast=true" in options,
        propagation=_propagation(options),
    )
    return msgspec.structs.replace(
        policy,
        handling=handling,
        creates_namespace="CreateNamespace=true" in options,
        changed_only="ApplyOutOfSyncOnly=true" in options,
        refuses_shared=REFUSES_SHARED in options,
        leaves_others="ClientSideApplyMigration=false" in options,
        keeps_ignored="RespectIgnoreDifferences=true" in options,
    )


def read_handling(body: Body, defaults: Handling) -> Handling:
    """How an object wants to be treated; `defaults` are those of its unit.

    Force is the one option that a unit cannot set for all its objects: somebody who rolls it out
    can. Propagation is the one that an object cannot.
    """
    notes = notes_of(body)
    own = read_list(notes.get(OPTIONS, ""))
    kept = "keep" in read_list(notes.get(KEEP, ""))
    return Handling(
        replaces=defaults.replaces or REPLACES in own,
        forces=defaults.forces or FORCES in own,
        checks=defaults.checks and "Validate=false" not in own,
        waits_for_kind=defaults.waits_for_kind or "SkipDryRunOnMissingResource=true" in own,
        prune=_consent(own, "Prune", defaults.prune),
        delete=Consent.NO if kept else _consent(own, "Delete", defaults.delete),
        last=defaults.last or "PruneLast=true" in own,
        propagation=defaults.propagation,
    )


def _propagation(options: tuple[str, ...]) -> Propagation:
    said = (how for option, how in PROPAGATIONS.items() if option in options)
    return next(said, Propagation.FOREGROUND)


def _consent(options: tuple[str, ...], name: str, default: Consent) -> Consent:
    """What is said counts, whatever it is; else the default does."""
    said = _value_of(options, name)
    return default if said is None else CONSENTS.get(said, Consent.YES)


def _value_of(options: tuple[str, ...], name: str) -> str | None:
    """What the first option of a name says; one without a value says nothing."""
    found = (option for option in options if option.startswith(f"{name}="))
    return next((option.removeprefix(f"{name}=") for option in found), None)
