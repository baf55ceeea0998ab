"""The operation of an Application: what was asked for, how far it is, what was done to each object.

Also what is kept of it: an entry of history, and Events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.dialect.times import stamp
from tidegate.model.account import Became, Going, ObjectAccount, UnitAccount
from tidegate.model.event import Result
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, number, part, text

Body = dict[str, Json]
SYNCED = "Synced"
PHASES = {"presync": "PreSync", "sync": "Sync", "postsync": "PostSync", "syncfail": "SyncFail"}
WHO: Body = {"username": "tidegate"}
KEPT_ENTRIES = 10
SHORT = 7
DONE = "successfully synced (all tasks run)"
UNDONE = "one or more synchronization tasks completed unsuccessfully"


def told_revision(at: Body) -> str:
    names = [text(at, "revision"), *(str(one) for one in listed(at, "revisions"))]
    return ", ".join(name[:SHORT] if len(name) == 40 else name for name in names if name)  # noqa: PLR2004 - a commit


def source_of(spec: Body) -> Body:
    """One source or several, as the Application has them."""
    return {name: spec[name] for name in ("source", "sources") if spec.get(name)}


def operation_state(own: Body, account: UnitAccount, at: Body) -> Body:
    spec, before = mapping(own, "spec"), mapping(own, "status", "operationState")
    policy = mapping(spec, "syncPolicy")
    sync: Body = {**at, "syncStrategy": {"hook": {}}}
    sync |= {"prune": True} if part(policy, "automated", "prune") is True else {}
    sync |= {"syncOptions": policy["syncOptions"]} if policy.get("syncOptions") else {}
    operation: Body = {"sync": sync, "initiatedBy": WHO}
    operation |= {"retry": policy["retry"]} if policy.get("retry") else {}
    is_ended = account.going is Going.ENDED
    goes_on = not account.operated and text(before, "startedAt")
    state: Body = {
        "operation": operation,
        "phase": _phase(account),
        "message": message_of(account),
        "startedAt": text(before, "startedAt") if goes_on else stamp(account.begun),
        "syncResult": {
            "revision": "",
            **at,
            **source_of(spec),
            "resources": list[Json](_results(account.objects)),
        },
    }
    state |= {"retryCount": account.retries} if account.retries else {}
    return {**state, "finishedAt": stamp(account.now)} if is_ended else state


def _phase(account: UnitAccount) -> str:
    if account.going is not Going.ENDED:
        return "Running"
    return "Succeeded" if account.result == Result.PASSED else "Failed"


def message_of(account: UnitAccount) -> str:
    if account.going is not Going.ENDED:
        return _waiting(account.objects)
    if account.result == Result.PASSED:
        return DONE
    if account.result == Result.STOPPED:
        return f"Operation terminated{f': {account.sentence}' if account.sentence else ''}"
    told = f"{UNDONE}, reason: {account.sentence}" if account.sentence else UNDONE
    return f"{told} (retried {account.retries} times)." if account.retries else told


def _waiting(objects: Iterable[ObjectAccount]) -> str:
    """Whom an operation waits for: a hook before all others."""
    waits = [one for one in objects if one.waits]
    if not waits:
        return "one or more tasks are running"
    hooks = [one for one in waits if one.is_hook]
    first, rest = (hooks or waits)[0].ref, len(waits) - 1
    reason = "completion of hook" if hooks else "healthy state of"
    noun = "hooks" if len(hooks) == len(waits) else "resources"
    more = f" and {rest} more {noun}" if rest else ""
    return f"waiting for {reason} {first.kind.group}/{first.kind.name}/{first.name}{more}"


def _results(objects: Iterable[ObjectAccount]) -> Iterator[Body]:
    """What was done to each object, in its order."""
    for one in objects:
        if one.became is Became.NOTHING:
            continue
        kind, phase = one.ref.kind, PHASES.get(one.phase, "Sync")
        entry: Body = {
            "group": kind.group,
            "version": kind.version,
            "kind": kind.name,
            "namespace": one.ref.namespace,
            "name": one.ref.name,
            "syncPhase": phase,
            "hookPhase": _hook_phase(one),
            "message": _deed(one),
        }
        yield {**entry, **({"hookType": phase} if one.is_hook else {"status": _outcome(one)})}


def _hook_phase(one: ObjectAccount) -> str:
    return "Failed" if one.became is Became.FAILED else "Running" if one.waits else "Succeeded"


def _outcome(one: ObjectAccount) -> str:
    match one.became:
        case Became.PRUNED:
            return "Pruned"
        case Became.KEPT:
            return "PruneSkipped"
        case Became.FAILED if not one.is_synced:
            return "SyncFailed"
        case _:
            return SYNCED


def _deed(one: ObjectAccount) -> str:
    kind = one.ref.kind
    name = f"{kind.name.lower()}.{kind.group}/{one.ref.name}" if kind.group else ""
    name = name or f"{kind.name.lower()}/{one.ref.name}"
    match one.became:
        case Became.PRUNED:
            return "pruned"
        case Became.KEPT:
            return "ignored (requires pruning confirmation)"
        case Became.FAILED:
            return one.sentence or "it is not healthy"
        case Became.UNCHANGED:
            return f"{name} unchanged"
        case _:
            said = one.sentence if one.is_hook else ""
            return said or f"{name} serverside-applied"


def history_with(before: Body, spec: Body, account: UnitAccount, at: Body) -> list[Json]:
    """What was deployed, the newest last; as many as the Application keeps."""
    known = mappings(before, "history")
    entry: Body = {
        "id": max((number(one, "id") for one in known), default=-1) + 1,
        **at,
        **source_of(spec),
        "deployStartedAt": stamp(account.begun),
        "deployedAt": stamp(account.now),
        "initiatedBy": WHO,
    }
    limit = max(0, number(spec, "revisionHistoryLimit", default=KEPT_ENTRIES))
    kept: list[Json] = [*known, entry]
    return kept[-limit:] if limit else []


def operation_notes(before: Body, account: UnitAccount, at: Body) -> Iterator[tuple[str, str, str]]:
    """The Events of an operation: its beginning and its end."""
    to, known = told_revision(at), mapping(before, "operationState")
    is_known = (text(known, "phase"), text(known, "startedAt")) == ("Running", stamp(account.begun))
    if account.going is Going.RUNS and is_known:
        return
    if account.going is Going.RUNS:
        yield "Normal", "OperationStarted", f"tidegate initiated sync to {to}"
    elif account.going is Going.ENDED and account.result == Result.PASSED:
        yield "Normal", "OperationCompleted", f"Sync operation to {to} succeeded"
    elif account.going is Going.ENDED:
        yield (
            "Warning",
            "OperationCompleted",
            f"Sync operation to {to} failed: {message_of(account)}",
        )
