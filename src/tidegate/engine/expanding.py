"""A step that yields further steps when its turn comes: they are looked at as a rollout is."""

from __future__ import annotations

import msgspec

from tidegate.engine import vocabulary as words
from tidegate.engine.opening import reopen_rollout
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.reach.preflight import Fault
from tidegate.engine.reach.writing import trouble_of
from tidegate.engine.site import Site
from tidegate.model.plan import Fragment, Plan, Step
from tidegate.world.calls import Local
from tidegate.world.facts import Said


def expand(site: Site, step: Step) -> Errand[words.Expanded]:
    (outcome,) = yield (Ask(step.cluster, Local(step.expands, step.id.encode())),)
    if not isinstance(outcome, Said):
        return words.Expanded(step.id, trouble_of(outcome))
    site.expanded.add(step.id)
    asked = Plan.of(msgspec.json.decode(outcome.body, type=Fragment))
    site.enlist(asked.units, asked.steps, digest=asked.digest)
    opening = yield from reopen_rollout(site, asked)
    for fault in opening.faults:
        return words.Expanded(step.id, named_trouble(fault))
    plan = opening.plan
    part = Fragment(units=plan.units, steps=plan.steps, edges=plan.edges, slots=plan.slots)
    return words.Expanded(step.id, part, opening.due)


def named_trouble(fault: Fault) -> words.Trouble:
    """A trouble of a step, which names the object."""
    _, ref, trouble = fault
    return words.Trouble(trouble.reason, f"{ref}: {trouble.sentence}", trouble.final)
