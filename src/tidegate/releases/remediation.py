"""Remediation of a failed release: rollback to an earlier revision, or uninstall.

Both are planned before the first write, and run when the release has failed. Their steps come
from the records of the release, in Helm's order, with Helm's hooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec

from tidegate.clusters.evaluator import prune_candidate
from tidegate.dialect.helm.action_policy import with_action
from tidegate.dialect.helm.record import ReleaseRecord
from tidegate.dialect.manifests import ScopeLookup, parse_manifests
from tidegate.dialect.units import is_dialect_kind
from tidegate.documents import read_documents
from tidegate.engine.evaluator import FailingUnit
from tidegate.errors import DocumentError
from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import Ref, object_body, versionless_key
from tidegate.model.plans.manifest import Manifest, Manifests
from tidegate.model.plans.plan import (
    Edge,
    EdgeReason,
    ItemAction,
    Plan,
    PlanFragment,
    PlannedUnit,
    Step,
    step_items,
)
from tidegate.model.units.release_history import ReleaseAction, ReleaseContents, ReleaseSpec
from tidegate.model.units.unit import Destination, Unit
from tidegate.plan.build.build import build_plan
from tidegate.plan.build.chains import step_id
from tidegate.plan.build.releases import OBJECTS_STAGE
from tidegate.plan.changes.delete_unit import build_deletion
from tidegate.plan.changes.prune import PruneCandidate, is_crd, prune_units


def record_manifest(record: ReleaseRecord) -> str:
    """Return the manifest of a revision with its hooks."""
    hooks = (get_text(hook, "manifest") for hook in get_mappings(record.content, "hooks"))
    return _join_documents((record.manifest, *hooks))


def contents_manifest(contents: ReleaseContents) -> str:
    return _join_documents((contents.manifest, *(hook.manifest for hook in contents.hooks)))


def roll_back(
    failing: FailingUnit, release: ReleaseSpec, target: ReleaseRecord
) -> PlanFragment | None:
    """Restore the objects of an earlier revision, and delete what only the failed one had.

    None if the record cannot be read.
    """
    manifests = _read_for_action(failing, release, record_manifest(target), ReleaseAction.ROLLBACK)
    if manifests is None:
        return None
    plan = build_plan((manifests,), readiness_timeout=readiness_timeout)
    restored = {versionless_key(manifest.ref) for manifest in manifests.manifests}
    obsolete = [
        candidate
        for candidate in _written_objects(failing)
        if versionless_key(candidate.ref) not in restored
    ]
    return _remediation_steps(prune_units(plan, [(plan.units[0], obsolete)]))


def without_retries(failing: FailingUnit) -> PlanFragment:
    """Return the unit without retries: there is no revision to roll back to before each of them."""
    unit = failing.unit
    semantics = unit.policy.semantics
    retry = msgspec.structs.replace(
        semantics.retry, limit=0, remediates_before_retry=False, remediates_last=False
    )
    policy = msgspec.structs.replace(
        unit.policy, semantics=msgspec.structs.replace(semantics, retry=retry)
    )
    return PlanFragment(units=(msgspec.structs.replace(unit, policy=policy),))


def uninstall(
    failing: FailingUnit, release: ReleaseSpec, manifest: str, created: Iterable[Ref]
) -> PlanFragment | None:
    """Delete the objects of the release, and those of its last good revision.

    None if the manifest cannot be read.
    """
    manifests = _read_for_action(failing, release, manifest, ReleaseAction.UNINSTALL)
    if manifests is None:
        return None
    earlier = (_prune_candidate(failing, ref) for ref in created)
    candidates = {
        candidate.ref: candidate
        for candidate in (*filter(None, earlier), *_written_objects(failing))
    }
    return _remediation_steps(
        build_deletion(manifests, candidates.values(), readiness_timeout=readiness_timeout)
    )


def clean_up_on_fail(failing: FailingUnit, release: ReleaseSpec) -> PlanFragment:
    """Delete the objects that the failed release created, like Helm's `--cleanup-on-fail`."""
    unit = Unit(
        id=failing.unit.id,
        destination=Destination(failing.unit.cluster, release.namespace),
        policy=failing.unit.policy,
    )
    created = [
        candidate
        for candidate in _written_objects(failing)
        if failing.find_live(candidate.ref) is None
    ]
    return _remediation_steps(
        build_deletion(Manifests(unit=unit), created, readiness_timeout=readiness_timeout)
    )


def _join_documents(manifests: Iterable[str]) -> str:
    return "".join(f"---\n{manifest}\n" for manifest in manifests if manifest.strip())


def _read_for_action(
    failing: FailingUnit, release: ReleaseSpec, manifest: str, action: ReleaseAction
) -> Manifests | None:
    action_spec = msgspec.structs.replace(release, action=action)
    return parse_release(failing.unit, action_spec, manifest, failing.is_namespaced)


def parse_release(
    planned: PlannedUnit, release: ReleaseSpec, manifest: str, is_namespaced: ScopeLookup
) -> Manifests | None:
    """Return the manifests in a release manifest; None if a part of it cannot be read."""
    policy = with_action(planned.policy, release)
    policy = msgspec.structs.replace(policy, create_namespace=False)
    destination = Destination(planned.cluster, release.namespace)
    unit = Unit(id=planned.id, destination=destination, policy=policy)
    try:
        documents = read_documents(manifest, f"release {release.name}")
    except DocumentError:
        return None
    parsed, errors = parse_manifests(unit, documents, is_namespaced)
    manifests = tuple(item for item in parsed.manifests if _is_applicable(item, is_namespaced))
    return None if errors else msgspec.structs.replace(parsed, manifests=manifests)


def _is_applicable(manifest: Manifest, is_namespaced: ScopeLookup) -> bool:
    """Return whether the object can be written: a unit resource only where its kind is served."""
    return not is_dialect_kind(manifest.ref.kind) or is_namespaced(manifest.ref.kind) is not None


def _written_objects(failing: FailingUnit) -> Iterator[PruneCandidate]:
    """Yield the objects that only this unit is about to write, without CRDs."""
    for item in (item for step in failing.steps for item in step_items(step)):
        is_applied = item.action is ItemAction.APPLY and item.hook is None
        if not is_applied or is_crd(item.ref.kind):
            continue
        if failing.find_live(item.ref) is None or _prune_candidate(failing, item.ref) is not None:
            yield PruneCandidate(item.ref, options=item.options)


def _prune_candidate(failing: FailingUnit, ref: Ref) -> PruneCandidate | None:
    """Return the prune candidate of a live object of the unit; None if there is none."""
    live = failing.find_live(ref)
    return None if live is None else prune_candidate(object_body(live), failing.unit)


def _remediation_steps(plan: Plan) -> PlanFragment:
    """Return the steps of a plan as remediation steps, one after another."""
    unit = plan.units[0]

    def as_remediation(step: Step) -> Step:
        stage = (
            f"{ReleaseAction.ROLLBACK}/{OBJECTS_STAGE}"
            if step.stage == OBJECTS_STAGE
            else step.stage
        )
        name = step_id(unit, stage) if stage != step.stage else step.id
        return msgspec.structs.replace(step, id=name, stage=stage, only_on_failure=True)

    steps = [as_remediation(step) for step in plan.steps if step.batches]
    edges = (Edge(earlier.id, later.id, EdgeReason.STAGE) for earlier, later in pairwise(steps))
    return PlanFragment(steps=tuple(steps), edges=tuple(edges))
