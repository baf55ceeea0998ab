"""What Flux says of a Kustomization: its conditions, its revisions, its inventory, its history.

Reasons and sentences are those of kustomize-controller, so that whoever knows Flux reads them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from tidegate.dialect.flux.faults import UNREADY, fault_of
from tidegate.dialect.times import go_duration, stamp
from tidegate.model.account import Became, Going, ObjectAccount, OwnStatus, Provenance, UnitAccount
from tidegate.model.event import Result
from tidegate.model.moment import SECOND, Ms, parse_duration
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import listed, mapping, mappings, number, part, text
from tidegate.model.unit import UnitId
from tidegate.model.verdict import Health

Body = dict[str, Json]
Note = tuple[str, str, str]
READY, HEALTHY, RECONCILING, STALLED = "Ready", "Healthy", "Reconciling", "Stalled"
ORDER = (RECONCILING, STALLED, READY, HEALTHY)
PROGRESSING, RETRYING, SUCCEEDED = "Progressing", "ProgressingWithRetry", "Succeeded"
UNDER_WAY = "Reconciliation in progress"
WAITING = "Dependencies do not meet ready condition, waiting for them"
RBAC = "rbac.authorization.k8s.io"
LEAST = Ms(30 * SECOND)
KEPT_SNAPSHOTS = 5
LEFT = frozenset({Became.FAILED, Became.KEPT})
"""What was to be pruned and is still there: the next run tries again."""
LONGEST = 32_768
"""Bytes of a condition's message; what is longer is cut."""
STATUSES = {
    Health.HEALTHY: "Current",
    Health.PROGRESSING: "InProgress",
    Health.SUSPENDED: "InProgress",
    Health.DEGRADED: "Failed",
    Health.MISSING: "NotFound",
}


class FluxConditions:
    """The conditions of an object as they become; a time moves only with what it tells."""

    def __init__(self, own: Body, now: str, order: tuple[str, ...] = ORDER) -> None:
        self._now = now
        self._order = order
        self._generation = number(own, "metadata", "generation")
        known = mappings(own, "status", "conditions")
        self._before: dict[str, Body] = {text(one, "type"): one for one in known}
        self._all = {**self._before}

    def set(self, name: str, status: str, reason: str, message: str) -> None:
        known = self._before.get(name, {})
        cut = message.encode()
        if len(cut) > LONGEST:
            message = cut[: LONGEST - 3].decode(errors="ignore") + "..."
        told: Body = {"type": name, "status": status, "reason": reason, "message": message}
        same = all(known.get(key) == one for key, one in told.items())
        since = text(known, "lastTransitionTime", default=self._now) if same else self._now
        self._all[name] = {
            **told,
            "lastTransitionTime": since,
            "observedGeneration": self._generation,
        }

    def drop(self, *names: str) -> None:
        for name in names:
            self._all.pop(name, None)

    def has(self, name: str, status: str) -> bool:
        return text(self._all.get(name), "status") == status

    def listed(self) -> list[Json]:
        """Those of Flux in its order, and what others have set behind them."""
        others = sorted(self._all.keys() - set(self._order))
        return [self._all[name] for name in (*self._order, *others) if name in self._all]


def kustomization_status(
    own: Body, account: UnitAccount, sources: Sequence[Provenance]
) -> OwnStatus | None:
    """The status of a Kustomization, given the one it has; None: there is nothing to say."""
    before, revision = mapping(own, "status"), _revision(sources)
    conditions = FluxConditions(own, stamp(account.now))
    is_lost = account.going is Going.ENDED and account.result not in {Result.PASSED, Result.FAILED}
    if account.going is Going.WAITS or (is_lost and not account.operated):
        return waiting_status(own, account, conditions)
    if account.going is Going.ENDED and account.result == Result.FAILED and not account.is_known:
        return _left_out(own, account, conditions, revision)
    status: Body = {**before, "lastAttemptedRevision": revision}
    if account.going is Going.RUNS:
        notes = _run(own, account, conditions, revision)
    elif account.result == Result.PASSED:
        notes = _pass(own, account, conditions, revision)
        status |= {
            "lastAppliedRevision": revision,
            "observedGeneration": number(own, "metadata", "generation"),
        }
    else:
        notes = _fail(own, account, conditions)
    status |= {"conditions": conditions.listed(), "inventory": inventory_of(before, account)}
    if account.going is Going.ENDED and account.operated:
        status["history"] = _history(before, account, conditions, revision)
    return OwnStatus(status, notes)


def _revision(sources: Sequence[Provenance]) -> str:
    return str(sources[0].revision) if sources else ""


def waiting_status(own: Body, account: UnitAccount, conditions: FluxConditions) -> OwnStatus | None:
    """A unit that waits says for whom; one that waits for nobody it names says nothing."""
    unit = _first_unready(own, account.waits_for)
    if unit is None:
        return None
    sentence = f"dependency '{unit.namespace}/{unit.name}' is not ready"
    conditions.set(READY, "False", UNREADY, sentence)
    conditions.drop(RECONCILING, STALLED)
    status: Body = {**mapping(own, "status"), "conditions": conditions.listed()}
    return OwnStatus(status, (("Normal", UNREADY, WAITING),))


def _left_out(
    own: Body, account: UnitAccount, conditions: FluxConditions, revision: str
) -> OwnStatus:
    """A unit that cannot begin says why; what it has stays as it is."""
    fault, status = fault_of(own, account), {**mapping(own, "status")}
    conditions.set(READY, "False", fault.reason, fault.message)
    conditions.drop(RECONCILING, STALLED)
    if fault.is_terminal:
        conditions.set(STALLED, "True", fault.reason, fault.message)
        status["observedGeneration"] = number(own, "metadata", "generation")
    elif fault.reason != UNREADY:
        conditions.set(RECONCILING, "True", RETRYING, fault.message)
    if fault.was_had and revision:
        status["lastAttemptedRevision"] = revision
    status["conditions"] = conditions.listed()
    waits = fault.reason == UNREADY
    note = ("Normal", UNREADY, WAITING) if waits else ("Warning", fault.reason, fault.message)
    return OwnStatus(status, (note,))


def _first_unready(own: Body, waits_for: Iterable[UnitId]) -> UnitId | None:
    """The first that it names itself of those it waits for."""
    home, found = (
        text(own, "metadata", "namespace"),
        {(one.kind, one.namespace, one.name): one for one in waits_for},
    )
    for one in mappings(own, "spec", "dependsOn"):
        name = (text(own, "kind"), text(one, "namespace", default=home), text(one, "name"))
        if name in found:
            return found[name]
    return None


def _has_checks(own: Body) -> bool:
    return part(own, "spec", "wait") is True or bool(listed(own, "spec", "healthChecks"))


def _run(
    own: Body, account: UnitAccount, conditions: FluxConditions, revision: str
) -> tuple[Note, ...]:
    limit = go_duration(_timeout(own))
    checks = _has_checks(own) and any(one.waits for one in account.objects)
    doing = "Running health checks" if checks else "Detecting drift"
    doing = f"{doing} for revision {revision} with a timeout of {limit}"
    conditions.set(READY, "Unknown", PROGRESSING, UNDER_WAY)
    conditions.set(RECONCILING, "True", PROGRESSING, doing)
    conditions.drop(STALLED)
    if checks:
        conditions.set(HEALTHY, "Unknown", PROGRESSING, doing)
    return ()


def _pass(
    own: Body, account: UnitAccount, conditions: FluxConditions, revision: str
) -> tuple[Note, ...]:
    took = go_duration(Ms(account.now - account.begun))
    was_healthy = conditions.has(HEALTHY, "True")
    if not _has_checks(own):
        conditions.drop(HEALTHY)
    elif account.operated or not was_healthy:
        conditions.set(HEALTHY, "True", SUCCEEDED, f"Health check passed in {took}")
    conditions.set(READY, "True", "ReconciliationSucceeded", f"Applied revision: {revision}")
    conditions.drop(RECONCILING, STALLED)
    return tuple(_passing_notes(own, account, took)) if account.operated else ()


def _passing_notes(own: Body, account: UnitAccount, took: str) -> Iterator[Note]:
    changed = (Became.CREATED, Became.CONFIGURED)
    lines = [f"{_named(one.ref)} {one.became}" for one in account.objects if one.became in changed]
    if lines:
        yield "Normal", PROGRESSING, "\n".join(lines)
    gone = [f"{_named(one.ref)} deleted" for one in account.objects if one.became is Became.PRUNED]
    if gone:
        yield "Normal", PROGRESSING, "\n".join(gone)
    again = text(own, "spec", "interval")
    finished = f"Reconciliation finished in {took}, next run in {again}"
    yield "Normal", "ReconciliationSucceeded", finished


def _fail(own: Body, account: UnitAccount, conditions: FluxConditions) -> tuple[Note, ...]:
    reason, told = "ReconciliationFailed", account.sentence or account.reason
    if account.result == Result.STOPPED:
        told = f"the rollout was stopped: {told}" if told else "the rollout was stopped"
    elif account.by_gate:
        reason, why = "HealthCheckFailed", _unhealthy(account.objects) or told
        told = f"health check failed after {go_duration(Ms(account.now - account.begun))}: {why}"
        if _has_checks(own):
            conditions.set(HEALTHY, "False", reason, why)
    elif any(one.became is Became.FAILED and not one.is_wanted for one in account.objects):
        reason = "PruneFailed"
    conditions.set(READY, "False", reason, told)
    conditions.set(RECONCILING, "True", RETRYING, told)
    conditions.drop(STALLED)
    return (("Warning", reason, told),) if account.operated else ()


def _unhealthy(objects: Iterable[ObjectAccount]) -> str:
    """Whom the checks gave up on: those that have failed, else all that are not well."""
    left = [one for one in objects if one.became is Became.FAILED or one.waits]
    failed = [one for one in left if one.health is Health.DEGRADED]
    names = ", ".join(
        f"{_named(one.ref)} status: '{STATUSES.get(one.health or Health.UNKNOWN, 'Unknown')}'"
        for one in failed or left
    )
    if not names:
        return ""
    return (
        f"{'failed early due to stalled resources' if failed else 'timeout waiting for'}: [{names}]"
    )


def _named(ref: Ref) -> str:
    return "/".join(part for part in (ref.kind.name, ref.namespace, ref.name) if part)


def _timeout(own: Body) -> Ms:
    """What a reconciliation may take: by its own word, else a little less than its interval."""
    for name, less in (("timeout", Ms(0)), ("interval", LEAST)):
        try:
            return max(LEAST, Ms(parse_duration(text(own, "spec", name)) - less))
        except ValueError:
            continue
    return LEAST


def inventory_id(ref: Ref) -> str:
    """The name by which Flux keeps an object."""
    name = ref.name.replace(":", "__") if ref.kind.group == RBAC else ref.name
    return f"{ref.namespace}_{name}_{ref.kind.group}_{ref.kind.name}"


def inventory_of(before: Body, account: UnitAccount) -> Body:
    """What is the unit's. Until all of it is applied, what was so before stays in it as well."""
    wanted = [one for one in account.objects if one.is_wanted and not one.is_hook]
    left = [
        one for one in account.objects if not one.is_wanted and one.lives and one.became in LEFT
    ]
    is_whole = account.going is Going.ENDED and account.result == Result.PASSED
    there = [one for one in (*wanted, *left) if is_whole or one.lives]
    entries: dict[str, Json] = {
        inventory_id(one.ref): {"id": inventory_id(one.ref), "v": one.ref.kind.version}
        for one in there
    }
    for old in () if is_whole else mappings(before, "inventory", "entries"):
        entries.setdefault(text(old, "id"), old)
    return {"entries": [*entries.values()]}


def _history(
    before: Body, account: UnitAccount, conditions: FluxConditions, revision: str
) -> list[Json]:
    """Snapshots, the newest first, one for each content and outcome."""
    known = mappings(before, "history")
    ready = next(one for one in conditions.listed() if text(one, "type") == READY)
    digest = f"sha256:{hashlib.sha256(_content(account)).hexdigest()}"
    outcome, now = text(ready, "reason"), stamp(account.now)
    is_same = [
        one
        for one in known
        if (text(one, "digest"), text(one, "lastReconciledStatus")) == (digest, outcome)
    ]
    first = is_same[0] if is_same else {}
    entry: Body = {
        "digest": digest,
        "firstReconciled": text(first, "firstReconciled", default=now),
        "lastReconciled": now,
        "lastReconciledDuration": go_duration(Ms(account.now - account.begun)),
        "lastReconciledStatus": outcome,
        "totalReconciliations": number(first, "totalReconciliations") + 1,
        "metadata": {"revision": revision},
    }
    rest: list[Json] = [one for one in known if one not in is_same]
    return [entry, *rest][:KEPT_SNAPSHOTS]


def _content(account: UnitAccount) -> bytes:
    """What tells one content from another, without a value of any Secret."""
    return "\n".join((str(account.unit), account.digest)).encode()
