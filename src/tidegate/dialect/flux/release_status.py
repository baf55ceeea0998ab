"""What Flux says of a HelmRelease: its conditions, its failures, and the revisions it has made.

Reasons and sentences are those of helm-controller. The history is made of the records that are
there. How Flux comes to its digests is its own affair: one that takes over reads ours as those of
another, and upgrades once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from tidegate.dialect.flux.release_drift import (
    CORRECTION,
    DRIFTED,
    tell_drift,
    tell_failed_correction,
)
from tidegate.dialect.flux.release_tests import (
    TEST,
    TESTED,
    await_tests,
    fail_tests,
    has_failed_tests,
    is_awaiting_tests,
    snapshot_tests,
    tell_tests,
)
from tidegate.dialect.flux.status import (
    PROGRESSING,
    READY,
    RECONCILING,
    RETRYING,
    STALLED,
    FluxConditions,
    Note,
    inventory_of,
    waiting_status,
)
from tidegate.dialect.helm.belonging import ACTION, newest
from tidegate.dialect.helm.book import GOOD, is_refused, rollback_target
from tidegate.dialect.helm.record import ReleaseRecord, ReleaseStatus, read_record
from tidegate.dialect.times import go_duration, stamp
from tidegate.model.account import Going, OwnStatus, Provenance, UnitAccount
from tidegate.model.event import Result
from tidegate.model.ledger import Action, ReleaseTerms
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, mappings, number, text
from tidegate.model.semantics import ENDLESS

Body = dict[str, Json]
RELEASED, REMEDIATED = "Released", "Remediated"
ORDER = (RECONCILING, STALLED, READY, RELEASED, TESTED, REMEDIATED, DRIFTED)
MOST_SNAPSHOTS = 5
ROLLED_BACK = "Rollback to "
SNAPSHOT = "v2"
TOLD_OF_DIGEST = 12
"""How much of an artifact's digest a chart's version tells."""
NO_TARGET = (
    "Failed to perform remediation: missing target release for rollback: cannot remediate failed"
    " release"
)
FAILURES = {Action.INSTALL: "installFailures", Action.UPGRADE: "upgradeFailures"}


def release_status(
    own: Body, account: UnitAccount, sources: Sequence[Provenance]
) -> OwnStatus | None:
    """The status of a HelmRelease, given the one it has; None: there is nothing to say."""
    conditions, terms = FluxConditions(own, stamp(account.now), ORDER), account.release
    is_lost = account.going is Going.ENDED and account.result not in {Result.PASSED, Result.FAILED}
    if terms is None or account.going is Going.WAITS or (is_lost and not account.operated):
        return waiting_status(own, account, conditions)
    records = [read_record(msgspec.json.decode(one)) for one in account.entries]
    status: Body = {**mapping(own, "status"), "storageNamespace": terms.storage}
    notes: tuple[Note, ...] = ()
    if account.going is Going.RUNS:
        doing = _doing(account, terms, conditions, newest(records))
        conditions.set(READY, "Unknown", PROGRESSING, doing)
        conditions.set(RECONCILING, "True", PROGRESSING, doing)
        conditions.drop(STALLED)
    elif account.result == Result.PASSED:
        notes = _pass(account, terms, conditions, records)
        status = {key: one for key, one in status.items() if key not in _COUNTS}
        status |= _observed(own)
    elif account.is_kept and account.is_known:
        notes = _fail_to_correct(account, conditions, records)
    else:
        notes = _fail(account, terms, conditions, records)
        status |= _counts(account, terms)
        # Nothing more comes of it by itself; who waits for it is to see that.
        status |= _observed(own) if account.is_known and conditions.has(STALLED, "True") else {}
    digest = _artifact_of(records, sources)
    status |= {} if account.is_kept else _attempted(own, account, records, digest)
    status |= {
        "conditions": conditions.listed(),
        "history": _history(records, mappings(own, "status", "history"), digest, terms),
        "inventory": inventory_of(mapping(own, "status"), account),
    }
    return OwnStatus(status, notes)


_COUNTS = frozenset({"failures", *FAILURES.values()})


def _observed(own: Body) -> Body:
    return {"observedGeneration": number(own, "metadata", "generation")}


def _doing(
    account: UnitAccount,
    terms: ReleaseTerms,
    conditions: FluxConditions,
    last: ReleaseRecord | None,
) -> str:
    """What is done now, and for how long at most."""
    action, limit = terms.action.value, terms.acting.timeout
    if last is not None and is_awaiting_tests(last, terms.test):
        _succeed(conditions, last)
        await_tests(conditions, _named(last), _chart(last))
        action, limit = TEST, terms.test.timeout
    elif account.is_kept:
        action = CORRECTION
    return f"Running '{action}' action with timeout of {go_duration(limit)}"


def _pass(
    account: UnitAccount,
    terms: ReleaseTerms,
    conditions: FluxConditions,
    records: Sequence[ReleaseRecord],
) -> tuple[Note, ...]:
    last = newest(records)
    if last is None:
        return ()
    reason, told = _succeed(conditions, last)
    tested = tell_tests(last, terms.test, conditions, _named(last), _chart(last))
    drifted = tell_drift(account, terms.drift, conditions, _named(last))
    if not account.operated:
        return drifted
    return (*(() if account.is_kept else (("Normal", reason, told),)), *tested, *drifted)


def _succeed(conditions: FluxConditions, last: ReleaseRecord) -> tuple[str, str]:
    """It stands as it was released last: the reason, and the sentence."""
    action = last.notes.get(ACTION, Action.UPGRADE) if last.number == 1 else Action.UPGRADE
    told = f"Helm {action} succeeded for release {_named(last)} with chart {_chart(last)}"
    reason = f"{action.capitalize()}Succeeded"
    conditions.set(RELEASED, "True", reason, told)
    conditions.set(READY, "True", reason, told)
    conditions.drop(RECONCILING, STALLED, REMEDIATED)
    return reason, told


def _fail_to_correct(
    account: UnitAccount, conditions: FluxConditions, records: Sequence[ReleaseRecord]
) -> tuple[Note, ...]:
    """The release stands, though not all of it is as it was released."""
    last = newest(records)
    if last is None:
        return ()
    _succeed(conditions, last)
    why = account.sentence or account.reason
    notes = tell_failed_correction(account, conditions, _named(last), why)
    return notes if account.operated else ()


def _fail(
    account: UnitAccount,
    terms: ReleaseTerms,
    conditions: FluxConditions,
    records: Sequence[ReleaseRecord],
) -> tuple[Note, ...]:
    """It is not ready for what was done about its failure, or for that itself."""
    action, why = terms.action, account.sentence or account.reason
    stopped = account.result == Result.STOPPED
    if stopped:
        why = f"the rollout was stopped: {why}" if why else "the rollout was stopped"
    if not account.is_known:
        conditions.set(READY, "False", "ArtifactFailed", why)
        return ()
    told, reason = _failed(account, terms, conditions, records, why)
    notes: list[Note] = [("Warning", reason, told)]
    conditions.drop(REMEDIATED)
    if account.remedied is not None and terms.acting.remedy is not None:
        told, reason = _remedied(terms, records, why, went_well=account.remedied)
        conditions.set(REMEDIATED, "True" if account.remedied else "False", reason, told)
        notes.append(("Normal" if account.remedied else "Warning", reason, told))
    conditions.set(READY, "False", reason, told)
    retry = terms.acting.retry
    if stopped or (retry is not None and retry.limit == ENDLESS):
        pause = go_duration(retry.first) if retry is not None else ""
        again = why if stopped else f"retrying after {pause}"
        conditions.set(RECONCILING, "True", RETRYING, again)
        conditions.drop(STALLED)
    else:
        stalled, why = (
            "RetriesExceeded",
            f"Failed to {action} after {account.retries + 1} attempt(s)",
        )
        if account.remedied is None and _has_no_target(terms, records):
            stalled, why = "MissingRollbackTarget", NO_TARGET
        conditions.set(STALLED, "True", stalled, why)
        conditions.drop(RECONCILING)
        notes.append(("Warning", stalled, why))
    return tuple(notes) if account.operated else ()


def _has_no_target(terms: ReleaseTerms, records: Sequence[ReleaseRecord]) -> bool:
    """Whether it was to be rolled back, and there is nothing to go back to."""
    last = newest(records)
    is_asked = terms.acting.remedy is Action.ROLLBACK and last is not None
    return is_asked and last is not None and rollback_target(records, last.number, terms) is None


def _failed(
    account: UnitAccount,
    terms: ReleaseTerms,
    conditions: FluxConditions,
    records: Sequence[ReleaseRecord],
    why: str,
) -> tuple[str, str]:
    """What has failed: the release, or its tests; the sentence, and the reason."""
    name, action = f"{terms.namespace}/{terms.name}", terms.action
    if account.by_test:
        tested = newest(one for one in records if has_failed_tests(one))
        if tested is not None:
            _succeed(conditions, tested)
            return fail_tests(conditions, f"{_named(tested)} with chart {_chart(tested)}", why)
        return fail_tests(conditions, name, why)
    failed = newest(one for one in records if one.status is ReleaseStatus.FAILED)
    chart = f" with chart {_chart(failed)}" if failed is not None else ""
    told, reason = (
        f"Helm {action} failed for release {name}{chart}: {why}",
        f"{action.capitalize()}Failed",
    )
    conditions.set(RELEASED, "False", reason, told)
    conditions.drop(TESTED)
    return told, reason


def _remedied(
    terms: ReleaseTerms, records: Sequence[ReleaseRecord], why: str, *, went_well: bool
) -> tuple[str, str]:
    """What was done about a failure: the sentence, and the reason."""
    outcome = "succeeded" if went_well else f"failed: {why}"
    end = "Succeeded" if went_well else "Failed"
    if terms.acting.remedy is not Action.ROLLBACK:
        name = f"{terms.namespace}/{terms.name}"
        return f"Helm uninstall remediation for release {name} {outcome}", f"Uninstall{end}"
    last = newest(records)
    described = text(last.content, "info", "description") if last is not None else ""
    to = described.removeprefix(ROLLED_BACK)
    target = next((one for one in records if str(one.number) == to), last)
    if target is None:
        return f"Helm rollback to previous release {outcome}", f"Rollback{end}"
    named = f"{_named(target)} with chart {_chart(target)}"
    return f"Helm rollback to previous release {named} {outcome}", f"Rollback{end}"


def _named(record: ReleaseRecord) -> str:
    return f"{record.namespace}/{record.name}.v{record.number}"


def _chart(record: ReleaseRecord) -> str:
    return "@".join(record.chart)


def _artifact_of(records: Sequence[ReleaseRecord], sources: Sequence[Provenance]) -> str:
    """The digest of the OCI artifact that the newest chart tells in its version, if it does."""
    tried = newest(one for one in records if not _is_rollback(one))
    build = tried.chart[1].rpartition("+")[2] if tried is not None else ""
    digests = (one.revision.digest for one in sources)
    return next((one for one in digests if build and build == _short(one)), "")


def _short(digest: str) -> str:
    return digest.rpartition(":")[2][:TOLD_OF_DIGEST]


def _attempted(
    own: Body, account: UnitAccount, records: Sequence[ReleaseRecord], digest: str
) -> Body:
    """What was tried last; nothing where nothing was."""
    tried = newest(one for one in records if not _is_rollback(one))
    terms = account.release
    if tried is None or terms is None or not account.operated:
        return {}
    return {
        "lastAttemptedGeneration": number(own, "metadata", "generation"),
        "lastAttemptedReleaseAction": terms.action.value,
        "lastAttemptedRevision": tried.chart[1],
        "lastAttemptedConfigDigest": _digest(tried.config),
        **({"lastAttemptedRevisionDigest": digest} if digest else {}),
    }


def _counts(account: UnitAccount, terms: ReleaseTerms) -> Body:
    """How often it has failed since something was changed."""
    if not account.operated or account.result != Result.FAILED or terms.action not in FAILURES:
        return {}
    times = account.retries + 1
    return {"failures": times, FAILURES[terms.action]: times}


def _is_rollback(record: ReleaseRecord) -> bool:
    return text(record.content, "info", "description").startswith(ROLLED_BACK)


def _history(
    records: Iterable[ReleaseRecord], known: Sequence[Body], digest: str, terms: ReleaseTerms
) -> list[Json]:
    """Snapshots, the newest first, down to the last one before it that was well."""
    digests = {_short(told): told for told in (text(old, "ociDigest") for old in known) if told}
    digests |= {_short(digest): digest} if digest else {}
    ordered = sorted(records, key=lambda one: one.number, reverse=True)
    if not ordered:
        return [
            {**one, "status": ReleaseStatus.UNINSTALLED.value}
            for one in known[:1]
            if text(one, "status") != ReleaseStatus.UNINSTALLED
        ] or [*known[:1]]
    kept: list[Json] = []
    for one in ordered[:MOST_SNAPSHOTS]:
        kept.append(_snapshot(one, digests.get(one.chart[1].rpartition("+")[2], "")))
        if len(kept) > 1 and one.status in GOOD and not is_refused(one, terms):
            break
    return kept


def _snapshot(record: ReleaseRecord, artifact: str) -> Body:
    chart, info = mapping(record.content, "chart", "metadata"), mapping(record.content, "info")
    told: Body = {
        "apiVersion": SNAPSHOT,
        "digest": _digest({**record.content, "info": {}}),
        "name": record.name,
        "namespace": record.namespace,
        "version": record.number,
        "status": record.status.value,
        "chartName": text(chart, "name"),
        "chartVersion": text(chart, "version"),
        "configDigest": _digest(record.config),
        "firstDeployed": text(info, "first_deployed"),
        "lastDeployed": text(info, "last_deployed"),
    }
    if text(chart, "appVersion"):
        told["appVersion"] = text(chart, "appVersion")
    if artifact:
        told["ociDigest"] = artifact
    tests = snapshot_tests(record)
    return {**told, "testHooks": tests} if tests else told


def _digest(body: Body) -> str:
    told = msgspec.json.encode(body, order="sorted")
    return f"sha256:{hashlib.sha256(told).hexdigest()}"
