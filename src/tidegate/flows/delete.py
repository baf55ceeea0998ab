"""Delete what a unit has brought: last waves first, with the hooks of its end around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tidegate.errors import PlanError, TidegateError
from tidegate.flows.ended_releases import is_recorded, with_end
from tidegate.flows.entering import Found
from tidegate.flows.journal import Remembered, forget_unit, read_journal
from tidegate.flows.leaving import find_contents
from tidegate.flows.looking import body_of, look_at, look_in
from tidegate.flows.means import stale_of
from tidegate.flows.planning import Planned, make_plan
from tidegate.flows.reading import Read, error_of
from tidegate.flows.rendering import Rendered, Unrendered
from tidegate.flows.rendering.outcome import notes_of
from tidegate.flows.session import Session
from tidegate.health.budget import budget
from tidegate.model.finding import Finding, Severity
from tidegate.model.manifest import Manifests
from tidegate.model.objects import Ref
from tidegate.model.plan import Deed, Plan, items_of
from tidegate.model.semantics import TIDEGATE
from tidegate.plan.build import plan_unit
from tidegate.plan.deletion import build_deletion
from tidegate.plan.hooks import has_hooks
from tidegate.plan.leaving import join_deletions
from tidegate.plan.pruning import Stale
from tidegate.world.exchange import Exchange


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """The plan that ends a unit, what goes by it, and what stays by its own word.

    `asking`: those of them that would go if somebody agreed. `is_under_way`: the same deletion was
    begun before and not finished. `is_recorded`: it is a release, and Helm has records of it.
    """

    plan: Plan
    rendered: Rendered
    remembered: Remembered
    going: tuple[Ref, ...] = ()
    staying: tuple[Ref, ...] = ()
    asking: tuple[Ref, ...] = ()
    is_under_way: bool = False
    is_recorded: bool = False

    @property
    def is_due(self) -> bool:
        """Whether something goes, or hooks of the end may be left to run."""
        is_left = self.is_recorded or (self.is_under_way and self.runs_hooks)
        return bool(self.going) or is_left

    @property
    def due_plan(self) -> Plan:
        """The plan; without steps where there is nothing to do."""
        return self.plan if self.is_due else msgspec.structs.replace(self.plan, steps=(), edges=())

    @property
    def runs_hooks(self) -> bool:
        """Whether something of the directory is written before all is gone."""
        return any(has_hooks(step) for step in self.plan.steps)


class Deletions(msgspec.Struct, frozen=True):
    """The plan that ends all units, and what it is for each of them.

    `planned`: what Git says of them.
    """

    plan: Plan
    units: tuple[Deletion, ...]
    planned: Planned
    findings: tuple[Finding, ...] = ()
    contents: tuple[TidegateError, ...] = ()

    @property
    def going(self) -> tuple[Ref, ...]:
        return tuple(ref for one in self.units for ref in one.going)

    @property
    def is_due(self) -> bool:
        return any(one.is_due for one in self.units)

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        return (*(note for one in self.units for note in notes_of(one.rendered)), *self.contents)


async def plan_deletions(session: Session, found: Found) -> Deletions:
    """What each unit has brought; those come first that nobody else waits for.

    Raises where a unit could not be rendered: what it has brought is not known then.
    """
    faults = [
        error
        for one in found.members
        if isinstance(one.rendered, Unrendered)
        for error in one.rendered.errors
    ]
    if faults:
        raise ExceptionGroup("not rendered", faults)
    planned = await make_plan(found.one, session, rules=TIDEGATE, ends=True)
    units = {one.manifests.unit.id: one for one in planned.read}
    _refuse_unread(found, planned)
    order = dict.fromkeys((*(step.unit for step in planned.plan.steps), *units))
    ends = {name: await plan_deletion(units[name], session) for name in reversed(order)}
    parts = [(units[name].manifests, one.due_plan) for name, one in ends.items()]
    plan = join_deletions(parts)
    contents = await find_contents(plan, session)
    findings = (
        *(one for one in found.findings if one.severity is not Severity.ERROR),
        *planned.findings,
    )
    return Deletions(plan, tuple(ends.values()), planned, findings, contents)


def _refuse_unread(found: Found, planned: Planned) -> None:
    """Raise where it is not known what units bring, with all that is wrong with them."""
    if planned.unread:
        told = dict.fromkeys((*found.findings, *planned.findings))
        wrong = [error_of(one) for one in told if one.severity is Severity.ERROR]
        problem = f"nothing is deleted: it is not known what `{planned.unread[0]}` has brought"
        raise ExceptionGroup("not read", [*wrong, PlanError("plan.faults", problem)])


async def plan_deletion(read: Read, session: Session) -> Deletion:
    """What is to be deleted: what the journal or the directory names, and says it is the unit's.

    Where the unit's policy consents, what asks first goes as well.
    """
    wanted, unit = read.manifests, read.manifests.unit
    confirmed = unit.policy.consents
    remembered = await read_journal(plan_unit(unit), session.world)
    journal = remembered.journal
    lives = await _lives(wanted, journal.entries, session.world)
    plan = with_end(build_deletion(wanted, lives, budget=budget))
    asks = _deleted(plan)
    refs = [one.ref for one in lives]
    going = {ref: None for ref in refs if ref in asks and (confirmed or not asks[ref])}
    staying = [ref for ref in refs if ref not in going]
    return Deletion(
        plan=plan,
        rendered=read.rendered,
        remembered=remembered,
        going=tuple(going),
        staying=tuple(staying),
        asking=tuple(ref for ref in staying if ref in asks),
        is_under_way=journal.text == plan.units[0].digest != journal.done,
        is_recorded=await is_recorded(unit, session),
    )


async def _lives(wanted: Manifests, entries: Iterable[Ref], world: Exchange) -> list[Stale]:
    """What there is of a unit.

    Hooks are looked for among all objects of their kinds: they are remembered only for as long as
    their rollout lasts, and the name of one may be made anew each time. Those of a release go by
    their own policies alone, as with Helm.
    """
    manifests = (*wanted.manifests, *wanted.before_deletion)
    hooks = (one.ref for one in manifests if one.hook is not None)
    unit = plan_unit(wanted.unit)
    cluster = unit.cluster
    named = await look_at(world, {*entries, *(one.ref for one in manifests)}, cluster=cluster)
    listed = await look_in(world, ((ref.kind, ref.namespace) for ref in hooks), cluster=cluster)
    found = {live.ref: live for live in (*named, *listed)}
    hooked = unit.policy.release is None
    lives = (stale_of(body_of(found[ref]), unit, hooks=hooked) for ref in sorted(found))
    return [one for one in lives if one is not None]


def _deleted(plan: Plan) -> dict[Ref, bool]:
    """All that the plan deletes, and whether it asks first."""
    items = (item for step in plan.steps for item in items_of(step))
    return {item.ref: item.asks for item in items if item.deed is Deed.DELETE}


def digest_of(found: Iterable[Deletion]) -> str:
    """A name for what somebody agrees to."""
    return " ".join(one.plan.digest for one in found)


def refuse_other(found: Sequence[Deletion], shown: str) -> None:
    """Raise a PlanError where somebody agreed to plans, and they are no longer these."""
    if shown and shown != digest_of(found):
        names = ", ".join(f"`{one.remembered.unit.id}`" for one in found)
        problem = f"what {names} has in the cluster changed meanwhile"
        hint = "nothing was deleted; run the command again, and look at what it shows"
        raise PlanError("plan.moved", problem, hint=hint)


async def finish_deletion(found: Deletion, world: Exchange) -> None:
    """Forget a unit that is gone. What still asks to be deleted needs its journal."""
    if not found.asking:
        await forget_unit(found.remembered.unit, world)
