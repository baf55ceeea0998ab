"""Argo CD's sync options: comma lists in annotations of objects, and the list that a unit has."""

from __future__ import annotations

from difflib import get_close_matches

from tidegate.model.objects import Json, Propagation
from tidegate.model.plan import Consent, Handling
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
CHANGED_ONLY = "ApplyOutOfSyncOnly=true"
CREATES_NAMESPACE = "CreateNamespace=true"
FORCES = "Force=true"
KEEPS_LIVING = "RespectIgnoreDifferences=true"
LEAVES_OTHERS = "ClientSideApplyMigration=false"
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


def value_of(options: tuple[str, ...], name: str) -> str | None:
    """What the first option of a name says; one without a value says nothing."""
    found = (option for option in options if option.startswith(f"{name}="))
    return next((option.removeprefix(f"{name}=") for option in found), None)


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
        near = get_close_matches(name, UNIT_OPTIONS, n=1)
        guess = f"did you mean `{near[0]}`? " if near else ""
        return f"there is no option `{name}`; {guess}there are {', '.join(UNIT_OPTIONS)}"
    if value in values:
        return ""
    wrong = f"is not `{value}`" if sign else "needs a value"
    return f"`{name}` {wrong}; it is one of {', '.join(values)}"


def read_handling(body: Body, defaults: tuple[str, ...] = ()) -> Handling:
    """How an object wants to be treated; `defaults` are the options of its unit.

    Force is the one option that a unit cannot set for all its objects.
    """
    notes = notes_of(body)
    own = read_list(notes.get(OPTIONS, ""))
    either = (*own, *defaults)
    kept = "keep" in read_list(notes.get(KEEP, ""))
    return Handling(
        replaces=REPLACES in either,
        forces=FORCES in own,
        checks="Validate=false" not in either,
        waits_for_kind="SkipDryRunOnMissingResource=true" in either,
        prune=_consent(own, defaults, "Prune"),
        delete=Consent.NO if kept else _consent(own, defaults, "Delete"),
        last="PruneLast=true" in either,
        propagation=_propagation(defaults),
    )


def _propagation(defaults: tuple[str, ...]) -> Propagation:
    """It is said of a unit, and never of an object."""
    said = (how for option, how in PROPAGATIONS.items() if option in defaults)
    return next(said, Propagation.FOREGROUND)


def _consent(own: tuple[str, ...], defaults: tuple[str, ...], name: str) -> Consent:
    """Any value on the object overrides the unit's."""
    said = value_of(own, name)
    if said is None:
        said = value_of(defaults, name)
    return CONSENTS.get(said or "", Consent.YES)
