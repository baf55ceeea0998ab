"""How the objects of a step stand, and whether the cluster would take them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from tidegate.engine.fences import Proof, proof_of
from tidegate.engine.means import Body, Means
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.reach.outlook import Outlook
from tidegate.engine.reach.writing import read_body, trouble_of, wish
from tidegate.engine.vocabulary import Judged, Spot, Stand, Standing, Trouble, Written
from tidegate.model.journal import Entry
from tidegate.model.moment import Ms
from tidegate.model.objects import Live, Ref
from tidegate.model.plan import Deed, Item, PlannedUnit, Step, digest_bytes
from tidegate.model.reading import mappings, text
from tidegate.world.facts import (
    Conflict,
    Exists,
    Failed,
    Lost,
    Missing,
    NotServed,
    Outcome,
    Throttled,
    is_refusal,
)

Examined: TypeAlias = tuple[Step, Item, Standing]
NOTHING = Entry()
SERVER_ERROR = 500
TELLING = frozenset({Proof.NEWER, Proof.CONDITION})
"""Proofs that ask whether a status has changed."""


@dataclass(slots=True)
class Examiner:
    """Compares wanted objects with living ones, and asks the cluster about those it would write."""

    means: Means
    outlook: Outlook
    units: dict[str, PlannedUnit]
    sound: set[Spot] = field(default_factory=set)
    """Objects that the cluster would take."""

    def judge(self, unit: PlannedUnit, spot: Spot, live: Live, now: Ms) -> Judged:
        body = read_body(live)
        verdict = self.means.judge(unit, body, now)
        status = status_name(live, body)
        return Judged(spot, live.uid, live.generation, live.version, verdict, status)

    def stand(self, step: Step, item: Item, remembered: Entry | None) -> Standing:
        unit = self.units[step.unit]
        spot = Spot(step.cluster, item.ref)
        live = self.outlook.lives.get(spot)
        known = remembered or NOTHING
        if live is None:
            done = item.expires and known.opened == item.digest != ""
            return Standing(spot, Stand.FINISHED if done else Stand.ABSENT)
        body = read_body(live)
        seal = known.seal if known.digest == item.digest and known.uid == live.uid else ""
        same = item.deed is Deed.DELETE
        stand = Stand.SAME if same else self.means.stand(unit, item, body, seal)
        opened = known.opened == item.digest and known.uid == live.uid
        trusted = opened or has_newer_status(body, unit.manager)
        found = Written(
            live.uid, live.generation, live.version, status_name(live, body), trusted=trusted
        )
        return Standing(spot, stand, found)

    def faults(
        self, examined: Iterable[Examined], *, late: bool
    ) -> Errand[list[tuple[Step, Ref, Trouble]]]:
        """What is wrong with the objects that would be written.

        Before a rollout, what cannot be known yet is left for later; later it is a fault.
        """
        asked = [one for one in examined if self._is_asked(one)]
        outcomes = yield tuple(
            Ask(step.cluster, wish(item, self.units[step.unit], dry_run=True))
            for step, item, _ in asked
        )
        found: list[tuple[Step, Ref, Trouble]] = []
        for (step, item, standing), outcome in zip(asked, outcomes, strict=True):
            if not is_refusal(outcome):
                self.sound.add(standing.spot)
            elif late or not is_unknowable(outcome):
                found.append((step, item.ref, trouble_of(outcome)))
        return found

    def _is_asked(self, examined: Examined) -> bool:
        _, item, standing = examined
        writes = standing.stand in (Stand.ABSENT, Stand.DIFFERENT) and item.deed is not Deed.DELETE
        unsure = standing.spot not in self.sound
        return writes and unsure and self.outlook.serves(standing.spot)


def is_unknowable(outcome: Outcome) -> bool:
    """Whether a dry run says nothing yet: what it needs may come with the plan itself."""
    if isinstance(outcome, Failed):
        return outcome.status >= SERVER_ERROR
    return isinstance(outcome, Missing | NotServed | Exists | Conflict | Lost | Throttled)


def status_name(live: Live, body: Body) -> str:
    """A name for the status an object has, where its kind makes one ask."""
    if proof_of(live.ref.kind) not in TELLING:
        return ""
    return digest_bytes(msgspec.json.encode(body.get("status")))


def has_newer_status(body: Body, manager: str) -> bool:
    """Whether somebody wrote the status after our own last write, by the server's record."""
    ours, status = "", ""
    for entry in mappings(body, "metadata", "managedFields"):
        at = text(entry, "time")
        if text(entry, "subresource") == "status":
            status = max(status, at)
        elif text(entry, "manager") == manager and text(entry, "operation") == "Apply":
            ours = max(ours, at)
    return bool(ours) and status > ours
