"""Helm's order inside a unit: definitions, hooks before, objects, hooks after, tests.

Definitions of the chart's `crds` come before everything, and the rest stands on them. Hooks are run
one after another, by weight and name. Objects are applied kind by kind, in Helm's order of kinds;
what has left the chart goes behind them, before they are waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tidegate.model.helm_order import kind_rank
from tidegate.model.manifest import Manifest, Phase
from tidegate.model.plan import TESTING, HookPolicy
from tidegate.plan.waves import StepGroup

GROUND = "crds"
OBJECTS = "objects"
NAMESPACE = "namespace"
WORDS = {Phase.PRE_SYNC: "pre", Phase.POST_SYNC: "post"}


def group_by_release(manifests: tuple[Manifest, ...], action: str) -> list[StepGroup]:
    """The steps of a release, in their order; those without objects are left out."""
    ordinary = [one for one in manifests if one.hook is None]
    ground = [one for one in ordinary if one.ground]
    created = [one for one in ordinary if one.phase is Phase.PRE_SYNC]
    rest = [one for one in ordinary if not one.ground and one.phase is not Phase.PRE_SYNC]
    hooks = [one for one in manifests if one.hook is not None]
    before, after = (_hooks(hooks, phase, f"{word}-{action}") for phase, word in WORDS.items())
    tests = _hooks(hooks, Phase.TEST, TESTING)
    ordered = sorted(rest, key=lambda one: kind_rank(one.ref.kind.name))
    stages = ((NAMESPACE, created), (GROUND, ground))
    found = [StepGroup(Phase.SYNC, 0, stage, mine) for stage, mine in stages if mine]
    objects = [StepGroup(Phase.SYNC, 0, OBJECTS, ordered)] if ordered else []
    return [*found, *before, *objects, *after, *tests]


def by_weight(hooks: Iterable[Manifest]) -> list[Manifest]:
    """Hooks as Helm runs them: by weight, then by name; kinds tell apart what is left."""
    return sorted(
        hooks, key=lambda one: (one.wave, one.ref.name, kind_rank(one.ref.kind.name), one.ref)
    )


def _run_again(hook: Manifest) -> Manifest:
    """A hook that ran before the objects, and is made anew behind them.

    Helm deletes what goes when it is well behind the hooks of each event; here it goes at the end
    of the unit, or when it is made anew.
    """
    policies = hook.hook or ()
    if HookPolicy.SUCCEEDED not in policies:
        return hook
    anew = dict.fromkeys((*policies, HookPolicy.BEFORE_CREATION))
    return msgspec.structs.replace(hook, hook=tuple(anew))


def _hooks(hooks: Sequence[Manifest], phase: Phase, event: str) -> list[StepGroup]:
    """Each is a step of its own: the next one waits for it."""
    order = [*Phase]
    ran = {one.ref for one in hooks if order.index(one.phase) < order.index(phase)}
    mine = by_weight(one for one in hooks if one.phase is phase)
    mine = [_run_again(one) if one.ref in ran else one for one in mine]
    return [
        StepGroup(phase, one.wave, f"{event}/{number}" if len(mine) > 1 else event, [one])
        for number, one in enumerate(mine, 1)
    ]
