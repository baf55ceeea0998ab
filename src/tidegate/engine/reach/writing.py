"""Writing one object, and what a refusal means for the step."""

from __future__ import annotations

import msgspec

from tidegate.engine.means import Body, Draft, Means
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.vocabulary import Trouble, Written
from tidegate.errors import foreign
from tidegate.model.objects import Kind, Live, Propagation, Ref, Spot
from tidegate.model.patterns import late
from tidegate.model.plan import Deed, Item, PlannedUnit
from tidegate.model.reading import text
from tidegate.world import facts
from tidegate.world.calls import Get, PatchForm, Verb, Write

SECRET = Kind("", "v1", "Secret")
KEPT = late(r"&value\.valueUnstructured\{Value:(.*)\}")
"""How servers tell a value that they could not read."""
ADOPTIONS = 3
"""How often an adoption is tried against others who write at the same time."""
OVERTAKEN = facts.Conflict | facts.Exists | facts.Missing
REPLACEMENTS = 5
"""The same for an object that is put there as a whole."""


def read_body(live: Live) -> Body:
    """What a server told of an object; items of a list do not say what kind they are of."""
    body: Body = msgspec.json.decode(live.body)
    if "kind" not in body:
        kind = live.ref.kind
        return {"apiVersion": kind.api_version, "kind": kind.name, **body}
    return body


def apply(
    spot: Spot, item: Item, unit: PlannedUnit, *, live: Live | None, means: Means, urgent: bool
) -> Errand[facts.Outcome]:
    """Put an object there, as a whole or by our fields.

    In the second case, fields that earlier appliers left are made ours before.
    """
    body = None if live is None else read_body(live)
    draft = means.draft(unit, item, body)
    if draft.replaces:
        return (yield from _replace(spot, item, unit, live=live, means=means, urgent=urgent))
    if body is not None:
        yield from _adopt(spot, item, unit, body, means)
    (outcome,) = yield (Ask(spot.cluster, wish(item, unit, draft, live), urgent),)
    return outcome


def _replace(
    spot: Spot, item: Item, unit: PlannedUnit, *, live: Live | None, means: Means, urgent: bool
) -> Errand[facts.Outcome]:
    """Put an object there as a whole. Who has overtaken us is read first, and then replaced."""
    tries = 0
    while True:
        draft = means.draft(unit, item, None if live is None else read_body(live))
        write = wish(item, unit, Draft(draft.body, replaces=True), live)
        (outcome,) = yield (Ask(spot.cluster, write, urgent),)
        tries += 1
        if tries == REPLACEMENTS or not isinstance(outcome, OVERTAKEN):
            return outcome
        (found,) = yield (Ask(spot.cluster, Get(spot.ref)),)
        live = found.live if isinstance(found, facts.Done) else None


def wish(
    item: Item, unit: PlannedUnit, draft: Draft, live: Live | None, *, dry_run: bool = False
) -> Write:
    """The write that brings an object as it is wanted."""
    verb = Verb.APPLY
    if item.deed is Deed.CREATE or (draft.replaces and live is None):
        verb = Verb.CREATE
    elif draft.replaces:
        verb = Verb.REPLACE
    return Write(
        verb=verb,
        ref=item.ref,
        body=draft.body,
        manager=unit.policy.manager,
        force=verb is Verb.APPLY,
        version=live.version if live is not None and verb is Verb.REPLACE else "",
        dry_run=dry_run,
    )


def _adopt(spot: Spot, item: Item, unit: PlannedUnit, live: Body, means: Means) -> Errand[None]:
    for _ in range(ADOPTIONS):
        patch = means.adopt(unit, item, live)
        if patch is None:
            return
        request = Write(verb=Verb.PATCH, ref=spot.ref, body=patch, form=PatchForm.JSON)
        (outcome,) = yield (Ask(spot.cluster, request),)
        if not isinstance(outcome, facts.Conflict | facts.Invalid):
            return
        (found,) = yield (Ask(spot.cluster, Get(spot.ref)),)
        if not isinstance(found, facts.Done) or found.live is None:
            return
        live = read_body(found.live)


def delete(
    spot: Spot, uid: str, propagation: Propagation, known: Live | None
) -> Errand[facts.Outcome]:
    """Have an object deleted; one that is known to be on its way already is left to that."""
    if known is not None and known.uid == uid and is_leaving(known):
        return facts.Done(known)
    request = Write(verb=Verb.DELETE, ref=spot.ref, uid=uid, propagation=propagation)
    (outcome,) = yield (Ask(spot.cluster, request),)
    return outcome


def is_leaving(live: Live) -> bool:
    return bool(text(read_body(live), "metadata", "deletionTimestamp"))


def trouble_of(outcome: facts.Outcome, ref: Ref | None = None) -> Trouble:
    """What a refused write means: is it worth another try?"""
    if not facts.is_refusal(outcome):
        return Trouble("Unexpected", "the answer was not an object")
    if isinstance(outcome, facts.Invalid):
        fixed = "immutable" in outcome.message
        reason = "Immutable" if fixed else "Invalid"
        parts = told_parts(outcome.causes, ref)
        return Trouble(reason, _told_refusal(outcome, ref), final=not fixed, parts=parts)
    reason = outcome.reason if isinstance(outcome, facts.Failed) else type(outcome).__name__
    return Trouble(reason or "Failed", _told_refusal(outcome, ref))


def _told_refusal(refusal: facts.Refusal, ref: Ref | None) -> str:
    causes = refusal.causes if isinstance(refusal, facts.Invalid) else ()
    if ref is not None and ref.kind == SECRET:
        return told_causes(causes, ref) or "the cluster refuses it"
    return told_causes(causes, ref) or foreign(refusal.message)


def told_causes(causes: tuple[facts.Cause, ...], ref: Ref | None = None) -> str:
    """What is wrong, in one sentence."""
    parts = dict.fromkeys(sentence for _, sentence in told_parts(causes, ref))
    is_secret = ref is not None and ref.kind == SECRET
    return foreign((", " if is_secret else "; ").join(parts))


def told_parts(
    causes: tuple[facts.Cause, ...], ref: Ref | None = None
) -> tuple[tuple[str, str], ...]:
    """What is wrong, field by field. Words about a Secret may hold what is secret."""
    if ref is not None and ref.kind == SECRET:
        return tuple((one.field, foreign(_discreet(one))) for one in causes)
    return tuple((one.field, foreign(_told_cause(one))) for one in causes)


def _told_cause(cause: facts.Cause) -> str:
    """A value is told as it stands there, and not as a server's program keeps it."""
    message = KEPT.sub(r"\1", cause.message)
    return f"{cause.field}: {message}" if cause.field else message


def _discreet(cause: facts.Cause) -> str:
    """What is wrong, without the value that stands there."""
    field = cause.field or "a value"
    wanted, got, _ = cause.message.partition(", got ")
    is_of_type = got and wanted.startswith("expected ")
    return f"{field}: {wanted}" if is_of_type else f"{field} is not what it must be"


def written(live: Live, *, before: Live | None, status: str) -> Written:
    changed = before is None or before.version != live.version or before.uid != live.uid
    return Written(live.uid, live.generation, live.version, status, changed=changed)
