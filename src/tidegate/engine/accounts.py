"""Accounts: what became of a unit so far, made of where its steps and objects are."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.site import Site
from tidegate.engine.turns.rollout import ItemRun, ItemState, StepRun, UnitRun
from tidegate.engine.vocabulary import Stand
from tidegate.model.account import Became, Going, ObjectAccount, UnitAccount
from tidegate.model.event import StepState
from tidegate.model.moment import Ms
from tidegate.model.objects import Live, Spot, identity
from tidegate.model.plan import AWAITED, Deed, Item, Step, items_of
from tidegate.model.unit import UnitId
from tidegate.model.verdict import Verdict
from tidegate.world import facts
from tidegate.world.calls import Get

UNTOLD = AWAITED | {Deed.CREATE, Deed.SKIP}
"""What is not a unit's own, or not there."""


class Story(msgspec.Struct):
    """What is known of one unit, besides where its steps are."""

    spot: Spot
    begun: Ms
    operated: bool = False
    result: str = ""
    reason: str = ""
    sentence: str = ""
    by_gate: bool = False
    by_test: bool = False
    gating: set[str] = msgspec.field(default_factory=set)
    """Its steps whose gates were begun."""
    busy: bool = False
    again: bool = False
    """There is more to tell than what is being told."""
    absent: bool = False
    """There was something to tell, and no object yet to tell it on."""
    unsaid: bool = False
    """What it brings has said something that it does not say yet."""
    following: bool = False
    """That is being told."""
    told: Ms = Ms(0)
    done: bool = False
    """Its end is told."""
    verdicts: dict[Spot, Verdict] = msgspec.field(default_factory=dict)
    """Of objects that have changed since they were judged."""
    extra: tuple[ObjectAccount, ...] = ()
    """What it has brought, Git no longer has, and nobody prunes."""


def make_account(site: Site, unit: UnitRun, story: Story) -> UnitAccount:
    """What became of a unit until now."""
    runs = Going.RUNS if story.operated else Going.WAITS
    return UnitAccount(
        unit=unit.unit.id,
        going=Going.ENDED if story.result else runs,
        now=site.world.now(),
        begun=story.begun,
        digest=unit.unit.digest,
        operated=story.operated,
        result=story.result,
        reason=story.reason,
        sentence=story.sentence,
        by_gate=story.by_gate,
        by_test=story.by_test,
        is_known=unit.unit.id not in site.settings.left_out,
        retries=max((unit.attempts, *(step.attempts for step in unit.steps))),
        waits_for=waits_for(unit),
        objects=(*_objects(site, unit, story), *story.extra),
        release=unit.unit.policy.release,
        entries=site.ledgers.entries(unit.unit.id),
        is_kept=unit.unit.policy.drift is not None,
        remedied=unit.is_rescued if unit.has_rescues else None,
    )


def waits_for(unit: UnitRun) -> tuple[UnitId, ...]:
    """The units that hold steps of this one, but for who brings it; those that do so for good."""
    others = (one for step in unit.steps for one in step.before if one.unit is not unit)
    held = [one for one in others if one.state is not StepState.PASSED]
    lost = [one for one in held if one.is_final]
    names = dict.fromkeys(one.unit.unit.id for one in lost or held)
    return tuple(name for name in names if name != unit.unit.parent)


def kept_from_ending(unit: UnitRun) -> str:
    """Which other unit keeps this one from coming to its end, in words."""
    left = (step for step in unit.steps if step.state is StepState.SKIPPED)
    before = (one for step in left for one in step.before if one.unit is not unit)
    lost = [one for one in before if one.is_final and one.state is not StepState.PASSED]
    first = min(lost, key=lambda one: one.state is not StepState.FAILED, default=None)
    return f"`{first.unit.unit.id}` did not pass" if first else ""


def judge_anew(site: Site, unit: UnitRun) -> Errand[dict[Spot, Verdict]]:
    """Verdicts of what has changed since it was judged last; scripts must be asked for them."""
    found: dict[Spot, Verdict] = {}
    for run in (run for step in unit.steps for run in step.items):
        live = site.outlook.lives.get(run.spot)
        if live is None or run.item.deed in UNTOLD or run.spot not in site.owner:
            continue
        if run.judged is None or run.judged.version != live.version:
            found[run.spot] = (yield from site.judge(run.spot, live)).verdict
    if unit.unit.policy.changed_only:
        for step, item in _asked(site, unit):
            spot = Spot(step.cluster, item.ref)
            live = site.outlook.lives.get(spot)
            if live is not None and spot not in found and spot in site.owner:
                found[spot] = (yield from site.judge(spot, live)).verdict
    return found


def left_behind(site: Site, unit: UnitRun) -> Errand[tuple[ObjectAccount, ...]]:
    """What a unit that prunes nothing has brought, Git no longer has, and still lives."""
    if unit.unit.policy.prunes:
        return ()
    record = site.holds[unit.unit.id].record
    spoken = {identity(run.item.ref) for step in unit.steps for run in step.items}
    refs = [
        ref
        for ref, entry in record.entries.items()
        if not entry.hook and entry.digest and identity(ref) not in spoken
    ]
    outcomes = (yield tuple(Ask(record.cluster, Get(ref)) for ref in refs)) if refs else ()
    return tuple(
        ObjectAccount(ref=ref, is_wanted=False, lives=True, body=found.live.body)
        for ref, found in zip(refs, outcomes, strict=True)
        if isinstance(found, facts.Done) and found.live is not None
    )


def _objects(site: Site, unit: UnitRun, story: Story) -> Iterator[ObjectAccount]:
    for step in (one for one in unit.steps if not site.is_remedy(one.step)):
        for run in step.items:
            if run.item.deed in UNTOLD:
                continue
            last = run.judged.verdict if run.judged else None
            yield _object(site, step, run, story.verdicts.get(run.spot, last))
    yield from _settled(site, unit, story)


def _settled(site: Site, unit: UnitRun, story: Story) -> Iterator[ObjectAccount]:
    """What a unit that does only what differs has left out, since it is as wanted."""
    if not unit.unit.policy.changed_only:
        return
    spoken = {run.spot for step in unit.steps for run in step.items}
    for step, item in _asked(site, unit):
        spot = Spot(step.cluster, item.ref)
        live = site.outlook.lives.get(spot)
        if live is None or spot in spoken:
            continue
        verdict = story.verdicts.get(spot)
        yield ObjectAccount(
            ref=item.ref,
            phase=step.phase,
            wave=step.wave,
            is_synced=True,
            lives=True,
            health=verdict.health if verdict and verdict.checked else None,
            body=live.body,
        )


def _asked(site: Site, unit: UnitRun) -> Iterator[tuple[Step, Item]]:
    """All that Git asks for of a unit, but hooks and what is not its own."""
    plan = site.parts.get(unit.unit.id)
    for step in plan.steps if plan else ():
        for item in items_of(step):
            if item.hook is None and item.deed not in UNTOLD:
                yield step, item


def _object(site: Site, step: StepRun, run: ItemRun, verdict: Verdict | None) -> ObjectAccount:
    item, live = run.item, site.outlook.lives.get(run.spot)
    is_wanted, became = item.deed is not Deed.DELETE, _became(run)
    trouble = step.trouble.sentence if became is Became.FAILED and step.trouble else ""
    return ObjectAccount(
        ref=item.ref,
        phase=step.step.phase,
        wave=step.step.wave,
        is_hook=item.hook is not None,
        is_wanted=is_wanted,
        is_synced=is_wanted and _is_synced(site, run, live),
        asks=item.asks and not step.unit.unit.policy.consents,
        lives=live is not None,
        waits=run.state is ItemState.GATING and step.state is StepState.GATING,
        became=became,
        health=verdict.health if live and verdict and verdict.checked else None,
        sentence=run.waits or trouble,
        body=item.body if live is None else live.body,
        drift=run.drift,
    )


def _is_synced(site: Site, run: ItemRun, live: Live | None) -> bool:
    """Whether it is as Git has it; of what was not looked at, by what we wrote last."""
    if run.written is not None:
        return live is not None
    if run.state is ItemState.PASSED:
        return True
    known = site.holds[run.step.unit.unit.id].record.entries.get(run.item.ref)
    return live is not None and known is not None and known.digest == run.item.digest


def _became(run: ItemRun) -> Became:
    """What was done to an object of a step."""
    has_given_up = run.step.state is StepState.FAILED and run.state is ItemState.GATING
    if run.state is ItemState.FAILED or has_given_up:
        return Became.FAILED
    if run.item.deed is Deed.DELETE:
        if run.state is not ItemState.PASSED or run.stand is Stand.ABSENT:
            return Became.NOTHING
        asks = run.item.asks and not run.step.unit.unit.policy.consents
        return Became.KEPT if asks else Became.PRUNED
    if run.written is None:
        return Became.UNCHANGED if run.state is ItemState.PASSED else Became.NOTHING
    if not run.written.changed:
        return Became.UNCHANGED
    return Became.CREATED if run.stand is Stand.ABSENT else Became.CONFIGURED
