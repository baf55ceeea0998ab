"""Argo CD's options on an object: comma lists in annotations, read as Argo CD reads them."""

from __future__ import annotations

from tidegate.model.objects import Json
from tidegate.model.plan import Consent, Handling
from tidegate.model.reading import mapping

OPTIONS = "argocd.argoproj.io/sync-options"
KEEP = "helm.sh/resource-policy"
CONSENTS = {"false": Consent.NO, "confirm": Consent.ASK}
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


def read_handling(body: Body, defaults: tuple[str, ...] = ()) -> Handling:
    """How an object wants to be treated; `defaults` are the options of its unit.

    Force is the one option that a unit cannot set for all its objects.
    """
    notes = notes_of(body)
    own = read_list(notes.get(OPTIONS, ""))
    either = (*own, *defaults)
    kept = "keep" in read_list(notes.get(KEEP, ""))
    return Handling(
        replaces="Replace=true" in either,
        forces="Force=true" in own,
        checks="Validate=false" not in either,
        waits_for_kind="SkipDryRunOnMissingResource=true" in either,
        prune=_consent(own, defaults, "Prune"),
        delete=Consent.NO if kept else _consent(own, defaults, "Delete"),
        last="PruneLast=true" in either,
    )


def _consent(own: tuple[str, ...], defaults: tuple[str, ...], name: str) -> Consent:
    """Any value on the object overrides the unit's."""
    said = value_of(own, name)
    if said is None:
        said = value_of(defaults, name)
    return CONSENTS.get(said or "", Consent.YES)
