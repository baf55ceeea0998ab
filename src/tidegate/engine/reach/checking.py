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
from tidegate.model.ledger import DriftMode
from tidegate.model.objects import Live, Spot
from tidegate.model.plan import AWAITED, Deed, Item, PlannedUnit, Step, digest_bytes
from tidegate.model.reading import mappings, text
from tidegate.model.unit import UnitId

Examined: TypeAlias = tuple[Step, Item, Standing]
Asked: TypeAlias = tuple[PlannedUnit, Item, Entry, tuple[str, str] | None]
"""All that the standing of an object follows from; what lives, by its uid and version."""
NOTHING = Entry()
WRITTEN = frozenset({Stand.ABSENT, Stand.DIFFERENT, Stand.IMMUTABLE, Stand.OBSOLETE})
KEPT = frozenset({Deed.APPLY, Deed.CREATE})
"""What is done to objects that a unit keeps."""
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
        if item.deed is Deed.LEAVE or self._is_unseen(step, item):
            return Standing(spot, Stand.LEFT)
        settled = stand_of_hook(item, live, known) if item.hook is not None else None
        if live is None:
            done = item.expires and known.opened == item.digest != ""
            standing = Standing(spot, settled or (Stand.FINISHED if done else Stand.ABSENT))
            return self._as_drifted(step, item, standing, None)
        body = read_body(live)
        ours = known.digest == item.digest and known.uid == live.uid
        seal = known.seal if ours else ""
        how = Compared(settled) if settled else self._compare(step, item, body, seal)
        opened = known.opened == item.digest and known.uid == live.uid
        trusted = opened or has_newer_status(body, self.units[step.unit].policy.manager)
        found = Written(
            live.uid, live.generation, live.version, status_name(live, body), trusted=trusted
        )
        standing = Standing(spot, how.stand, found, how.fixed, how.replaces, how.fields)
        return self._as_drifted(step, item, standing, body)

    def _is_unseen(self, step: Step, item: Item) -> bool:
        """Whether nobody looks what others have changed of it."""
        mode = self.units[step.unit].policy.drift
        return mode is DriftMode.DISABLED and item.hook is None and item.deed in KEPT

    def _as_drifted(
        self, step: Step, item: Item, standing: Standing, live: Body | None
    ) -> Standing:
        """What others have changed is told, and left so where the unit or it wants no more."""
        unit, replace = self.units[step.unit], msgspec.structs.replace
        is_kept = unit.policy.drift is not None and item.hook is None and item.deed in KEPT
        if not is_kept or standing.stand not in WRITTEN:
            return standing
        if self.means.is_exempt(item, live):
            return replace(standing, stand=Stand.LEFT)
        drift, leaves = self.means.drift(unit, item, live), unit.policy.drift is DriftMode.WARN
        if drift is None:
            return replace(standing, stand=Stand.SAME) if leaves else standing
        return replace(standing, stand=Stand.LEFT if leaves else standing.stand, drift=drift)

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
