"""How the objects of a step stand against what lives."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidegate.engine.fences import Proof, proof_of
from tidegate.engine.means import Body, Means
from tidegate.engine.reach.hooks import stand_of_hook
from tidegate.engine.reach.outlook import Outlook
from tidegate.engine.reach.writing import read_body
from tidegate.engine.vocabulary import Compared, Stand, Standing, Written
from tidegate.model.journal import Entry
from tidegate.model.objects import Live, Spot
from tidegate.model.plan import AWAITED, Deed, Item, PlannedUnit, Step, digest_bytes
from tidegate.model.reading import mappings, text
from tidegate.model.unit import UnitId

Examined: TypeAlias = tuple[Step, Item, Standing]
Asked: TypeAlias = tuple[PlannedUnit, Item, Entry, tuple[str, str] | None]
"""All that the standing of an object follows from; what lives, by its uid and version."""
NOTHING = Entry()
WRITTEN = frozenset({Stand.ABSENT, Stand.DIFFERENT, Stand.IMMUTABLE, Stand.OBSOLETE})
TELLING = frozenset({Proof.NEWER, Proof.CONDITION})
"""Proofs that ask whether a status has changed."""


class Examiner(msgspec.Struct):
    """Compares wanted objects with living ones."""

    means: Means
    outlook: Outlook
    units: dict[UnitId, PlannedUnit]
    _stood: dict[Spot, tuple[Asked, Standing]] = msgspec.field(default_factory=dict)

    def stand(self, step: Step, item: Item, remembered: Entry | None) -> Standing:
        """How an object stands; asked again of the same state, the answer is the same."""
        spot, known = Spot(step.cluster, item.ref), remembered or NOTHING
        live = self.outlook.lives.get(spot)
        state = None if live is None else (live.uid, live.version)
        asked = (self.units[step.unit], item, known, state)
        answered = self._stood.get(spot)
        if answered is None or answered[0] != asked:
            answered = self._stood[spot] = (asked, self._stand(step, item, live, known))
        return answered[1]

    def _stand(self, step: Step, item: Item, live: Live | None, known: Entry) -> Standing:
        spot = Spot(step.cluster, item.ref)
        if item.deed is Deed.LEAVE:
            return Standing(spot, Stand.LEFT)
        settled = stand_of_hook(item, live, known) if item.hook is not None else None
        if live is None:
            done = item.expires and known.opened == item.digest != ""
            return Standing(spot, settled or (Stand.FINISHED if done else Stand.ABSENT))
        body = read_body(live)
        ours = known.digest == item.digest and known.uid == live.uid
        seal = known.seal if ours else ""
        how = Compared(settled) if settled else self._compare(step, item, body, seal)
        opened = known.opened == item.digest and known.uid == live.uid
        trusted = opened or has_newer_status(body, self.units[step.unit].policy.manager)
        found = Written(
            live.uid, live.generation, live.version, status_name(live, body), trusted=trusted
        )
        return Standing(spot, how.stand, found, how.fixed, how.replaces)

    def _compare(self, step: Step, item: Item, live: Body, seal: str) -> Compared:
        if item.deed is not Deed.APPLY:
            return Compared(Stand.SAME)
        return self.means.stand(self.units[step.unit], item, live, seal)


def is_touched(item: Item, standing: Standing, *, consents: bool) -> bool:
    """Whether an object is put there or, where that needs no consent or has it, taken away."""
    if item.deed in AWAITED:
        return False
    if item.deed is Deed.DELETE:
        return (consents or not item.asks) and standing.stand is not Stand.ABSENT
    return standing.stand in WRITTEN


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
        elif text(entry, "manager") == manager:
            ours = max(ours, at)
    return bool(ours) and status > ours
