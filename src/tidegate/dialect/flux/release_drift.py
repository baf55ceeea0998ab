"""What Flux says of a HelmRelease whose objects others have changed: a condition, and Events."""

from __future__ import annotations

from tidegate.dialect.flux.status import FluxConditions, Note
from tidegate.model.account import Became, ObjectAccount, UnitAccount
from tidegate.model.drift import ObjectDrift
from tidegate.model.ledger import DriftMode
from tidegate.model.objects import Ref

DRIFTED = "Drifted"
DETECTED, NONE_DETECTED = "DriftDetected", "NoDriftDetected"
CORRECTION = "correct cluster drift"
MENDED = {Became.CREATED: "created", Became.CONFIGURED: "configured"}


def tell_drift(
    account: UnitAccount, mode: DriftMode, conditions: FluxConditions, release: str
) -> tuple[Note, ...]:
    """What was found of a release, and what became of it. Where nobody looks, nothing is said."""
    if mode is DriftMode.DISABLED:
        conditions.drop(DRIFTED)
        return ()
    drifted = _drifted(account)
    is_left = any(one.became not in MENDED for one, _ in drifted)
    found = _found(drifted, release)
    if is_left:
        conditions.set(DRIFTED, "True", DETECTED, found)
    else:
        conditions.set(DRIFTED, "False", NONE_DETECTED, f"No drift detected for release {release}")
    notes: tuple[Note, ...] = (("Warning", DETECTED, found),) if drifted else ()
    mended = [one for one, _ in drifted if one.became in MENDED]
    if mended:
        lines = "\n".join(f"{_named(one.ref)} {MENDED[one.became]}" for one in mended)
        told = f"Cluster state of release {release} has been corrected:\n{lines}"
        notes = (*notes, ("Normal", "DriftCorrected", told))
    return notes


def tell_failed_correction(
    account: UnitAccount, conditions: FluxConditions, release: str, why: str
) -> tuple[Note, ...]:
    """What others have changed could not be put back, or not all of it."""
    drifted = _drifted(account)
    found = _found(drifted, release)
    conditions.set(DRIFTED, "True", DETECTED, found)
    partly = "partially " if any(one.became in MENDED for one, _ in drifted) else ""
    told = f"Failed to {partly}correct cluster state of release {release}:\n{why}"
    return ("Warning", DETECTED, found), ("Warning", "DriftCorrectionFailed", told)


def _drifted(account: UnitAccount) -> list[tuple[ObjectAccount, ObjectDrift]]:
    return [(one, one.drift) for one in account.objects if one.drift is not None]


def _found(drifted: list[tuple[ObjectAccount, ObjectDrift]], release: str) -> str:
    lines = "\n".join(f"{_named(one.ref)} {_changes(drift)}" for one, drift in drifted)
    return f"Cluster state of release {release} has drifted from the desired state:\n{lines}"


def _changes(drift: ObjectDrift) -> str:
    if drift.is_gone:
        return "removed"
    counts = f"{drift.added} additions, {drift.changed} changes, {drift.removed} removals"
    return f"changed ({counts})"


def _named(ref: Ref) -> str:
    return f"{ref.kind.name}/{ref.namespace}/{ref.name}"
