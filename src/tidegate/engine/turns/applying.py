"""Writing the objects of a step: batch after batch, all of a batch at once."""

from __future__ import annotations

from tidegate.engine import vocabulary as words
from tidegate.engine.fences import is_older
from tidegate.engine.turns.gating import open_gate, set_deadline, settle, tell_wait
from tidegate.engine.turns.ordering import failed
from tidegate.engine.turns.rollout import ItemRun, ItemState, StepRun, Turn
from tidegate.model.change import Fate
from tidegate.model.event import LEFT, StepState, Told
from tidegate.model.ledger import DriftMode
from tidegate.model.objects import Propagation
from tidegate.model.plan import AWAITED, Deed, Item
from tidegate.model.semantics import Vanishing

UNCONFIRMED = "Unconfirmed"
ASKS = "it asks for confirmation before it is deleted"
CHANGED = "Changed"
ALONE = "it asks for being left alone"
UNSEEN = "it is brought already, and nobody looks whether others have changed it"
DRIFTED = "Drifted"
FINISHED = "it finished with this text and removed itself"
REAPPLIES = 3
"""How often an object that somebody takes away is put back before the step fails."""
WRITTEN = frozenset({ItemState.GATING, ItemState.PASSED})


def checked(turn: Turn, heard: words.Checked) -> None:
    step = turn.rollout.steps[heard.step]
    turn.answered(step.unit)
    if step.state is not StepState.CHECKING:
        return
    if heard.trouble is not None:
        trouble = heard.trouble
        failed(turn, step, trouble.reason, trouble.sentence, final=trouble.final)
        return
    for run, standing in zip(step.items, heard.standings, strict=True):
        run.stand, run.found, run.drift = standing.stand, standing.live, standing.drift
        run.fields, run.replaces = standing.fields, standing.replaces
    turn.enter(step, StepState.APPLYING)
    set_deadline(turn, step)
    _go_on(turn, step)


def resume(turn: Turn, step: StepRun) -> None:
    """An alarm while objects are written: a deletion may have taken too long."""
    stuck = next((run for run in step.items if run.state is ItemState.DELETING), None)
    if stuck is not None and step.deadline is not None and turn.now >= step.deadline:
        failed(turn, step, "Deadline", f"{stuck.item.ref} is still being deleted")


def _go_on(turn: Turn, step: StepRun) -> None:
    """Begin batches until one has something to wait for; behind the last is the gate."""
    while not step.outstanding and not turn.is_held(step) and not _awaits_consent(turn, step):
        trouble = step.trouble
        if trouble is not None and (step.rules.batch_stops or _cannot_prune(step)):
            if not _withdraw(turn, step):
                failed(turn, step, trouble.reason, trouble.sentence, final=trouble.final)
            return
        if step.batch == len(step.step.batches):
            open_gate(turn, step)
            return
        first = sum(len(batch) for batch in step.step.batches[: step.batch])
        for run in step.items[first : first + len(step.step.batches[step.batch])]:
            _put(turn, run)
        step.batch += 1


def _cannot_prune(step: StepRun) -> bool:
    """A wave whose deletions are refused applies nothing, by anybody's rules."""
    refused = (run for run in step.items if run.state is ItemState.FAILED)
    return any(run.item.deed is Deed.DELETE for run in refused)


def _withdraw(turn: Turn, step: StepRun) -> bool:
    """Whether something goes again that a step has made for a failure: a write of it is refused."""
    if not (step.step.rescues and step.unit.unit.policy.withdraws):
        return False
    made = [run for run in step.items if run.state is ItemState.GATING and _is_made(run)]
    for run in made:
        run.found = run.written
        _delete(turn, run)
        run.state = ItemState.WITHDRAWN
    return bool(made)


def _tell_withdrawn(
    turn: Turn, run: ItemRun, outcome: words.Written | words.Trouble | None
) -> None:
    """Nobody waits for its end; where it stays, the step fails for what it failed for."""
    step, ref = run.step, run.item.ref
    if isinstance(outcome, words.Trouble):
        why = outcome.sentence
        turn.tell(Told.OBJECT_REFUSED, step, ref=ref, reason=outcome.reason, sentence=why)
    else:
        turn.tell(Told.OBJECT_PRUNED, step, ref=ref)


def _is_made(run: ItemRun) -> bool:
    return run.item.hook is None and run.item.deed is Deed.APPLY and run.stand is words.Stand.ABSENT


def _put(turn: Turn, run: ItemRun) -> None:
    """Do what brings an object from how it stands to how it is wanted."""
    if run.item.deed is Deed.DELETE:
        _put_away(turn, run)
        return
    if run.item.deed in AWAITED:
        run.state = ItemState.GATING
        return
    match run.stand:
        case words.Stand.ABSENT | words.Stand.DIFFERENT:
            _apply(turn, run)
        case words.Stand.SAME:
            _settle_written(turn, run, run.found)
        case words.Stand.FINISHED | words.Stand.LEFT:
            _pass_over(turn, run)
        case words.Stand.OBSOLETE:
            _delete(turn, run)
        case words.Stand.IMMUTABLE:
            sentence = "it differs from what lives in fields that cannot be changed"
            _refuse(turn, run, words.Trouble("Immutable", sentence, final=True))


def _pass_over(turn: Turn, run: ItemRun) -> None:
    """Nothing is to be done, and nothing waited for."""
    run.state = ItemState.PASSED
    told, reason, sentence = Told.OBJECT_UNCHANGED, "Finished", FINISHED
    if run.drift is not None:
        told, reason, sentence = Told.OBJECT_DRIFTED, DRIFTED, run.drift.sentence
    elif run.stand is words.Stand.LEFT and _is_unseen(run):
        reason, sentence = "Brought", UNSEEN
    elif run.stand is words.Stand.LEFT:
        told, reason, sentence = Told.OBJECT_KEPT, LEFT, ALONE
    turn.tell_deed(told, run, Fate.KEEP, reason=reason, sentence=sentence)


def _is_unseen(run: ItemRun) -> bool:
    return run.step.unit.unit.policy.drift is DriftMode.DISABLED and run.item.deed is not Deed.LEAVE


def _put_away(turn: Turn, run: ItemRun) -> None:
    if run.stand is words.Stand.ABSENT:
        run.state = ItemState.PASSED
    elif _lacks_consent(run):
        run.state = ItemState.PASSED
        turn.tell_deed(Told.OBJECT_KEPT, run, Fate.KEEP, reason=UNCONFIRMED, sentence=ASKS)
    else:
        _delete(turn, run)


def _lacks_consent(run: ItemRun) -> bool:
    """Whether it would go, and nobody has agreed to that."""
    return (
        run.item.asks
        and run.stand is not words.Stand.ABSENT
        and not run.step.unit.unit.policy.consents
    )


def _awaits_consent(turn: Turn, step: StepRun) -> bool:
    """Whether a step is held: by some rules nothing of it is done before somebody agrees."""
    if not step.rules.awaits_consent:
        return False
    asking = [run for run in step.items if _lacks_consent(run)]
    for run in asking:
        tell_wait(turn, run, UNCONFIRMED, ASKS)
    return bool(asking)


def _delete(turn: Turn, run: ItemRun) -> None:
    run.state = ItemState.DELETING
    _ask(turn, run)
    uid = run.found.uid if run.found else ""
    turn.order(words.Delete(run.step.step.id, run.spot, uid, _propagation(run.item)))


def _propagation(item: Item) -> Propagation:
    """What is put back at once does not wait for what it owned, as with `kubectl replace`."""
    goes = item.deed is Deed.DELETE or item.hook is not None
    return item.handling.propagation if goes else Propagation.BACKGROUND


def _apply(turn: Turn, run: ItemRun) -> None:
    step = run.step
    run.state = ItemState.WRITING
    urgent = not step.outstanding and not step.batch
    _ask(turn, run)
    turn.order(words.Apply(step.step.id, run.spot, run.item, urgent))


def _ask(turn: Turn, run: ItemRun) -> None:
    run.asked = True
    run.step.outstanding += 1
    turn.ask(run.step.unit)


def wrote(turn: Turn, heard: words.Wrote) -> None:
    turn.answered(turn.rollout.steps[heard.step].unit)
    runs = turn.rollout.items.get(heard.spot, ())
    run = next((one for one in runs if one.asked and one.step.step.id == heard.step), None)
    if run is None:
        return
    run.asked = False
    match run.state, heard.outcome:
        case ItemState.WITHDRAWN, outcome:
            run.step.outstanding -= 1
            _tell_withdrawn(turn, run, outcome)
        case ((ItemState.WRITING | ItemState.DELETING), words.Trouble() as trouble):
            run.step.outstanding -= 1
            _refuse(turn, run, trouble)
        case ItemState.DELETING, outcome if outcome is None or run.found is None:
            _deleted(turn, run)
        case ItemState.DELETING, words.Written() as dying if run.item.deed is Deed.DELETE:
            run.step.outstanding -= 1
            run.written, run.state = dying, ItemState.GATING
        case ItemState.DELETING, _:
            pass  # its end will be told
        case ItemState.WRITING, words.Written() as written:
            run.step.outstanding -= 1
            _settle_written(turn, run, written)
        case _:
            run.step.outstanding -= 1  # the step has begun anew meanwhile
    _go_on_with(turn, run.step)


def _go_on_with(turn: Turn, step: StepRun) -> None:
    if step.state is StepState.APPLYING:
        _go_on(turn, step)
    elif step.state is not StepState.GATING:
        return
    elif step.trouble is not None and not step.rules.patient:
        trouble = step.trouble
        failed(turn, step, trouble.reason, trouble.sentence, final=trouble.final)
    else:
        turn.ring_at(turn.now, step)


def _settle_written(turn: Turn, run: ItemRun, written: words.Written | None) -> None:
    run.written = written
    run.at = turn.now
    run.state = ItemState.GATING
    run.probed = False
    if written is None or not written.changed:
        turn.tell_deed(Told.OBJECT_UNCHANGED, run, Fate.KEEP)
        return
    fields = () if run.reapplied else run.fields
    turn.tell_deed(Told.OBJECT_WRITTEN, run, _operation(run), fields=fields)


def _operation(run: ItemRun) -> Fate:
    """What a write has done to an object, by how it stood before."""
    if run.reapplied:
        return Fate.CHANGE
    if run.stand is words.Stand.ABSENT:
        return Fate.CREATE
    if run.stand is words.Stand.OBSOLETE:
        return Fate.RECREATE
    return Fate.REPLACE if run.replaces else Fate.CHANGE


def _refuse(turn: Turn, run: ItemRun, trouble: words.Trouble) -> None:
    run.state = ItemState.FAILED
    step, ref, reason, why = run.step, run.item.ref, trouble.reason, trouble.sentence
    turn.tell(Told.OBJECT_REFUSED, step, ref=ref, reason=reason, sentence=why)
    if step.trouble is None or trouble.final:
        step.trouble = words.Trouble(reason, f"{ref}: {why}", trouble.final)


def _deleted(turn: Turn, run: ItemRun) -> None:
    """What was to go is gone: put the new one in its place, or be done."""
    run.step.outstanding -= 1
    if run.item.deed is Deed.DELETE:
        run.state = ItemState.PASSED
        turn.tell_deed(Told.OBJECT_PRUNED, run, Fate.PRUNE)
    else:
        _apply(turn, run)


def gone(turn: Turn, heard: words.Gone) -> None:
    for run in turn.rollout.items.get(heard.spot, ()):
        if run.state is ItemState.DELETING and _is_found(run, heard.uid):
            if run.asked:
                run.found = None  # the answer comes next, and must not be taken for a later one's
                continue
            _deleted(turn, run)
            _go_on_with(turn, run.step)
        elif run.item.deed in AWAITED:
            run.judged, run.stand = None, words.Stand.ABSENT
            _go_on_with(turn, run.step)
        elif run.written and run.written.uid == heard.uid and _is_missed(run):
            _vanished(turn, run)
        elif run.item.asks and run.state is ItemState.PENDING and _is_found(run, heard.uid):
            run.stand = words.Stand.ABSENT
            _go_on_with(turn, run.step)


def _is_found(run: ItemRun, uid: str) -> bool:
    """Whether this is what lived when the step was checked."""
    return run.found is not None and run.found.uid == uid


def replaced(turn: Turn, heard: words.Judged) -> None:
    """Somebody put another object in the place of ours."""
    for run in turn.rollout.items.get(heard.spot, ()):
        ours = run.written
        if ours is None or ours.uid == heard.uid or not _is_missed(run):
            continue
        if run.step.rules.fenced and not is_older(heard.version, ours.version):
            _vanished(turn, run)


def _is_missed(run: ItemRun) -> bool:
    """Whether the gate of a step still needs what we wrote.

    What was well must be so when the gate opens; what has finished may remove itself.
    """
    if run.state is ItemState.GATING:
        return True
    is_well = run.state is ItemState.PASSED and run.item.gates and run.item.hook is None
    has_finished = run.written is not None and run.written.uid == run.finished
    waits = run.step.rules.fenced and run.step.state is StepState.GATING
    return is_well and waits and not has_finished


def verified(turn: Turn, heard: words.Verified) -> None:
    """What lives holds what we wrote, or somebody has changed it."""
    for run in turn.rollout.items.get(heard.spot, ()):
        step = run.step
        is_gating = step.state is StepState.GATING and run.state in WRITTEN
        if step.step.id != heard.step or not is_gating:
            continue
        run.verified = (heard.generation, heard.version)
        if heard.trouble is None:
            turn.ring_at(turn.now, step)
        else:
            tell_wait(turn, run, heard.trouble.reason, heard.trouble.sentence)
            _put_back(turn, run, heard.trouble)


def _vanished(turn: Turn, run: ItemRun) -> None:
    step = run.step
    if step.is_final:
        return  # it failed, and a hook may go then
    if run.item.deed is Deed.DELETE:
        turn.tell_deed(Told.OBJECT_PRUNED, run, Fate.PRUNE)
        settle(turn, run, ItemState.PASSED)
        return
    _put_back(turn, run, words.Trouble("Missing", "is missing, it might have been deleted"))


def _put_back(turn: Turn, run: ItemRun, trouble: words.Trouble) -> None:
    """Write again what somebody has taken away or changed, a few times; else the step fails.

    What was well already holds the gate of its step again.
    """
    step = run.step
    step.open += run.state is ItemState.PASSED
    again = step.rules.vanishing is Vanishing.REAPPLY
    if again and run.reapplied < REAPPLIES and not turn.is_held(step):
        run.reapplied += 1
        run.judged = None
        _apply(turn, run)
        set_deadline(turn, step)
        return
    sentence = f"{run.item.ref} {trouble.sentence}"
    # What removes itself may be missed a few times; who changes our text goes on doing so.
    final = trouble.reason == CHANGED and not step.rules.retry.gates
    step.trouble = step.trouble or words.Trouble(trouble.reason, sentence, final)
    if step.rules.patient:
        settle(turn, run, ItemState.FAILED)
    else:
        _go_on_with(turn, step)
