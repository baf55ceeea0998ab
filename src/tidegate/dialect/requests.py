"""What a person asks of a controller, as its own command does: by notes on a unit's own object.

Flux's controllers answer a stamp in `status.lastHandledReconcileAt`. Argo CD takes its note away
when it has looked again, and an operation when it has begun with it.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.dialect.argo.application import SKIPS, TRUE
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, number, part, text

Body = dict[str, Json]
REQUESTED = "reconcile.fluxcd.io/requestedAt"
REFRESH = "argocd.argoproj.io/refresh"
APPLICATION = "Application"
SUCCEEDED = "Succeeded"
ENDED = frozenset({SUCCEEDED, "Failed", "Error"})
"""Phases of an operation of Argo CD's that has come to its end."""


class RequestState(StrEnum):
    """How far a controller has come with what it was asked for."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"


class Heard(msgspec.Struct, frozen=True):
    """What a controller has answered so far, and in which words."""

    state: RequestState
    sentence: str = ""
    revision: str = ""


def is_suspended(own: Body) -> bool:
    """Whether somebody wants nothing done to a unit or a source."""
    if text(own, "kind") == APPLICATION:
        return text(own, "metadata", "annotations", SKIPS) in TRUE
    return part(own, "spec", "suspend") is True


def suspending(own: Body, *, suspends: bool) -> Body:
    """The merge patch that has a controller leave this alone, or take it up again."""
    if text(own, "kind") == APPLICATION:
        return {"metadata": {"annotations": {SKIPS: "true" if suspends else None}}}
    return {"spec": {"suspend": suspends}}


def requesting(stamp: str) -> Body:
    """The merge patch that asks a controller of Flux's for a reconciliation now."""
    return {"metadata": {"annotations": {REQUESTED: stamp}}}


def heard_from_flux(own: Body, stamp: str) -> Heard:
    """What has become of a request: it counts when it was taken up, and all of it is current."""
    if text(own, "status", "lastHandledReconcileAt") != stamp:
        return Heard(RequestState.PENDING, "it has not taken up the request")
    return _current(own)


def _current(own: Body) -> Heard:
    """How far a controller of Flux's has come with the object as it is."""
    ready = _condition(own, "Ready")
    message = text(ready, "message")
    stalled = _condition(own, "Stalled")
    generation = number(own, "metadata", "generation")
    is_late = number(own, "status", "observedGeneration", default=generation) < generation
    if text(stalled, "status") == "True" and not is_late:
        return Heard(RequestState.FAILED, text(stalled, "message") or message)
    is_under_way = text(_condition(own, "Reconciling"), "status") == "True"
    if is_late or is_under_way or text(ready, "status") != "True":
        return Heard(RequestState.PENDING, message or "it is reconciled")
    return Heard(RequestState.DONE, message, revision_of(own))


def heard_resumed(own: Body, before: Body) -> Heard:
    """What has become of a unit or a source that was resumed; `before`: as it was until then.

    Argo CD says when it looked last. It need not be content where nobody lets it sync by itself.
    """
    if text(own, "kind") != APPLICATION:
        return _current(own)
    status = mapping(own, "status")
    is_same = status.get("reconciledAt") == part(before, "status", "reconciledAt")
    if is_same and is_suspended(before):
        return Heard(RequestState.PENDING, "it has not looked at it again")
    sync, health = text(status, "sync", "status"), text(status, "health", "status")
    automated = part(own, "spec", "syncPolicy", "automated")
    is_automated = isinstance(automated, dict) and automated.get("enabled") is not False
    is_content = (sync, health) == ("Synced", "Healthy")
    is_busy = part(own, "operation") is not None
    if is_busy or (is_automated and not is_content):
        return Heard(RequestState.PENDING, f"{sync}, {health}")
    return Heard(RequestState.DONE, f"{sync}, {health}", text(status, "sync", "revision"))


def revision_of(own: Body) -> str:
    """What a unit of Flux's was last rolled out from, or a source has fetched."""
    status = mapping(own, "status")
    applied = text(status, "lastAppliedRevision") or text(status, "artifact", "revision")
    history = mappings(status, "history")
    return applied or (text(history[0], "chartVersion") if history else "")


def refreshing(*, hard: bool) -> Body:
    """The merge patch that has Argo CD compare an Application again."""
    return {"metadata": {"annotations": {REFRESH: "hard" if hard else "normal"}}}


def is_refreshed(own: Body) -> bool:
    return not text(own, "metadata", "annotations", REFRESH)


class SyncWish(msgspec.Struct, frozen=True, kw_only=True):
    """How Argo CD is asked to sync, as `argocd app sync` says it."""

    by: str
    revision: str = ""
    prunes: bool = False
    dry_run: bool = False
    forces: bool = False
    resources: tuple[tuple[str, str, str, str], ...] = ()
    """Group, kind, namespace and name of each; none are all."""


def syncing(own: Body, wish: SyncWish) -> Body:
    """The merge patch that begins an operation of Argo CD's."""
    options = [one for one in listed(own, "spec", "syncPolicy", "syncOptions") if one]
    resources: list[Json] = [
        {"group": group, "kind": kind, "name": name, **({"namespace": home} if home else {})}
        for group, kind, home, name in wish.resources
    ]
    sync: Body = {
        **({"revision": wish.revision} if wish.revision else {}),
        **({"prune": True} if wish.prunes else {}),
        **({"dryRun": True} if wish.dry_run else {}),
        **({"syncOptions": [*options]} if options else {}),
        **({"resources": resources} if resources else {}),
        "syncStrategy": {"hook": {"force": True} if wish.forces else {}},
    }
    retry = mapping(own, "spec", "syncPolicy", "retry")
    begun: Body = {"initiatedBy": {"username": wish.by}, "sync": sync}
    return {"operation": {**begun, **({"retry": retry} if retry else {})}}


def heard_from_argo(own: Body, asked: Body) -> Heard:
    """What has become of an operation; `asked`: the object as it was when the wish was written."""
    state = mapping(own, "status", "operationState")
    is_new = state.get("startedAt") != part(asked, "status", "operationState", "startedAt")
    if part(own, "operation") is not None and not is_new:
        return Heard(RequestState.PENDING, "it has not taken up the operation")
    phase, message = text(state, "phase"), text(state, "message")
    if part(own, "operation") is not None or phase not in ENDED or not is_new:
        return Heard(RequestState.PENDING, message)
    end = RequestState.DONE if phase == SUCCEEDED else RequestState.FAILED
    return Heard(end, message, text(state, "syncResult", "revision"))


def source_of(own: Body) -> tuple[str, str, str] | None:
    """Kind, namespace and name of the source that a unit of Flux's takes from."""
    spec = mapping(own, "spec")
    named = (
        mapping(spec, "sourceRef")
        or mapping(spec, "chartRef")
        or mapping(spec, "chart", "spec", "sourceRef")
    )
    if not named:
        return None
    home = text(named, "namespace") or text(own, "metadata", "namespace")
    return text(named, "kind"), home, text(named, "name")


def _condition(own: Body, name: str) -> Body:
    conditions = mappings(own, "status", "conditions")
    return next((one for one in conditions if one.get("type") == name), {})
