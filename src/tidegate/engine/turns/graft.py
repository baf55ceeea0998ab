"""Plans that grow and plans that give way: expansion and supersession."""

from __future__ import annotations

import msgspec

from tidegate.engine.turns.linking import add, add_items, link, link_all
from tidegate.engine.turns.ordering import (
    close_expanded,
    failed,
    leave_out,
    release_all,
    rescue,
    start_unit,
)
from tidegate.engine.turns.rollout import Rollout, StepRun, Turn, UnitRun
from tidegate.engine.turns.waiting import keep_slot
from tidegate.engine.vocabulary import Expanded, LetGo, Superseded, Taken, Trouble
from tidegate.model.event import StepState, Told
from tidegate.model.plan import Plan, Step, public_digest
from tidegate.model.unit import UnitId

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
    release_all(turn, runs, heard.due)


def taken(turn: Turn, heard: Taken) -> None:
    """A unit is ours: begin with what it comes to by now."""
    unit = turn.rollout.units.get(heard.unit)
    if unit is None or not unit.unheld or unit.ended:
        return
    unit.unheld = unit.wanted = False
    turn.touched[heard.unit] = unit
    if heard.trouble is not None:
        leave_out(turn, unit, heard.trouble)
    elif heard.part is not None:
        _renew(turn.rollout, unit, heard.part)
    start_unit(turn, unit)


def _renew(rollout: Rollout, unit: UnitRun, part: Plan) -> None:
    """Put other steps in the place of those of a unit that has not begun.

    A step that is gone has nothing to do any more, and others wait for it as before. One that is
    new stands where the edges of the part put it; as the first or the last of the unit it waits for
    what the first waited for, or holds what the last held.
    """
    known, wanted = list(unit.steps), {step.id: step for step in part.steps}
    firsts = [run for run in known if not _is_within(run.before, unit)]
    lasts = [run for run in known if not _is_within(run.after, unit)]
    before = dict.fromkeys(one for run in firsts for one in run.before)
    after = dict.fromkeys(one for run in lasts for one in run.after)
    unit.hooked = False
    for run in known:
        _replace(rollout, run, wanted.get(run.step.id))
    fresh = add(rollout, msgspec.structs.replace(part, edges=()))
    parent = known[0].part_of if known else None
    for run in fresh:
        run.part_of = parent
    if parent is not None:
        parent.parts += len(fresh)
    _link_part(rollout, part)
    for run in (run for run in fresh if not run.step.rescues):
        for one in before if not _is_within(run.before, unit) else ():
            link(one, run)
        for one in after if not _is_within(run.after, unit) else ():
            link(run, one)


def _replace(rollout: Rollout, run: StepRun, step: Step | None) -> None:
    for item in run.items:
        rollout.items[item.spot].remove(item)
    run.items, run.void = [], step is None
    if step is not None:
        run.step = step
        add_items(rollout, run)


def _is_within(steps: list[StepRun], unit: UnitRun) -> bool:
    return any(step.unit is unit for step in steps)


def _link_part(rollout: Rollout, part: Plan) -> None:
    """Add the edges of a part that are new; what has begun waits for nothing more."""
    for edge in part.edges:
        before, after = rollout.steps.get(edge.before), rollout.steps.get(edge.after)
        if before is None or after is None or after in before.after:
            continue
        if after.state is StepState.WAITING:
            link(before, after)


def supersede(turn: Turn, heard: Superseded) -> None:
    """Take over a newer plan at the next safe point: when no answer is outstanding."""
    turn.rollout.yields = True
    turn.rollout.successor = heard if heard.plan is not None else None


def give_way(turn: Turn) -> None:
    """At a safe point, go on with the newer plan. Steps that are the same in both are kept."""
    rollout = turn.rollout
    newer = rollout.successor
    plan = newer.plan if newer is not None else None
    if newer is None or plan is None or rollout.busy or rollout.ended:
        return
    rollout.yields, rollout.successor = False, None
    awaited = {name: unit for name, unit in rollout.units.items() if unit.unheld}
    for name in awaited.keys() - set(newer.due):
        turn.order(LetGo(name))
    tried = _counted_on(rollout)
    old = _clear(rollout)
    kept = _kept(old, plan)
    for step in old.values():
        if step.step.id not in kept and not step.is_final:
            turn.enter(step, StepState.SUPERSEDED)
    rollout.digest = plan.digest
    rollout.failed, rollout.gave_up = False, ""
    rollout.late, rollout.looking = None, False
    turn.tell(Told.ROLLOUT_SUPERSEDED, reason=public_digest(plan))
    _go_on_with(turn, newer, plan, {name: old[name] for name in kept})
    for name in tried.keys() & rollout.units.keys():
        rollout.units[name].attempts = tried[name]


def _counted_on(rollout: Rollout) -> dict[UnitId, int]:
    """How often those were tried that a newer text does not give as many tries again."""
    units = rollout.units.items()
    return {name: one.attempts for name, one in units if one.rules.retry.counts_on}


def _go_on_with(turn: Turn, newer: Superseded, plan: Plan, kept: dict[str, StepRun]) -> None:
    rollout = turn.rollout
    runs = add(rollout, msgspec.structs.replace(plan, edges=()))
    for run in runs:
        if run.step.id in kept:
            _keep(turn, run, kept[run.step.id])
    link_all(rollout, plan.edges)
    for unit in dict.fromkeys(run.unit for run in runs if run.step.id in kept):
        keep_slot(unit)
    turn.touched = {**rollout.units}
    for name, trouble in newer.left_out.items():
        if name in rollout.units:
            leave_out(turn, rollout.units[name], trouble)
    release_all(turn, runs, newer.due)
    for run in runs:
        if run.is_final:
            rescue(turn, run)


def _keep(turn: Turn, fresh: StepRun, old: StepRun) -> None:
    """Go on with a step where it was; its objects are the same, in the same order."""
    fresh.state, fresh.open, fresh.batch = old.state, old.open, old.batch
    fresh.trouble, fresh.let_go = old.trouble, old.let_go
    fresh.applied_at, fresh.active_at, fresh.deadline = old.applied_at, old.active_at, old.deadline
    for new, known in zip(fresh.items, old.items, strict=True):
        new.take_over(known)
    if not fresh.waits_only:
        fresh.unit.outdated = fresh.unit.unit.policy.asks_late  # its first step has had its turn
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
