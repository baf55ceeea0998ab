"""What Argo CD says of an Application: its sync, its health, its last operation, its history.

The rules are Argo CD's own. Whoever did the work is named as the one who asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tidegate.dialect.argo.operation import (
    SYNCED,
    history_with,
    message_of,
    operation_notes,
    operation_state,
    source_of,
    told_revision,
)
from tidegate.dialect.times import stamp
from tidegate.model.account import Going, ObjectAccount, OwnStatus, Provenance, UnitAccount
from tidegate.model.event import Result
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import listed, mapping, mappings, text
from tidegate.model.source import Revision
from tidegate.model.verdict import Health

Body = dict[str, Json]
OUT_OF_SYNC, UNKNOWN = "OutOfSync", "Unknown"
WORST_LAST = (
    *(Health.HEALTHY, Health.SUSPENDED, Health.PROGRESSING),
    *(Health.MISSING, Health.DEGRADED, Health.UNKNOWN),
)
"""Argo CD's order of what is worse."""
FORGIVEN = frozenset({Health.MISSING, Health.UNKNOWN})
"""What a child Application may be without its parent being worse for it."""
IGNORES_HEALTH = "argocd.argoproj.io/ignore-healthcheck"
EXTRANEOUS = "argocd.argoproj.io/compare-options"
OURS = frozenset({"SyncError", "ComparisonError", "InvalidSpecError", "UnknownError"})
"""Conditions that are told anew each time; the others stay as they were found."""
MOST_CAUSES = 3
CHILD = ("argoproj.io", "Application")
INGRESS, IMAGE = "Ingress", b'"image"'
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
        "summary": _summary(before, account),
        **_source_types(spec, sources),
    }
    status = _without_empty(status, "resources")
    conditions = list[Json](_conditions(before, account, at, now))
    status = {**status, "conditions": conditions} if conditions else _without(status, "conditions")
    if not account.operated and not _is_interrupted(before, account):
        return OwnStatus(status)
    status["operationState"] = operation_state(own, account, at)
    if account.result == Result.PASSED:
        history = history_with(before, spec, account, at)
        status = {**status, "history": history} if history else _without(status, "history")
    return OwnStatus(status, tuple(operation_notes(before, account, at)))


def sync_status(account: UnitAccount) -> str:
    """Whether all that counts is as Git has it."""
    if not account.is_known:
        return UNKNOWN
    counted = (one for one in account.objects if not one.is_hook and not _is_extra(one))
    return SYNCED if all(one.is_synced for one in counted) else OUT_OF_SYNC


def _is_extra(one: ObjectAccount) -> bool:
    """Whether it was pruned, or is to be and says that nobody minds it."""
    if one.is_wanted or not one.lives:
        return not one.is_wanted
    notes = mapping(_body(one), "metadata", "annotations")
    return "IgnoreExtraneous" in text(notes, EXTRANEOUS).split(",")


def aggregate_health(account: UnitAccount) -> tuple[Health, str]:
    """How the worst of its objects is, and which ones those are."""
    if not account.is_known:
        return Health.UNKNOWN, ""
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
    is_application = (ref.kind.group, ref.kind.name) == CHILD
    if not one.lives or one.health in {None, Health.HEALTHY}:
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


def _compared_to(spec: Body) -> Body:
    more: Body = {
        name: spec[name] for name in ("destination", "ignoreDifferences") if spec.get(name)
    }
    return {**source_of(spec), "destination": {}, **more}


def _source_types(spec: Body, sources: Sequence[Provenance]) -> Body:
    names: list[Json] = [one.tool for one in sources]
    if not all(names) or not names:
        return {}
    return {"sourceTypes": names} if listed(spec, "sources") else {"sourceType": names[0]}


def _summary(before: Body, account: UnitAccount) -> Body:
    """Images, addresses and whether it brings others; on the way as it was before."""
    if account.going is not Going.ENDED:
        return mapping(before, "summary")
    lives = [one for one in account.objects if one.lives and not one.is_hook]
    told = [(one, _body(one)) for one in lives if IMAGE in one.body or one.ref.kind.name == INGRESS]
    images = sorted({image for _, body in told for image in _images(body)})
    urls = sorted({url for one, body in told for url in _urls(one.ref, body)})
    found: Body = {"images": list[Json](images)} if images else {}
    found |= {"externalURLs": list[Json](urls)} if urls else {}
    brings = any((one.ref.kind.group, one.ref.kind.name) == CHILD for one in lives)
    return {**found, "isAppOfApps": True} if brings else found


def _images(body: Body) -> Iterator[str]:
    for path in PULLS:
        for name in ("initContainers", "containers"):
            yield from (
                text(one, "image") for one in mappings(body, *path, name) if one.get("image")
            )


def _urls(ref: Ref, body: Body) -> Iterator[str]:
    """Where an Ingress leads in from."""
    if ref.kind.name != INGRESS:
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
    if not account.is_known:
        told.append({"type": "ComparisonError", "message": account.sentence})
    elif account.going is Going.ENDED and account.result == Result.FAILED:
        message = f"Failed last sync attempt to [{told_revision(at)}]: {message_of(account)}"
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


def _body(one: ObjectAccount) -> Body:
    body: Body = msgspec.json.decode(one.body) if one.body else {}
    return body


def _without(status: Body, name: str) -> Body:
    return {key: one for key, one in status.items() if key != name}


def _without_empty(status: Body, name: str) -> Body:
    return status if status.get(name) else _without(status, name)
