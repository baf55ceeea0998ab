"""Whether we may write what a plan brings and delete what it takes away.

Asked before the first write, where that can be asked: one question for each kind, namespace and
deed, and only about what would be done. Where a kind is not allowed, its objects are asked about by
their names: a role may name them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from tidegate.engine.reach.checking import Examined, is_touched
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.reach.outlook import Outlook
from tidegate.engine.reach.preflight import Fault
from tidegate.engine.vocabulary import Stand, Standing, Trouble
from tidegate.model.identity import Identity
from tidegate.model.objects import Kind, Ref
from tidegate.model.plan import Deed, Item, PlannedUnit
from tidegate.model.policy import Policy
from tidegate.model.unit import UnitId
from tidegate.world.calls import Verb, Write
from tidegate.world.facts import Done, Outcome

REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview")
"""The question to a cluster whether we may do something."""
CREATE = "create"


class Leave(NamedTuple):
    """What we may not do, told of the first object of its kind in its namespace; and the rest."""

    faults: list[Fault]
    allowed: list[Examined]


def ask_leave(
    examined: list[Examined], outlook: Outlook, units: Mapping[UnitId, PlannedUnit]
) -> Errand[Leave]:
    """Ask for all that is needed, in the name of each unit."""
    needed = [_rights(one, outlook, units[one[0].unit].policy) for one in examined]
    denied = yield from _denied((right for some in needed for right in some), outlook)
    named = (
        msgspec.structs.replace(right, name=one[1].ref.name)
        for one, some in zip(examined, needed, strict=True)
        for right in some
        if right in denied and right.verb != CREATE
    )
    denied |= yield from _denied(named, outlook)
    leave, told = Leave([], []), set[_Right]()
    for one, some in zip(examined, needed, strict=True):
        name = one[1].ref.name
        missing = [right for right in some if _is_missing(right, name, denied)]
        if not missing:
            leave.allowed.append(one)
        elif not told.issuperset(missing):
            leave.faults.append(_forbidden(one, missing, outlook))
            told.update(missing)
    return leave


class _Right(msgspec.Struct, frozen=True):
    """Leave to do something to the objects of a kind in a namespace, or to one of them."""

    cluster: str
    kind: Kind
    namespace: str
    verb: str
    name: str = ""
    identity: Identity | None = None


def _denied(rights: Iterable[_Right], outlook: Outlook) -> Errand[set[_Right]]:
    asked = list(dict.fromkeys(rights))
    outcomes = yield tuple(_review(right, outlook) for right in asked)
    return {right for right, how in zip(asked, outcomes, strict=True) if _is_denied(how)}


def _is_missing(right: _Right, name: str, denied: set[_Right]) -> bool:
    """What is new has no name that a role could know."""
    if right not in denied:
        return False
    return right.verb == CREATE or msgspec.structs.replace(right, name=name) in denied


def _rights(examined: Examined, outlook: Outlook, policy: Policy) -> list[_Right]:
    """What must be allowed for an object; nothing where the cluster cannot be asked about it."""
    step, item, standing = examined
    if not is_touched(item, standing, consents=policy.consents):
        return []
    if not outlook.serves(standing.spot) or REVIEW not in outlook.served.get(step.cluster, ()):
        return []
    place = (step.cluster, item.ref.kind, item.ref.namespace)
    return [_Right(*place, verb, identity=policy.identity) for verb in _verbs(item, standing)]


def _verbs(item: Item, standing: Standing) -> list[str]:
    """An object that is applied is patched; one that is not there is created by that."""
    if item.deed is Deed.DELETE:
        return ["delete"]
    makes = standing.replaces or item.deed is Deed.CREATE
    match standing.stand:
        case Stand.ABSENT:
            return [CREATE] if makes else [CREATE, "patch"]
        case Stand.OBSOLETE:
            return ["delete", CREATE] if makes else ["delete", CREATE, "patch"]
        case _:
            return ["update"] if standing.replaces else ["patch"]


def _review(right: _Right, outlook: Outlook) -> Ask:
    body = {
        "apiVersion": REVIEW.api_version,
        "kind": REVIEW.name,
        "spec": {
            "resourceAttributes": {
                "group": right.kind.group,
                "version": right.kind.version,
                "resource": outlook.served[right.cluster][right.kind].plural,
                "namespace": right.namespace,
                "verb": right.verb,
                "name": right.name,
            }
        },
    }
    question = Write(
        verb=Verb.CREATE, ref=Ref(REVIEW, "", ""), body=msgspec.json.encode(body), dry_run=True
    )
    return Ask(right.cluster, question, identity=right.identity)


class _Leave(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Reviewed(msgspec.Struct, frozen=True):
    status: _Leave = _Leave(allowed=True)


def _is_denied(outcome: Outcome) -> bool:
    """A cluster that does not answer denies nothing yet."""
    if not isinstance(outcome, Done) or outcome.live is None:
        return False
    return not msgspec.json.decode(outcome.live.body, type=_Reviewed).status.allowed


def _forbidden(examined: Examined, rights: list[_Right], outlook: Outlook) -> Fault:
    step, item, _ = examined
    verbs = " or ".join(right.verb for right in rights)
    what = outlook.served[step.cluster][item.ref.kind].plural
    what += f".{item.ref.kind.group}" if item.ref.kind.group else ""
    place = f" in namespace `{item.ref.namespace}`" if item.ref.namespace else ""
    sentence = (
        f"this user may not {verbs} `{what}`{place};"
        " ask for the right, or choose another context or user"
    )
    return step, item.ref, Trouble("Forbidden", sentence, final=True)
