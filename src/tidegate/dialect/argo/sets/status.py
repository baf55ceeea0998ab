"""What Argo CD says of an ApplicationSet: its conditions, its Applications, and the steps of these.

Its controller looks at nothing but the Applications themselves, and so do we: what they say of
their last sync, of Git and of their health is all that a step is judged by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tidegate.dialect.argo.sets.applications import Application
from tidegate.dialect.argo.sets.rolling import has_steps, steps_of
from tidegate.dialect.declared import DeclaredSet
from tidegate.dialect.times import stamp
from tidegate.errors import Place
from tidegate.model.account import Going, ObjectAccount, OwnStatus, Provenance, UnitAccount
from tidegate.model.event import Result
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, text

Body = dict[str, Json]
MOST_TOLD = 5_000
"""Resources of a status."""
WAITING, PROGRESSING, HEALTHY = "Waiting", "Progressing", "Healthy"
SAID = {
    WAITING: "Application has pending changes, setting status to Waiting.",
    PROGRESSING: "Application resource became Progressing, updating status to Progressing.",
    HEALTHY: "Application resource became Healthy, updating status to Healthy.",
}
NO_STEP = "-1"
ERROR, GENERATED, UP_TO_DATE = "ErrorOccurred", "ParametersGenerated", "ResourcesUpToDate"
ROLLING, INVALID = "RolloutProgressing", "InvalidRolloutConfig"
STATES = ((ERROR, "Degraded"), (ROLLING, PROGRESSING), (UP_TO_DATE, HEALTHY))
"""What a set is called by the first of its conditions that holds."""
ALL_WELL = "All applications have been generated successfully"
PARAMETERS = "Successfully generated parameters for all Applications"


def set_status(own: Body, account: UnitAccount, _sources: Sequence[Provenance]) -> OwnStatus | None:
    """The status of a set, given the one it has; nothing before anything of it was looked at."""
    if account.going is Going.WAITS:
        return None
    before, now = mapping(own, "status"), stamp(account.now)
    lives = [(one, _body(one)) for one in account.objects if one.lives and one.is_wanted]
    entries, rollout = [*_entries(own, before, lives, now)], _is_rolling(own)
    conditions = [*_told(before, [*_conditions(own, account, entries, lives)], now)]
    resources = sorted(map(_resource, lives), key=lambda one: text(one, "name"))
    status: Body = {
        "conditions": list[Json](conditions),
        "health": _health(before, conditions, now),
        "resources": list[Json](resources[:MOST_TOLD]),
        "resourcesCount": len(resources),
        **({"applicationStatus": list[Json](entries)} if rollout else {}),
    }
    return OwnStatus({name: one for name, one in status.items() if one not in ([], {})})


def _is_rolling(own: Body) -> bool:
    return has_steps(_declared(own))


def _declared(own: Body) -> DeclaredSet:
    home, name = (text(own, "metadata", one) for one in ("namespace", "name"))
    return DeclaredSet(namespace=home, name=name, where=Place(name), body=own)


def state_of(application: Body) -> str:
    """Where in its step an Application is, by what it says itself."""
    synced = text(application, "status", "sync", "status") == "Synced"
    healthy = text(application, "status", "health", "status") == "Healthy"
    phase = text(application, "status", "operationState", "phase")
    if synced:
        return HEALTHY if healthy and phase != "Running" else PROGRESSING
    return PROGRESSING if phase in {"Running", "Failed", "Error"} else WAITING


def _entries(
    own: Body, before: Body, lives: Sequence[tuple[ObjectAccount, Body]], now: str
) -> Iterator[Body]:
    """An entry for each Application, by name; the time of what was so before stays."""
    made = [Application(body=body, path=(), number=0, params={}) for _, body in lives]
    steps, _ = steps_of(_declared(own), made)
    known = {text(one, "application"): one for one in mappings(before, "applicationStatus")}
    for one in sorted(made, key=lambda each: each.name):
        state, step = state_of(one.body), steps.get(one.name)
        entry: Body = {
            "application": one.name,
            "status": state,
            "step": str(step.number) if step and step.number else NO_STEP,
            "message": SAID[state],
            "targetRevisions": _revisions(one.body),
        }
        old = known.get(one.name, {})
        same = {**old, "lastTransitionTime": None} == {**entry, "lastTransitionTime": None}
        since = text(old, "lastTransitionTime") if same else now
        yield {**entry, "lastTransitionTime": since or now}


def _revisions(application: Body) -> list[Json]:
    one = text(application, "status", "sync", "revision")
    return [one] if one else [*listed(application, "status", "sync", "revisions")]


def _conditions(
    own: Body,
    account: UnitAccount,
    entries: Sequence[Body],
    lives: Sequence[tuple[ObjectAccount, Body]],
) -> Iterator[tuple[str, bool, str, str]]:
    """Type, status, reason and message."""
    wrong = _error(account)
    if wrong:
        yield ERROR, True, *wrong
        yield (
            GENERATED,
            account.is_known,
            *(
                ("ParametersGenerated", PARAMETERS)
                if account.is_known
                else ("ErrorOccurred", wrong[1])
            ),
        )
        yield UP_TO_DATE, False, *wrong
    else:
        yield ERROR, False, "ApplicationSetUpToDate", PARAMETERS
        yield GENERATED, True, "ParametersGenerated", PARAMETERS
        yield UP_TO_DATE, True, "ApplicationSetUpToDate", ALL_WELL
    if not _is_rolling(own):
        return
    made = [Application(body=body, path=(), number=0, params={}) for _, body in lives]
    _, findings = steps_of(_declared(own), made)
    yield (
        INVALID,
        bool(findings),
        f"ApplicationSet{'Inv' if findings else 'V'}alidRolloutConfig",
        findings[0].sentence if findings else "",
    )
    begun = [one for one in entries if text(one, "step") != NO_STEP]
    open_steps = [int(text(one, "step")) for one in begun if text(one, "status") != HEALTHY]
    if open_steps:
        said = f"ApplicationSet is performing rollout of step {min(open_steps)}"
        yield ROLLING, True, "ApplicationSetModified", said
    else:
        said = "ApplicationSet Rollout has completed"
        yield ROLLING, False, "ApplicationSetRolloutComplete", said


def _error(account: UnitAccount) -> tuple[str, str] | None:
    if not account.is_known:
        return "ApplicationGenerationFromParamsError", account.sentence
    if account.result == Result.FAILED or account.reason:
        return "UpdateApplicationError", account.sentence
    return None


def _told(before: Body, wanted: Sequence[tuple[str, bool, str, str]], now: str) -> Iterator[Body]:
    known = {text(one, "type"): one for one in mappings(before, "conditions")}
    for name, holds, reason, message in wanted:
        told: Body = {
            "type": name,
            "status": "True" if holds else "False",
            "reason": reason,
            "message": message,
        }
        old = known.get(name, {})
        same = all(old.get(key) == one for key, one in told.items())
        since = text(old, "lastTransitionTime") if same else now
        yield {**told, "lastTransitionTime": since or now}


def _health(before: Body, conditions: Sequence[Body], now: str) -> Body:
    held = {text(one, "type"): one for one in conditions if text(one, "status") == "True"}
    name, state = next((one for one in STATES if one[0] in held), ("", "Unknown"))
    message = text(held.get(name, {}), "message")
    known = mapping(before, "health")
    same = (text(known, "status"), text(known, "message")) == (state, message)
    since = text(known, "lastTransitionTime") if same else now
    return {"status": state, "message": message, "lastTransitionTime": since or now}


def _resource(live: tuple[ObjectAccount, Body]) -> Body:
    one, body = live
    kind = one.ref.kind
    health: Body = {
        key: text(body, "status", "health", key)
        for key in ("status", "message", "lastTransitionTime")
        if text(body, "status", "health", key)
    }
    entry: Body = {
        "group": kind.group,
        "version": kind.version,
        "kind": kind.name,
        "namespace": one.ref.namespace,
        "name": one.ref.name,
        "status": text(body, "status", "sync", "status"),
    }
    return {**entry, "health": health} if health else entry


def _body(one: ObjectAccount) -> Body:
    body: Body = msgspec.json.decode(one.body) if one.body else {}
    return body
