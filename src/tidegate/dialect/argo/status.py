"""What Argo CD says of an Application: its sync, its health, its last operation, its history.

The rules are Argo CD's own. Whoever did the work is named as the one who asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tidegate.dialect.times import stamp
from tidegate.model.account import Became, Going, ObjectAccount, OwnStatus, Provenance, UnitAccount
from tidegate.model.event import Result
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import listed, mapping, mappings, number, part, text
from tidegate.model.source import Revision
from tidegate.model.verdict import Health

Body = dict[str, Json]
SYNCED, OUT_OF_SYNC, UNKNOWN = "Synced", "OutOfSync", "Unknown"
WORST_LAST = (
    *(Health.HEALTHY, Health.SUSPENDED, Health.PROGRESSING),
    *(Health.MISSING, Health.DEGRADED, Health.UNKNOWN),
)
"""Argo CD's order of what is worse."""
FORGIVEN = frozenset({Health.MISSING, Health.UNKNOWN})
"""What a child Application may be without its parent being worse for it."""
IGNORES_HEALTH = "argocd.argoproj.io/ignore-healthcheck"
EXTRANEOUS = "argocd.argoproj.io/compare-options"
PHASES = {"presync": "PreSync", "sync": "Sync", "postsync": "PostSync", "syncfail": "SyncFail"}
OURS = frozenset({"SyncError", "ComparisonError", "InvalidSpecError", "UnknownError"})
"""Conditions that are told anew each time; the others stay as they were found."""
WHO: Body = {"username": "tidegate"}
KEPT_ENTRIES = 10
MOST_CAUSES = 3
SHORT = 7
DONE = "successfully synced (all tasks run)"
UNDONE = "one or more synchronization tasks completed unsuccessfully"
PULLS = (
    ("spec",),
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
)


def application_status(
    own: Body, account: UnitAccount, sources: Sequence[Provenance]
) -> OwnStatus | None:
    """The status of an Application, given the one it has."""
    before, spec, now = mapping(own, "status"), mapping(own, "spec"), stamp(account.now)
    at = _revisions(spec, sources)
    status: Body = {
        **before,
        "sync": {"status": sync_status(account), "comparedTo": _compared_to(spec), **at},
        "health": _health(before, account, now),
        "resources": list[Json](_resources(before, account)),
        "reconciledAt": now,
        "resourceHealthSource": "appTree",
        "summary": _summary(account),
        **_source_types(spec, sources),
    }
    status = _without_empty(status, "resources")
    conditions = list[Json](_conditions(before, account, at, now))
    status = {**status, "conditions": conditions} if conditions else _without(status, "conditions")
    if not account.operated and not _is_interrupted(before, account):
        return OwnStatus(status)
    status["operationState"] = _operation(own, account, at)
    if account.result == Result.PASSED:
        history = _history(before, spec, account, at)
        status = {**status, "history": history} if history else _without(status, "history")
    return OwnStatus(status, tuple(_notes(before, account, at)))


def sync_status(account: UnitAccount) -> str:
    """Whether all that counts is as Git has it."""
    counted = (one for one in account.objects if not one.is_hook and not _is_extra(one))
    return SYNCED if all(one.is_synced for one in counted) else OUT_OF_SYNC


def _is_extra(one: ObjectAccount) -> bool:
    """Whether it is to be pruned, and says that nobody minds it."""
    if one.is_wanted:
        return False
    notes = mapping(_body(one), "metadata", "annotations")
    return "IgnoreExtraneous" in text(notes, EXTRANEOUS).split(",")


def aggregate_health(account: UnitAccount) -> tuple[Health, str]:
    """How the worst of its objects is, and which ones those are."""
    kept = [one for one in account.objects if not one.is_hook]
    if kept and not any(one.lives for one in kept):
        return Health.MISSING, ""
    counted = [one for one in kept if _counts(one, account)]
    worst = max((_badness(one) for one in counted), default=0)
    health = WORST_LAST[worst]
    if health is Health.HEALTHY:
        return health, ""
    causes = [_cause(one.ref) for one in counted if one.health is health]
    more = f" and {len(causes) - MOST_CAUSES} more" if len(causes) > MOST_CAUSES else ""
    return health, f"Caused by {', '.join(causes[:MOST_CAUSES])}{more}"


def _counts(one: ObjectAccount, account: UnitAccount) -> bool:
    ref, unit = one.ref, account.unit
    is_application = (ref.kind.group, ref.kind.name) == ("argoproj.io", "Application")
    if not one.lives or one.health is None:
        return False
    if is_application and (ref.namespace, ref.name) == (unit.namespace, unit.name):
        return False
    if is_application and one.health in FORGIVEN:
        return False
    return text(_body(one), "metadata", "annotations", IGNORES_HEALTH) != "true"


def _badness(one: ObjectAccount) -> int:
    return 0 if one.health is None else WORST_LAST.index(one.health)


def _cause(ref: Ref) -> str:
    group = f"{ref.kind.group}/" if ref.kind.group else "/"
    return f"{group}{ref.kind.name}:{ref.namespace}/{ref.name}"


def _health(before: Body, account: UnitAccount, now: str) -> Body:
    health, message = aggregate_health(account)
    known = mapping(before, "health")
    since = text(known, "lastTransitionTime", default=now)
    same = text(known, "status") == health
    told: Body = {"message": message} if message else {}
    return {"status": health.value, "lastTransitionTime": since if same else now, **told}


def _resources(before: Body, account: UnitAccount) -> list[Body]:
    """What is the Application's, in the order of names; of hooks those that are there.

    Where nothing was done, nobody has looked at hooks, and those that are known stay.
    """
    told = [*_told_resources(account)]
    if not account.operated:
        told += (one for one in mappings(before, "resources") if one.get("hook") is True)
    names = ("group", "kind", "namespace", "name")
    unique = {tuple(text(one, name) for name in names): one for one in reversed(told)}
    return [unique[key] for key in sorted(unique)]


def _told_resources(account: UnitAccount) -> Iterator[Body]:
    for one in account.objects:
        if not one.lives and (one.is_hook or not one.is_wanted):
            continue
        kind = one.ref.kind
        entry: Body = {"group": kind.group} if kind.group else {}
        entry |= {"version": kind.version, "kind": kind.name}
        entry |= {"namespace": one.ref.namespace} if one.ref.namespace else {}
        entry["name"] = one.ref.name
        if one.is_hook:
            yield {**entry, "hook": True}
            continue
        entry["status"] = SYNCED if one.is_synced else OUT_OF_SYNC
        entry |= {"requiresPruning": True} if not one.is_wanted else {}
        entry |= {"requiresDeletionConfirmation": True} if one.asks else {}
        entry |= {"syncWave": one.wave} if one.wave and one.is_wanted else {}
        yield entry


def revision_name(revision: Revision) -> str:
    """As Argo CD writes it: a commit, else a chart's version, else a digest."""
    if revision.digest.startswith("sha1:"):
        return revision.hex
    return (
        str(revision) if revision.name.startswith("working") else revision.name or revision.digest
    )


def _revisions(spec: Body, sources: Sequence[Provenance]) -> Body:
    names: list[Json] = [revision_name(one.revision) for one in sources]
    if listed(spec, "sources"):
        return {"revisions": names}
    return {"revision": names[0]} if names else {}


def _told_revision(at: Body) -> str:
    names = [text(at, "revision"), *(str(one) for one in listed(at, "revisions"))]
    return ", ".join(name[:SHORT] if len(name) == 40 else name for name in names if name)  # noqa: PLR2004 - a commit


def _of_source(spec: Body) -> Body:
    """One source or several, as the Application has them."""
    return {name: spec[name] for name in ("source", "sources") if spec.get(name)}


def _compared_to(spec: Body) -> Body:
    more: Body = {
        name: spec[name] for name in ("destination", "ignoreDifferences") if spec.get(name)
    }
    return {**_of_source(spec), "destination": {}, **more}


def _source_types(spec: Body, sources: Sequence[Provenance]) -> Body:
    names: list[Json] = [one.tool for one in sources]
    if not all(names) or not names:
        return {}
    return {"sourceTypes": names} if listed(spec, "sources") else {"sourceType": names[0]}


def _summary(account: UnitAccount) -> Body:
    bodies = [(one, _body(one)) for one in account.objects if one.lives and not one.is_hook]
    images = sorted({image for _, body in bodies for image in _images(body)})
    urls = sorted({url for one, body in bodies for url in _urls(one.ref, body)})
    found: Body = {"images": list[Json](images)} if images else {}
    found |= {"externalURLs": list[Json](urls)} if urls else {}
    brings = any(one.ref.kind.name == "Application" for one, _ in bodies)
    return {**found, "isAppOfApps": True} if brings else found


def _images(body: Body) -> Iterator[str]:
    for path in PULLS:
        for name in ("initContainers", "containers"):
            yield from (
                text(one, "image") for one in mappings(body, *path, name) if one.get("image")
            )


def _urls(ref: Ref, body: Body) -> Iterator[str]:
    """Where an Ingress leads in from."""
    if ref.kind.name != "Ingress":
        return
    secured = {str(host) for one in mappings(body, "spec", "tls") for host in listed(one, "hosts")}
    addresses = mappings(body, "status", "loadBalancer", "ingress")
    given = next((text(one, "hostname") or text(one, "ip") for one in addresses), "")
    for rule in mappings(body, "spec", "rules"):
        host = text(rule, "host", default=given)
        scheme = "https" if host in secured else "http"
        for path in mappings(rule, "http", "paths") if host else ():
            yield f"{scheme}://{host}{text(path, 'path').removesuffix('*').rstrip('/')}"


def _conditions(before: Body, account: UnitAccount, at: Body, now: str) -> Iterator[Body]:
    """What is wrong; the time of what was so before stays."""
    known = mappings(before, "conditions")
    told = [one for one in known if text(one, "type") not in OURS]
    if account.going is Going.ENDED and account.result == Result.FAILED:
        message = f"Failed last sync attempt to [{_told_revision(at)}]: {_message(account)}"
        told.append({"type": "SyncError", "message": message})
    elif account.going is not Going.ENDED:
        told += (one for one in known if text(one, "type") in OURS)
    for one in sorted(told, key=lambda one: (text(one, "type"), text(one, "message"))):
        same = (
            old
            for old in known
            if {**old, "lastTransitionTime": ""} == {**one, "lastTransitionTime": ""}
        )
        since = next((text(old, "lastTransitionTime") for old in same), "")
        yield {**one, "lastTransitionTime": text(one, "lastTransitionTime") or since or now}


def _is_interrupted(before: Body, account: UnitAccount) -> bool:
    """Whether an operation is told to be under way that has come to its end by now."""
    is_running = text(before, "operationState", "phase") == "Running"
    return is_running and account.going is Going.ENDED


def _operation(own: Body, account: UnitAccount, at: Body) -> Body:
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
        "message": _message(account),
        "startedAt": text(before, "startedAt") if goes_on else stamp(account.begun),
        "syncResult": {
            "revision": "",
            **at,
            **_of_source(spec),
            "resources": list[Json](_results(account.objects)),
        },
    }
    return {**state, "finishedAt": stamp(account.now)} if is_ended else state


def _phase(account: UnitAccount) -> str:
    if account.going is not Going.ENDED:
        return "Running"
    return "Succeeded" if account.result == Result.PASSED else "Failed"


def _message(account: UnitAccount) -> str:
    if account.going is not Going.ENDED:
        return _waiting(account.objects)
    if account.result == Result.PASSED:
        return DONE
    if account.result == Result.STOPPED:
        return f"Operation terminated{f': {account.sentence}' if account.sentence else ''}"
    return f"{UNDONE}, reason: {account.sentence}" if account.sentence else UNDONE


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
            return one.sentence or f"{name} serverside-applied"


def _history(before: Body, spec: Body, account: UnitAccount, at: Body) -> list[Json]:
    """What was deployed, the newest last; as many as the Application keeps."""
    known = mappings(before, "history")
    entry: Body = {
        "id": max((number(one, "id") for one in known), default=-1) + 1,
        **at,
        **_of_source(spec),
        "deployStartedAt": stamp(account.begun),
        "deployedAt": stamp(account.now),
        "initiatedBy": WHO,
    }
    limit = max(0, number(spec, "revisionHistoryLimit", default=KEPT_ENTRIES))
    kept: list[Json] = [*known, entry]
    return kept[-limit:] if limit else []


def _notes(before: Body, account: UnitAccount, at: Body) -> Iterator[tuple[str, str, str]]:
    """The Events of an operation: its beginning and its end."""
    to, known = _told_revision(at), mapping(before, "operationState")
    is_known = (text(known, "phase"), text(known, "startedAt")) == ("Running", stamp(account.begun))
    if account.going is Going.RUNS and is_known:
        return
    if account.going is Going.RUNS:
        yield "Normal", "OperationStarted", f"tidegate initiated sync to {to}"
    elif account.going is Going.ENDED and account.result == Result.PASSED:
        yield "Normal", "OperationCompleted", f"Sync operation to {to} succeeded"
    elif account.going is Going.ENDED:
        yield "Warning", "OperationCompleted", f"Sync operation to {to} failed: {_message(account)}"


def _body(one: ObjectAccount) -> Body:
    body: Body = msgspec.json.decode(one.body) if one.body else {}
    return body


def _without(status: Body, name: str) -> Body:
    return {key: one for key, one in status.items() if key != name}


def _without_empty(status: Body, name: str) -> Body:
    return status if status.get(name) else _without(status, name)
