"""Commands become errands; what comes of them is heard as inputs."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial

import msgspec

from tidegate.engine import vocabulary as words
from tidegate.engine.expanding import expand, named_trouble
from tidegate.engine.forgetting import forget_deleted, forget_hooks
from tidegate.engine.opening import reopen_unit
from tidegate.engine.reach.checking import WRITTEN, status_name
from tidegate.engine.reach.errands import Ask, Errand, Errands, Pause, acting_as
from tidegate.engine.reach.hooks import announcement, collect, is_announced, let_go
from tidegate.engine.reach.needs import await_kind, brought_kinds
from tidegate.engine.reach.preflight import Fault
from tidegate.engine.reach.probing import probe
from tidegate.engine.reach.writing import apply, delete, read_body, trouble_of, written
from tidegate.engine.site import Site, refuse
from tidegate.model.journal import Entry
from tidegate.model.ledger import EntryEnd
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Live, Ref, Spot
from tidegate.model.plan import Step, items_of
from tidegate.model.unit import UnitId
from tidegate.world.calls import Get
from tidegate.world.facts import (
    Done,
    Invalid,
    Loss,
    Lost,
    Missing,
    Outcome,
    Refusal,
    Sent,
)

OVERTAKEN = Lost(Sent.NO, Loss.WITHDRAWN, "another rollout of the unit came between")
"""What was decided before is out of date: the step begins anew."""
LOST = words.Trouble("Overtaken", "another rollout has the unit now")
SCHEMA_WITHIN = Ms(3_000)
SCHEMA_AGAIN = Ms(200)
"""A server takes a moment to read a definition that was changed."""
UNKNOWN = "unknown"


class Deeds:
    """Does what was decided."""

    def __init__(self, site: Site, errands: Errands, hear: Callable[[words.Input], None]) -> None:
        self._site = site
        self._errands = errands
        self._hear = hear
        self._begun: set[str] = set()
        """Steps that check their objects themselves."""
        self._taking: set[UnitId] = set()
        """Units that we wait for, or have taken a moment ago."""

    def do(self, command: words.Command) -> None:
        site = self._site
        match command:
            case words.CheckStep():
                self._begun.add(command.step)
                self._errands.run(self._check(command), self._hear)
            case words.Foresee():
                errand_of_foresight = site.inspector.foresee(command.spot, self._begun)
                self._errands.run(errand_of_foresight, self._foresaw)
            case (
                words.Apply() | words.Delete() | words.LookAgain() | words.Probe() | words.Verify()
            ):
                self._do_to_objects(command)
            case words.Expand():
                self._errands.run(expand(self._site, site.steps[command.step]), self._hear)
            case words.Take() | words.LetGo() | words.AwaitApproval() | words.Refresh():
                self._do_to_unit(command)
            case words.Remember():
                self._remember(command)
            case words.Collect():
                self._collect(command)

    def _do_to_unit(
        self, command: words.Take | words.LetGo | words.AwaitApproval | words.Refresh
    ) -> None:
        """Who waits for a unit already goes on waiting, now with a step that could begin."""
        if isinstance(command, words.Refresh):
            self._errands.run(self._settle(command), partial(self._refresh, command))
            return
        hold = self._site.holds[command.unit]
        if isinstance(command, words.AwaitApproval):
            errand = self._site.approvals.wait(command.unit, hold.record.cluster)
            self._errands.run(errand, self._approved)
            return
        if isinstance(command, words.LetGo):
            self._taking.discard(command.unit)
            self._errands.run(hold.close(self._site.world.now, lends=True), lambda _: None)
            return
        hold.wanted |= command.wanted
        if command.unit not in self._taking:
            self._taking.add(command.unit)
            self._errands.run(self._hold(command), self._held)

    def _settle(self, command: words.Refresh) -> Errand[words.Trouble | None]:
        """Have it in the ledger how the last try ended before anybody looks what is next.

        Hooks that were run for a failure are run again for the next one.
        """
        steps = self._site.steps_of(command.unit)
        forget_hooks(self._site, (step for step in steps if step.rescues))
        ledgers, remedied = self._site.ledgers, EntryEnd(passed=True, hooks=command.hooks)
        failure, now = command.failure, self._site.world.now()
        return (yield from ledgers.settle(command.unit, failure, remedied, now))

    def _refresh(self, command: words.Refresh, unsettled: words.Trouble | None) -> None:
        refresher, unit = self._site.settings.refresher, command.unit
        if unsettled is not None:
            why = f"its ledger is not closed: {unsettled.sentence}"
            self._hear(words.Stopped(why, unit))
        elif refresher is None:
            self._hear(words.Refreshed(unit))
        else:
            refresher(command)

    def _hold(self, command: words.Take) -> Errand[words.Taken | None]:
        """Hold a unit; what others did there meanwhile is looked at, and what it comes to then.

        While it is looked at our heartbeat may be late: then it could be another's, and is taken
        again, unless we let go of it.
        """
        site, name = self._site, command.unit
        is_old, opening = False, None
        while name in self._taking:
            is_old |= yield from site.take(name, wanted=command.wanted)
            if is_old and command.anew and site.holds.has(name):
                opening = yield from reopen_unit(site, name)
            if site.holds.has(name) or name in site.holds.lost or site.holds[name].leaving:
                break
        self._taking.discard(name)
        if not site.holds.has(name):
            return None  # it was let go of meanwhile, and that was told
        if opening is None:
            return words.Taken(name)
        for fault in opening.faults:
            return words.Taken(name, trouble=named_trouble(fault))
        return words.Taken(name, opening.plan)

    def _held(self, taken: words.Taken | None) -> None:
        if taken is not None:
            self._hear(taken)

    def _approved(self, found: UnitId | Refusal | None) -> None:
        if isinstance(found, UnitId):
            self._hear(words.Approved(unit=found))
        else:
            refuse(found, self._site)

    def _collect(self, command: words.Collect) -> None:
        site, unit = self._site, command.unit
        steps = site.steps_of(unit)
        errand = collect(steps, site.outlook, site.world.now, command)
        identity = site.examiner.units[unit].policy.identity
        self._errands.run(
            acting_as(identity, errand), lambda gone: self._hear(words.Collected(unit, gone))
        )

    def _do_to_objects(self, command: words.ToObjects) -> None:
        site = self._site
        match command:
            case words.Apply():
                live = site.outlook.lives.get(command.spot)
                self._errands.run(self._apply(command, live), partial(self._wrote, command, live))
            case words.Delete():
                errand = self._delete(command)
                self._errands.run(errand, partial(self._deleted, command))
            case words.LookAgain():
                self._errands.run(self._look(command), self._hear)
            case words.Probe():
                planned = site.planned(command.spot.cluster)
                errand_of_probe = probe(command.spot, site.outlook, planned)
                self._errands.run(errand_of_probe, partial(self._probed, command))
            case words.Verify():
                self._verify(command)

    def _check(self, command: words.CheckStep) -> Errand[words.Checked]:
        """How the objects stand; what was out of view until now is looked at first."""
        site = self._site
        step = site.steps[command.step]
        spots = [Spot(step.cluster, item.ref) for item in items_of(step)]
        unserved = yield from self._bring_into_view(spots, brought_kinds(items_of(step)))
        if unserved is not None:
            return words.Checked(step.id, trouble=unserved)
        examined = site.examined(step)
        for fault in (yield from site.inspector.faults(examined, late=True)):
            return words.Checked(step.id, trouble=named_trouble(fault))
        writes = any(map(site.is_written, examined)) or site.ledgers.opens(step)
        if writes and (yield from self._take_for(command)):
            if step.unit in site.holds.lost:
                return words.Checked(step.id, trouble=LOST)
            return (yield from self._check(command))
        unentered = yield from self._announce(step, command.ended, writes=writes)
        if unentered is not None:
            return words.Checked(step.id, trouble=unentered)
        for spot in spots:
            live = site.outlook.lives.get(spot)
            if live is not None:
                self._hear((yield from site.judge(spot, live)))
        return words.Checked(step.id, site.stand(step))

    def _take_for(self, command: words.CheckStep) -> Errand[bool]:
        """Hold the unit before something of a step is written. True: what we know of it is old."""
        unit = self._site.steps[command.step].unit
        if command.enters:
            self._site.holds[unit].enter()
        return (yield from self._site.take(unit))

    def _announce(
        self, step: Step, ended: EntryEnd | None, *, writes: bool
    ) -> Errand[words.Trouble | None]:
        """Say what begins, and which hooks are about to be made: who comes after us knows by that.

        A trouble keeps the step from beginning.
        """
        site = self._site
        unentered = None
        if writes:
            unentered = yield from site.ledgers.begin(step, ended, site.world.now())
        if unentered is not None:
            return unentered
        hold, before = site.holds[step.unit], site.holds[step.unit].record.entries
        fresh: dict[Ref, Entry] = {}
        for _, item, standing in site.examined(step):
            known = before.get(item.ref) or Entry()
            if item.hook is not None and standing.stand in WRITTEN and not is_announced(known):
                fresh[item.ref] = announcement(standing.live, known)
        for ref, entry in fresh.items():
            hold.record.remember(ref, entry)
        if fresh:
            yield from hold.settle(site.world.now)
        return None

    def _foresaw(self, faults: list[Fault]) -> None:
        for fault in faults:
            step = fault[0]
            self._hear(words.Foreseen(step.id, step.digest, named_trouble(fault)))

    def _bring_into_view(
        self, spots: list[Spot], brought: Container[Kind] = ()
    ) -> Errand[words.Trouble | None]:
        """Watch kinds that were not served before; a trouble if they still are not.

        What the step itself brings is served when its definition is written.
        """
        outlook = self._site.outlook
        hidden = outlook.hidden(spots)
        refused = None
        if not all(map(outlook.serves, hidden)):
            refused = yield from outlook.catalogue(spot.cluster for spot in hidden)
        if hidden and refused is None:
            refused = yield from outlook.view(hidden)
        if refused is not None:
            return trouble_of(refused)
        for spot in hidden:
            if not outlook.serves(spot) and spot.ref.kind not in brought:
                return words.Trouble("NotServed", f"the cluster does not serve `{spot.ref.kind}`")
        return None

    def _apply(self, command: words.Apply, live: Live | None) -> Errand[Outcome]:
        """Nothing is written while the unit may be somebody else's."""
        site = self._site
        unit = site.owner[command.spot]
        if (yield from site.take(unit.id)):
            return OVERTAKEN
        refuse((yield from await_kind(command.spot, site.outlook, site.world.now)), site)
        ends = site.world.now() + SCHEMA_WITHIN
        while True:
            means, urgent = site.means, command.urgent
            errand = apply(command.spot, command.item, unit, live=live, means=means, urgent=urgent)
            outcome = yield from acting_as(unit.policy.identity, errand)
            if not self._is_ahead(command.spot, outcome) or site.world.now() >= ends:
                return outcome
            yield Pause(Ms(site.world.now() + SCHEMA_AGAIN))

    def _is_ahead(self, spot: Spot, outcome: Outcome) -> bool:
        """Whether the server may not have read the definition yet that this plan brings."""
        if not isinstance(outcome, Invalid) or all(one.reason != UNKNOWN for one in outcome.causes):
            return False
        return spot.ref.kind in brought_kinds(item for item, _ in self._site.planned(spot.cluster))

    def _wrote(self, command: words.Apply, before: Live | None, outcome: Outcome) -> None:
        site = self._site
        spot, item = command.spot, command.item
        if not isinstance(outcome, Done) or outcome.live is None:
            self._hear(words.Wrote(command.step, spot, trouble_of(outcome, spot.ref)))
            return
        live = outcome.live
        site.outlook.wrote(spot, live)
        unit, body = site.owner[spot], read_body(live)
        seal, is_hook = site.means.seal(unit, item, body), item.hook is not None
        record = site.holds[unit.id].record
        known = record.entries.get(item.ref) or Entry()
        entry = Entry(item.digest, seal, live.uid, hook=is_hook, ran=known.ran if is_hook else ())
        if (known.opened, known.uid) == (item.digest, live.uid):
            entry = msgspec.structs.replace(entry, opened=known.opened)
        record.remember(item.ref, entry)
        self._errands.run(site.judge(spot, live, body), self._hear)
        became = written(live, before=before, status=status_name(live, body))
        self._hear(words.Wrote(command.step, spot, became))

    def _delete(self, command: words.Delete) -> Errand[Outcome]:
        unit = self._site.owner[command.spot]
        if (yield from self._site.take(unit.id)):
            return OVERTAKEN
        return (yield from acting_as(unit.policy.identity, self._take_away(command)))

    def _take_away(self, command: words.Delete) -> Errand[Outcome]:
        """What holds a hook of ours, or a unit whose objects are gone, is taken off first."""
        outlook, step = self._site.outlook, self._site.steps[command.step]
        items = (one for one in items_of(step) if one.ref == command.spot.ref)
        more = next((one.releases for one in items), ())
        yield from let_go((command.spot,), outlook, self._site.world.now, more)
        known = outlook.lives.get(command.spot)
        return (yield from delete(command.spot, command.uid, command.propagation, known))

    def _deleted(self, command: words.Delete, outcome: Outcome) -> None:
        match outcome:
            case Done(live=Live() as live):
                became = written(live, before=None, status="")
                self._hear(words.Wrote(command.step, command.spot, became))
            case Done() | Missing():
                self._site.outlook.deleted(command.spot, command.uid)
                self._hear(words.Wrote(command.step, command.spot, None))
            case _:
                self._hear(words.Wrote(command.step, command.spot, trouble_of(outcome)))

    def _look(self, command: words.LookAgain) -> Errand[words.Looked]:
        outlook = self._site.outlook
        asks = tuple(Ask(spot.cluster, Get(spot.ref)) for spot, _ in command.objects)
        outcomes = yield asks
        for (spot, uid), outcome in zip(command.objects, outcomes, strict=True):
            if isinstance(outcome, Done) and outcome.live is not None:
                outlook.wrote(spot, outcome.live)
                self._hear((yield from self._site.judge(spot, outcome.live)))
            elif isinstance(outcome, Missing):
                outlook.lives.pop(spot, None)
                self._hear(words.Gone(spot, uid))
        return words.Looked(command.step)

    def _verify(self, command: words.Verify) -> None:
        """Compare what is known to live; one that is gone by now is told of by itself.

        A newer plan may have been taken in since, whose step has the object no more: nobody waits
        for an answer then.
        """
        site, spot = self._site, command.spot
        live = site.outlook.lives.get(spot)
        items = items_of(site.steps[command.step])
        item = next((one for one in items if one.ref == spot.ref), None)
        if live is None or item is None:
            return
        unit = site.owner[spot]
        known = site.holds[unit.id].record.entries.get(spot.ref)
        seal = known.seal if known is not None and known.uid == live.uid else ""
        changed = site.means.changed(unit, item, read_body(live), seal)
        trouble = words.Trouble("Changed", changed) if changed else None
        generation, version = live.generation, live.version
        self._hear(words.Verified(command.step, spot, generation, version, trouble))

    def _probed(self, command: words.Probe, trouble: words.Trouble | None) -> None:
        self._hear(words.Probed(command.step, command.spot, trouble))

    def _remember(self, command: words.Remember) -> None:
        site = self._site
        forget_deleted(site, site.steps[command.step])
        record = site.holds[site.steps[command.step].unit].record
        for spot, digest, uid in command.opened:
            known = record.entries.get(spot.ref) or Entry()
            entry = msgspec.structs.replace(known, digest=digest, uid=uid, opened=digest)
            if spot in command.hooks:
                entry = msgspec.structs.replace(entry, hook=True, ran=(*known.ran, digest))
            record.remember(spot.ref, entry)
        if command.hooks:
            self._errands.run(self._settle_hooks(command), self._hear)
        elif any(item.expires for item in items_of(site.steps[command.step])):
            # Soon the journal is all that is left of them.
            hold = site.holds[site.steps[command.step].unit]
            self._errands.run(hold.flush(site.world.now), lambda _: None)

    def _settle_hooks(self, command: words.Remember) -> Errand[words.Journaled]:
        """A verdict is in the journal before its hook may go."""
        site = self._site
        unit = site.steps[command.step].unit
        hold = site.holds[unit]
        yield from site.take(unit)
        yield from hold.settle(site.world.now)
        identity = site.examiner.units[unit].policy.identity
        freeing = let_go(command.hooks, site.outlook, site.world.now)
        yield from acting_as(identity, freeing)
        return words.Journaled(command.step)
