"""Simulated rollouts compared: times of steps and outcomes, as text and as JSON documents."""

from __future__ import annotations

import msgspec

from tidegate.model.drift import Drift
from tidegate.model.expectation import DurationEstimate
from tidegate.model.ledger import ReleaseHistory
from tidegate.model.moment import Ms
from tidegate.model.resync import Resync
from tidegate.model.uptake import RevisionSync
from tidegate.report.rollout.documents import ObjectIdentity
from tidegate.report.rollout.ending import FailureDocument, failure_documents
from tidegate.report.simulation import (
    EngineRun,
    double_sync_from_start,
    drift_from_start,
    failure_message,
    progress_for_run,
    revision_sync_from_start,
)


class DriftDocument(ObjectIdentity, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """JSON form of `Drift`."""

    unit: str
    cluster: str = ""
    at: Ms
    sentence: str
    healed: Ms | None = None
    stays: str = ""
    attempts: int = 0


class RevisionSyncDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """JSON form of `RevisionSync`."""

    unit: str
    committed: Ms
    seen: Ms
    step: int = 0
    began: Ms | None = None
    ended: Ms | None = None
    ahead: tuple[str, ...] = ()
    stays: str = ""


class DoubleSyncDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """JSON form of `Resync`."""

    unit: str
    turn: Ms
    at: Ms
    hooks: tuple[ObjectIdentity, ...] = ()
    ended: Ms | None = None
    passed: bool = True


class EngineResultDocument(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="engine.ended"
):
    """Last JSON line of a simulated run with its outcome. Times count from the start."""

    engine: str
    outcome: str
    lasted: Ms
    """Duration in milliseconds."""
    expecting: DurationEstimate | None = None
    sentence: str = ""
    failures: tuple[FailureDocument, ...] = ()
    unwaited: tuple[ObjectIdentity, ...] = ()
    """Objects without a health check."""
    unplayed: tuple[ObjectIdentity, ...] = ()
    """Objects with a health check whose status is not simulated."""
    aftermath: tuple[FailureDocument, ...] = ()
    """Objects that failed after the engine had finished."""
    drifts: tuple[DriftDocument, ...] = ()
    """Changes by other clients."""
    uptakes: tuple[RevisionSyncDocument, ...] = ()
    """How units synced to revisions that were committed during the rollout."""
    resyncs: tuple[DoubleSyncDocument, ...] = ()
    """Applications that were synced twice."""
    unknown: str = ""
    """What could not be fetched; the result is weaker than it looks."""
    releases: tuple[ReleaseHistory, ...] = ()
    """Revisions of Helm releases."""
    faulty: tuple[str, ...] = ()
    """Units that were not simulated."""


def engine_result_document(run: EngineRun) -> EngineResultDocument:
    """Return the JSON document of a simulated run."""
    progress = progress_for_run(run)
    first, last = run.events[0], run.events[-1]
    return EngineResultDocument(
        engine=run.name,
        outcome=last.reason,
        lasted=Ms(last.at - first.at),
        expecting=run.durations,
        sentence=failure_message(run.events),
        failures=failure_documents(progress, run.evidence),
        unwaited=tuple(map(ObjectIdentity.from_ref, run.without_health_check)),
        unplayed=tuple(map(ObjectIdentity.from_ref, run.not_simulated)),
        aftermath=tuple(
            FailureDocument(**msgspec.structs.asdict(ObjectIdentity.from_ref(ref)), why=(failure,))
            for ref, failure in run.failures_after_end
        ),
        drifts=tuple(_drift_document(drift_from_start(drift, first.at)) for drift in run.drifts),
        uptakes=tuple(
            _revision_sync_document(revision_sync_from_start(revision_sync, first.at))
            for revision_sync in run.revision_syncs
        ),
        resyncs=tuple(
            _double_sync_document(double_sync_from_start(double_sync, first.at))
            for double_sync in run.double_syncs
        ),
        unknown=run.incomplete_message,
        releases=tuple(run.releases),
        faulty=tuple(map(str, run.faulty_units)),
    )


def _drift_document(drift: Drift) -> DriftDocument:
    return DriftDocument(
        **msgspec.structs.asdict(ObjectIdentity.from_ref(drift.ref)),
        unit=str(drift.unit),
        cluster=drift.cluster,
        at=drift.detected_at,
        sentence=drift.message,
        healed=drift.healed_at,
        stays=drift.not_healed_reason,
        attempts=drift.attempts,
    )


def _revision_sync_document(revision_sync: RevisionSync) -> RevisionSyncDocument:
    return RevisionSyncDocument(
        unit=str(revision_sync.unit),
        committed=revision_sync.committed_at,
        seen=revision_sync.detected_at,
        step=revision_sync.step,
        began=revision_sync.started_at,
        ended=revision_sync.finished_at,
        ahead=tuple(map(str, revision_sync.outdated_predecessors)),
        stays=revision_sync.not_synced_reason,
    )


def _double_sync_document(double_sync: Resync) -> DoubleSyncDocument:
    return DoubleSyncDocument(
        unit=str(double_sync.unit),
        turn=double_sync.rollout_at,
        at=double_sync.at,
        hooks=tuple(map(ObjectIdentity.from_ref, double_sync.hooks)),
        ended=double_sync.finished_at,
        passed=double_sync.passed,
    )
