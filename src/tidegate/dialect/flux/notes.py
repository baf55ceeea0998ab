"""What an object itself says to Flux's controllers, by its labels and annotations.

A word counts wherever it stands, and in whichever case. Some are heard from the text in Git alone,
some from what lives, most from both.
"""

from __future__ import annotations

import msgspec

from tidegate.model.objects import Json
from tidegate.model.plan import Deed
from tidegate.model.policy import Consent, Handling
from tidegate.model.reading import mapping

Body = dict[str, Json]
PREFIX = "kustomize.toolkit.fluxcd.io/"
SSA, RECONCILE, FORCE, PRUNE = (
    f"{PREFIX}{word}" for word in ("ssa", "reconcile", "force", "prune")
)
DRIFT = "helm.toolkit.fluxcd.io/driftDetection"
MERGE, IF_NOT_PRESENT, IGNORE = "Merge", "IfNotPresent", "Ignore"
DISABLED, ENABLED = "disabled", "enabled"


def is_left_alone(body: Body) -> bool:
    """Whether it asks for being neither written nor deleted."""
    return _says(body, RECONCILE, DISABLED) or _says(body, SSA, IGNORE)


def is_undetected(body: Body) -> bool:
    """Whether it asks for being left out where drift of a release is looked for."""
    return _says(body, DRIFT, DISABLED)


def is_forced(body: Body) -> bool:
    """Whether it asks to be deleted and made again where it cannot be changed."""
    return _says(body, FORCE, ENABLED)


def deed_of(body: Body) -> Deed:
    """What is done to an object, by its text in Git."""
    if is_left_alone(body):
        return Deed.LEAVE
    return Deed.CREATE if _says(body, SSA, IF_NOT_PRESENT) else Deed.APPLY


def read_notes(body: Body, defaults: Handling) -> Handling:
    """How an object wants to be treated; `defaults` are those of its unit."""
    kept = is_left_alone(body) or _says(body, PRUNE, DISABLED)
    return msgspec.structs.replace(
        defaults,
        forces=defaults.forces or is_forced(body),
        merges=_says(body, SSA, MERGE),
        prune=Consent.NO if kept else defaults.prune,
        delete=Consent.NO if kept else defaults.delete,
    )


def _says(body: Body, name: str, value: str) -> bool:
    for part in ("labels", "annotations"):
        said = mapping(body, "metadata", part).get(name)
        if isinstance(said, str) and said.lower() == value.lower():
            return True
    return False
