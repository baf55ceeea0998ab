"""Approvals: somebody lets a unit go on that waits for leave, with an object beside its record.

An approval is of a unit and of one text: the next revision waits again. Whoever may write such an
object may approve, and needs no right to write records.

    kubectl get configmap -n tidegate-system -l tidegate.dev/approval=unit
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.stored import CONFIG_MAP, NAMESPACE, OF_UNIT, keep_word, resource_name
from tidegate.model.objects import Ref, Spot
from tidegate.model.unit import UnitId
from tidegate.world.calls import Selection, Verb, Watch, Write
from tidegate.world.facts import Change, Changed, Refusal, is_refusal

APPROVAL = "tidegate.dev/approval"
TEXT, BY = "text", "by"


class _ApprovalMap(msgspec.Struct):
    data: dict[str, str] = {}


class Approvals(msgspec.Struct):
    """The approvals of the clusters in which something of ours waits for one."""

    text_of: Callable[[UnitId], str]
    """What a unit is to become by the present plan."""
    given: frozenset[UnitId] = frozenset()
    """Units that whoever began the rollout approves."""
    namespace: str = NAMESPACE
    _known: dict[Spot, str] = msgspec.field(default_factory=dict)
    """By approval, the text that it is of."""
    _waiting: dict[Spot, UnitId] = msgspec.field(default_factory=dict)
    _watched: set[str] = msgspec.field(default_factory=set)

    def wait(self, unit: UnitId, cluster: str) -> Errand[UnitId | Refusal | None]:
        """Look for the approval of a unit, and for as long as the rollout lasts for later ones."""
        spot = Spot(cluster, approval_ref(unit.mark, self.namespace))
        self._waiting[spot] = unit
        if unit in self.given:
            return unit
        if cluster not in self._watched:
            self._watched.add(cluster)
            selection = Selection(CONFIG_MAP, self.namespace, labels=f"{APPROVAL}={OF_UNIT}")
            (outcome,) = yield (Ask(cluster, Watch(selection)),)
            if is_refusal(outcome):
                self._watched.discard(cluster)
                return outcome
        return self._approved(spot)

    def changed(self, cluster: str, fact: Changed) -> UnitId | None:
        """Take a change of a watch; the unit that is approved by it."""
        spot = Spot(cluster, fact.live.ref)
        if cluster not in self._watched or spot.ref.kind != CONFIG_MAP:
            return None
        if fact.change is Change.DELETED:
            self._known.pop(spot, None)
            return None
        body = msgspec.json.decode(fact.live.body, type=_ApprovalMap)
        if spot.ref.namespace == self.namespace and TEXT in body.data:
            self._known[spot] = body.data[TEXT]
        return self._approved(spot)

    def _approved(self, spot: Spot) -> UnitId | None:
        unit = self._waiting.get(spot)
        is_meant = unit is not None and self._known.get(spot) == self.text_of(unit)
        return unit if is_meant else None

    def use_up(self, unit: UnitId, cluster: str) -> Errand[None]:
        """The unit is rolled out: what was approved is done, and counts no more."""
        spot = Spot(cluster, approval_ref(unit.mark, self.namespace))
        if self._known.pop(spot, None) is not None:
            yield (Ask(cluster, Write(verb=Verb.DELETE, ref=spot.ref)),)


def approval_ref(unit: str, namespace: str = NAMESPACE) -> Ref:
    return Ref(CONFIG_MAP, namespace, resource_name(unit))


def approval(unit: str, text: str, by: str, namespace: str = NAMESPACE) -> Write:
    """Approve what a unit is to become; an earlier approval of it is replaced."""
    ref = approval_ref(unit, namespace)
    return keep_word(ref, unit, APPROVAL, {TEXT: text, BY: by})
