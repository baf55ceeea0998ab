"""Expansion of steps while a rollout runs."""

from __future__ import annotations

import msgspec

from tidegate.engine import vocabulary as messages
from tidegate.engine.opening import prepare_running_rollout
from tidegate.engine.reach.errands import ApiCall, Procedure
from tidegate.engine.reach.preflight import ObjectFailure
from tidegate.engine.reach.writing import failure_from_outcome
from tidegate.engine.site import RolloutContext
from tidegate.model.plan import Plan, PlanFragment, Step
from tidegate.world.calls import RunWorker
from tidegate.world.facts import RawResponse


def expand(context: RolloutContext, step: Step) -> Procedure[messages.StepExpanded]:
    """Ask a worker for the further steps of an expanding step, and prepare them."""
    (outcome,) = yield (ApiCall(step.cluster, RunWorker(step.expands, step.id.encode())),)
    if not isinstance(outcome, RawResponse):
        return messages.StepExpanded(step.id, failure_from_outcome(outcome))
    context.expanded_steps.add(step.id)
    requested = Plan.from_fragment(msgspec.json.decode(outcome.body, type=PlanFragment))
    context.register(requested.units, requested.steps, digest=requested.digest)
    preparation = yield from prepare_running_rollout(context, requested)
    for object_failure in preparation.failures:
        return messages.StepExpanded(step.id, failure_with_object(object_failure))
    plan = preparation.plan
    fragment = PlanFragment(units=plan.units, steps=plan.steps, edges=plan.edges, slots=plan.slots)
    return messages.StepExpanded(step.id, fragment, preparation.due_units)


def failure_with_object(object_failure: ObjectFailure) -> messages.Failure:
    """Return the failure with the name of its object in the message."""
    _, ref, failure = object_failure
    return messages.Failure(failure.reason, f"{ref}: {failure.message}", failure.final)
