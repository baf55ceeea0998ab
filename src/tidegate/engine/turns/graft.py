"""Plans that grow and plans that give way: expansion and supersession."""

from __future__ import annotations

import msgspec

from tidegate.engine.turns.ordering import add, close_expanded, failed, link_all, release, rescue
from tidegate.engine.turns.rollout import Rollout, StepRun, Turn
from tidegate.engine.vocabulary import Expanded, Trouble
from tidegate.model.event import StepState, Told
from tidegate.model.plan import Plan, Step

KEPT = frozenset({StepState.PASSED, StepState.GATING})


def expanded(turn: Turn, heard: Expanded) -> None:
    """Graft what a step yielded into the rollout; the step passes when all of it has."""
    rollout = turn.rollout
    step = rollout.steps[heard.step]
    turn.answered(step.unit)
    if step.state is not StepState.CHECKING:
        return
    if isinstance(heard.outcome, Trouble):
        trouble = heard.outcome
        failed(turn, step, trouble.reason, trouble.sentence, final=trouble.final)
        return
    turn.enter(step, StepState.GATING, reason="Expanded")
    runs = add(rollout, heard.outcome)
    turn.touched |= {unit.id: rollout.units[unit.id] for unit in heard.outcome.units}
    step.parts, step.broken = len(runs), ""
    for run in runs:
        run.part_of = step
    if not runs:
        close_expanded(turn, step)
    for run in runs:
        release(turn, run)


def supersede(turn: Turn, plan: Plan | None) -> None:
    """Take over a newer plan at the next safe point: when no answer is outstanding."""
    turn.rollout.yields, turn.rollout.successor = True, plan


def give_way(turn: Turn) -> None:
    """At a safe point, go on with the newer plan. Steps that are the same in both are kept."""
    rollout = turn.rollout
    plan = rollout.successor
    if plan is None or rollout.busy or rollout.ended:
        return
    rollout.yields, rollout.successor = False, None
    old = _clear(rollout)
    kept = _kept(old, plan)
    for step in old.values():
        if step.step.id not in kept and not step.is_final:
            turn.enter(step, StepState.SUPERSEDED)
    rollout.digest = plan.digest
    rollout.failed, rollout.gave_up = False, ""
    turn.tell(Told.ROLLOUT_SUPERSEDED, reason=plan.digest)
    _go_on_with(turn, plan, {name: old[name] for name in kept})


def _go_on_with(turn: Turn, plan: Plan, kept: dict[str, StepRun]) -> None:
    rollout = turn.rollout
    runs = add(rollout, msgspec.structs.replace(plan, edges=()))
    for run in runs:
        if run.step.id in kept:
            _keep(turn, run, kept[run.step.id])
    link_all(rollout, plan.edges)
    turn.touched = {**rollout.units}
    for run in runs:
        release(turn, run)
        if run.is_final:
            rescue(turn, run)


def _keep(turn: Turn, fresh: StepRun, old: StepRun) -> None:
    """Go on with a step where it was; its objects are the same, in the same order."""
    fresh.state, fresh.open, fresh.batch = old.state, old.open, old.batch
    fresh.trouble = old.trouble
    fresh.applied_at, fresh.active_at, fresh.deadline = old.applied_at, old.active_at, old.deadline
    for new, known in zip(fresh.items, old.items, strict=True):
        new.take_over(known)
    if fresh.is_final:
        fresh.unit.unfinished -= 1
        fresh.unit.failed |= fresh.state is StepState.FAILED
    else:
        turn.ring_at(turn.now, fresh)


def _clear(rollout: Rollout) -> dict[str, StepRun]:
    old = rollout.steps
    rollout.units, rollout.steps, rollout.items, rollout.slots = {}, {}, {}, {}
    rollout.running = 0
    return old


def _kept(old: dict[str, StepRun], plan: Plan) -> set[str]:
    """Steps with equal id, digest and predecessors, all of which are kept as well."""
    before: dict[str, set[str]] = {step.id: set() for step in plan.steps}
    for edge in plan.edges:
        before[edge.after].add(edge.before)
    kept: set[str] = set()
    for step in plan.steps:
        run = old.get(step.id)
        if run is None or not _can_be_kept(run, step):
            continue
        wanted = before[step.id]
        if wanted == {one.step.id for one in run.before} and wanted <= kept:
            kept.add(step.id)
    return kept


def _can_be_kept(run: StepRun, step: Step) -> bool:
    """What a step expanded to is not in the newer plan: while that runs, it must expand again.

    What was done about a failure is not done about the next one.
    """
    at_rest = run.state is StepState.PASSED
    stays = at_rest or (run.state in KEPT and not step.expands)
    return run.step.digest == step.digest and stays and not step.rescues
