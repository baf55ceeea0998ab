"""Checks of the manifests of a plan without a cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tidegate.engine.cluster.manifest_checks import find_manifest_failures
from tidegate.engine.cluster.preflight.checks import failure_events
from tidegate.engine.evaluator import ObjectEvaluator
from tidegate.model.finding import Finding
from tidegate.model.k8s.objects import Ref, ServedKind
from tidegate.model.plans.plan import Plan, Step, step_items
from tidegate.model.redaction import Redactor
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.times import Ms
from tidegate.planning.refusals import NOT_SERVED, is_missing_dependency, refusal_findings
from tidegate.schema.removed_versions import may_be_served
from tidegate.workspace.locations import FieldLocator


def check_manifests(
    plan: Plan,
    evaluator: ObjectEvaluator,
    served_kinds: Mapping[str, Collection[ServedKind]],
    locator: FieldLocator,
) -> tuple[Finding, ...]:
    """Return the objects that every API server rejects, each at the line of the field.

    `served_kinds`: by cluster, the kinds that it serves. Custom kinds are left out: their operator
    may be installed. So are versions of a built-in kind that some API servers serve.
    """
    failures = find_manifest_failures(plan, evaluator, served_kinds)
    if not failures:
        return ()
    origins = {(step.id, item.ref): item.origin for step in plan.steps for item in step_items(step)}

    def find_origin(step: Step, ref: Ref) -> str:
        return origins[step.id, ref]

    events = failure_events(EventType.OBJECT_REFUSED, failures, Ms(0), find_origin)
    redact = Redactor.from_plan(plan).redact_event
    return refusal_findings(
        (
            redact(locator.locate_event(event))
            for event in events
            if not is_missing_dependency(event) and not _may_be_accepted(event)
        ),
        {},
    )


def _may_be_accepted(event: Event) -> bool:
    """Return whether some API servers serve the version of a refused object."""
    return event.reason == NOT_SERVED and event.ref is not None and may_be_served(event.ref.kind)
