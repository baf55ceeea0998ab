"""The Helm history of releases while their units are rolled out.

contents ── render    chart, values, manifest, hooks and notes of a release
  │
history ── dialect    which revision is written when, from the existing records
  │
writes                Secrets, each on top of the version that was read
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from tidegate.clusters.session import Session
from tidegate.dialect.helm import history
from tidegate.dialect.helm.record import (
    ReleaseRecord,
    encode_release,
    read_record,
    record_ref,
    record_secret,
    release_selector,
)
from tidegate.dialect.manifests import with_metadata
from tidegate.dialect.ownership.tracking import flux_labels
from tidegate.engine.evaluator import FailingUnit
from tidegate.errors import DialectError, RenderError
from tidegate.model.k8s.kinds import SECRET
from tidegate.model.k8s.objects import LiveObject
from tidegate.model.plans.plan import Plan, PlanFragment
from tidegate.model.times import Ms
from tidegate.model.units.chart_request import LookupResult
from tidegate.model.units.release_history import (
    PendingRevision,
    ReleaseAction,
    ReleaseContents,
    ReleaseHistory,
    ReleaseRevision,
    ReleaseSpec,
    ReleaseStorage,
    RevisionOutcome,
)
from tidegate.model.units.unit import Unit, UnitId
from tidegate.planning.plan import PlanResult
from tidegate.releases.records import read_records
from tidegate.releases.remediation import (
    clean_up_on_fail,
    contents_manifest,
    record_manifest,
    roll_back,
    uninstall,
    without_retries,
)
from tidegate.render.helm.release_contents import ChartDescription, build_release_contents
from tidegate.workspace.rendering.charts import describe_chart, relative_to_chart
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.result import (
    RenderedRelease,
    RenderResult,
    gather_results,
    raise_all,
)
from tidegate.world.requests import Verb, Write


class UnitLookups(msgspec.Struct, frozen=True):
    """The lookups of a unit's templates, with their results."""

    unit: Unit
    results: Mapping[str, LookupResult]
    lookup_error: RenderError | None = None
    """Why the unit cannot be rendered until a lookup finds more; None if it can."""


FIELD_MANAGER = "helm-controller"
EMPTY_CHART = ChartDescription({}, {}, "", ())


class HelmHistory(msgspec.Struct):
    """The histories of units that are Helm releases.

    A unit without a key is being uninstalled.
    """

    specs: Mapping[UnitId, ReleaseSpec]
    keys: Mapping[UnitId, str] = msgspec.field(default_factory=dict)
    """By unit, the key that identifies all inputs of its release."""
    contents: Mapping[UnitId, ReleaseContents] = msgspec.field(default_factory=dict)
    """Contents of each release that differs from the record in the cluster."""
    previous_releases: Mapping[UnitId, UnitId] = msgspec.field(default_factory=dict)
    """By the id of a previous release that is uninstalled, the unit that was moved."""
    lookups: Mapping[UnitId, UnitLookups] = msgspec.field(default_factory=dict)
    """Lookups of the templates of releases that are about to start."""
    stores_charts: bool = True
    """Whether records also contain the chart."""
    on_remediation: Callable[[PlanFragment], None] | None = None
    """Receives the remediation steps: earlier revisions contain secret values to redact."""

    def update(self, newer: HelmHistory) -> None:
        """Continue with what was rendered since: each attempt of a release is a new revision."""
        self.specs, self.keys, self.contents = newer.specs, newer.keys, newer.contents
        self.previous_releases, self.lookups = newer.previous_releases, newer.lookups

    def storage(self, unit: UnitId) -> ReleaseStorage | None:
        release = self.specs.get(unit)
        if release is None:
            return None
        return ReleaseStorage(SECRET, release.storage, release_selector(release.name))

    def preceding_units(self, unit: UnitId) -> tuple[UnitId, ...]:
        return tuple(
            previous for previous, successor in self.previous_releases.items() if successor == unit
        )

    def plan_revision(self, unit: UnitId, records: Sequence[LiveObject]) -> PendingRevision:
        revisions, release, key = _decode_records(records), self.specs[unit], self.keys.get(unit)
        if key is None:
            return history.plan_uninstall(revisions)
        pending = history.plan_revision(key, revisions, release, unit.tracking_id)
        if not pending.is_due or pending.is_resumed:
            return pending
        if pending.action is not release.action or unit not in self.contents:
            problem = f"release `{release.name}` was changed by another client after rendering"
            return msgspec.structs.replace(pending, problem=f"{problem}; run the command again")
        try:
            for record in self._start_changes(unit, revisions, pending, Ms(0)).created:
                encode_release(record.content)
        except DialectError as error:
            message = f"{error.problem}; {error.hint}" if error.hint else error.problem
            return msgspec.structs.replace(pending, problem=message)
        return pending

    def plan_remediation(
        self, failing: FailingUnit, records: Sequence[LiveObject], pending: PendingRevision
    ) -> PlanFragment | None:
        fragment = self._plan_remediation(failing, records, pending)
        if fragment is not None and self.on_remediation is not None:
            self.on_remediation(fragment)
        return fragment

    def _plan_remediation(
        self, failing: FailingUnit, records: Sequence[LiveObject], pending: PendingRevision
    ) -> PlanFragment | None:
        release = self.specs[failing.unit.id]
        action, revisions = release.action_spec.remediation, _decode_records(records)
        if pending.action is ReleaseAction.UNINSTALL:
            return None
        if action is None:
            return (
                clean_up_on_fail(failing, release) if release.action_spec.cleanup_on_fail else None
            )
        if action is ReleaseAction.ROLLBACK:
            target = history.find_rollback_target(revisions, pending.number, release)
            return (
                without_retries(failing) if target is None else roll_back(failing, release, target)
            )
        contents = self.contents.get(failing.unit.id)
        record = next(
            (candidate for candidate in revisions if candidate.number == pending.number), None
        )
        if contents is not None:
            return uninstall(
                failing, release, contents_manifest(contents), pending.previous_objects
            )
        if record is not None:
            return uninstall(failing, release, record_manifest(record), pending.previous_objects)
        return None

    def plan_remediation_revision(
        self, unit: UnitId, records: Sequence[LiveObject]
    ) -> PendingRevision:
        revisions, release = _decode_records(records), self.specs[unit]
        if release.action_spec.remediation is None:
            return PendingRevision(ReleaseAction.UNCHANGED)
        if release.action_spec.remediation is ReleaseAction.UNINSTALL:
            return history.plan_uninstall(revisions)
        return history.plan_rollback(revisions, release)

    def build_start_writes(
        self, unit: UnitId, records: Sequence[LiveObject], pending: PendingRevision, now: Ms
    ) -> tuple[Write, ...]:
        changes = self._start_changes(unit, _decode_records(records), pending, now)
        return tuple(self._record_writes(unit, records, changes, now))

    def _start_changes(
        self, unit: UnitId, revisions: Sequence[ReleaseRecord], pending: PendingRevision, now: Ms
    ) -> history.RecordChanges:
        if pending.action is ReleaseAction.UNINSTALL:
            return history.start_uninstall(revisions)
        if pending.is_resumed:
            return history.RecordChanges()
        if pending.action is ReleaseAction.ROLLBACK:
            release = self.specs[unit]
            return history.start_rollback(revisions, release, pending=pending, now=now)
        contents = self.contents[unit]
        return history.start_revision(
            contents, revisions, self.specs[unit], unit.tracking_id, pending=pending, now=now
        )

    def build_finish_writes(
        self,
        unit: UnitId,
        records: Sequence[LiveObject],
        pending: PendingRevision,
        outcome: RevisionOutcome,
        now: Ms,
    ) -> tuple[Write, ...]:
        revisions = _decode_records(records)
        if pending.action is ReleaseAction.UNINSTALL:
            changes = history.finish_uninstall(
                revisions, self.specs[unit], outcome=outcome, now=now
            )
        else:
            changes = history.finish_revision(revisions, pending=pending, outcome=outcome, now=now)
        return tuple(self._record_writes(unit, records, changes, now))

    def build_test_writes(
        self,
        unit: UnitId,
        records: Sequence[LiveObject],
        pending: PendingRevision,
        *,
        outcome: RevisionOutcome,
        now: Ms,
    ) -> tuple[Write, ...]:
        release = self.specs[unit]
        changes = history.record_tests(
            _decode_records(records), release, pending=pending, outcome=outcome
        )
        return tuple(self._record_writes(unit, records, changes, now))

    def _record_writes(
        self, unit: UnitId, entries: Sequence[LiveObject], changes: history.RecordChanges, now: Ms
    ) -> Iterable[Write]:
        storage, live_entries = self.specs[unit].storage, {entry.ref: entry for entry in entries}

        def put(record: ReleaseRecord, version: str) -> Write:
            body = record_secret(record, storage, now=now, version=version)
            return Write(
                verb=Verb.REPLACE if version else Verb.CREATE,
                ref=record_ref(record.name, record.number, storage),
                body=msgspec.json.encode(body),
                manager=FIELD_MANAGER,
                resource_version=version,
            )

        for record in changes.changed:
            yield put(
                record,
                live_entries[record_ref(record.name, record.number, storage)].resource_version,
            )
        for record in changes.created:
            yield put(record, "")
        for record in changes.deleted:
            ref = record_ref(record.name, record.number, storage)
            yield Write(verb=Verb.DELETE, ref=ref, uid=live_entries[ref].uid)


def _decode_records(records: Sequence[LiveObject]) -> list[ReleaseRecord]:
    return [read_record(msgspec.json.decode(record.body)) for record in records]


async def build_history(
    plan_result: PlanResult, session: Session, *, stores_charts: bool = True
) -> HelmHistory:
    """Return the history of the releases in a plan, including those that are uninstalled.

    Without `stores_charts` the records have no charts, for clusters where Helm does not read
    them.
    """
    specs, removed = (
        release_specs(plan_result.plan),
        {removed_unit.id for removed_unit in plan_result.removed_units},
    )
    rendered_releases = {
        unit_manifests.manifests.unit.id: (unit_manifests.rendered, unit_manifests.rendered.release)
        for unit_manifests in plan_result.unit_manifests
        if unit_manifests.manifests.unit.id in specs and unit_manifests.rendered.release is not None
        if unit_manifests.rendered.lookup_error is None
    }
    lookups = {
        unit_manifests.manifests.unit.id: UnitLookups(
            unit_manifests.manifests.unit, lookup_results, unit_manifests.rendered.lookup_error
        )
        for unit_manifests in plan_result.unit_manifests
        if (lookup_results := unit_manifests.rendered.lookups)
    }
    uninstalled = {unit_id: spec for unit_id, spec in specs.items() if unit_id in removed}
    if not rendered_releases:
        return HelmHistory(uninstalled, lookups=lookups, stores_charts=stores_charts)
    async with RenderContext(session.render_settings) as context:
        builds = {
            unit_id: _build_contents(unit_id, rendered, revised, context if stores_charts else None)
            for unit_id, (rendered, revised) in rendered_releases.items()
            if revised.existing is None
        }
        contents, errors = await gather_results(builds)
    raise_all(tuple(errors.values()))
    keys = {unit_id: revised.key for unit_id, (_, revised) in rendered_releases.items()}
    current_specs = {unit_id: specs[unit_id] for unit_id in rendered_releases}
    return HelmHistory(
        {**uninstalled, **current_specs},
        keys,
        contents,
        plan_result.previous_releases,
        lookups,
        stores_charts,
    )


def build_uninstall_history(plan: Plan) -> HelmHistory:
    """Return the history of a plan whose releases are all uninstalled."""
    return HelmHistory(release_specs(plan))


def has_releases(plan: Plan) -> bool:
    return bool(release_specs(plan))


def release_specs(plan: Plan) -> dict[UnitId, ReleaseSpec]:
    releases = ((unit.id, unit.policy.release) for unit in plan.units)
    return {unit_id: release for unit_id, release in releases if release is not None}


async def read_histories(plan: Plan, session: Session) -> tuple[ReleaseHistory, ...]:
    """Return the recorded revisions of all releases of a plan."""
    histories = []
    for unit in plan.units:
        release = unit.policy.release
        if release is not None:
            records = await read_records(release, unit.cluster, session, location=f"unit {unit.id}")
            rows = sorted(
                (record.number, record.status.value, record.description) for record in records
            )
            revisions = tuple(ReleaseRevision(*row) for row in rows)
            histories.append(
                ReleaseHistory(str(unit.id), release.namespace, release.name, revisions)
            )
    return tuple(histories)


async def _build_contents(
    unit: UnitId, rendered: RenderResult, revised: RenderedRelease, context: RenderContext | None
) -> ReleaseContents:
    labels, release = flux_labels(unit), revised.request
    documents = [
        msgspec.structs.replace(chart_document, body=with_metadata(chart_document.body, {}, labels))
        for chart_document in (
            relative_to_chart(document, release) for document in rendered.documents
        )
    ]
    chart = EMPTY_CHART if context is None else await describe_chart(release, context)
    return build_release_contents(revised.key, chart, documents)
