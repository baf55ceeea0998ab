"""Who has a word in a write: webhooks and policies that may refuse an object, or change it.

What only the server can evaluate (match conditions, parameters) is not looked at: rather one object
too many is counted as theirs than one too few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from tidegate.engine.means import Body
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.reach.matching import ADMISSION, is_asked
from tidegate.engine.reach.writing import read_body
from tidegate.model.labels import matches
from tidegate.model.objects import Kind, Ref, Served, Spot
from tidegate.model.reading import listed, mapping, mappings, text
from tidegate.world.calls import List, Selection
from tidegate.world.facts import Listed

WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
POLICIES = {
    "MutatingAdmissionPolicyBinding": "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding": "ValidatingAdmissionPolicy",
}
NAMES = frozenset({*WEBHOOKS, *POLICIES, *POLICIES.values()})
EQUIVALENT = "Equivalent"
NAME_LABEL = "kubernetes.io/metadata.name"
"""The label that every namespace has."""
ALL: Body = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
HARMLESS = ("None", "NoneOnDryRun")
UNSEEN: Body = {"webhooks": [{"rules": [ALL], "sideEffects": "None"}]}


class Guard(msgspec.Struct, frozen=True):
    """One webhook or policy. An object is its business where all of its `scopes` hold.

    `spots`: the objects that say so. `mutates`: it may change what it sees. `harmless`: it takes
    dry runs.
    """

    spots: tuple[Spot, ...]
    scopes: tuple[Body, ...]
    mutates: bool
    harmless: bool = True


class GuardSight(msgspec.Struct, frozen=True):
    """What selectors see of an object: its labels, and those of its namespace, if they are known.

    A Namespace is in itself. What is in none, selectors of namespaces take.
    """

    labels: Body
    place: str = ""
    around: Body | None = None


def is_admission(kind: Kind) -> bool:
    return kind.group == ADMISSION and kind.name in NAMES


def look(cluster: str, served: Iterable[Served]) -> Errand[dict[Spot, Body]]:
    """All webhooks and policies of a cluster; what may not be seen counts as asking for all."""
    kinds = {one.kind.name: one.kind for one in reversed([*served]) if is_admission(one.kind)}
    outcomes = yield tuple(Ask(cluster, List(Selection(kind))) for kind in kinds.values())
    found: dict[Spot, Body] = {}
    for kind, outcome in zip(kinds.values(), outcomes, strict=True):
        if isinstance(outcome, Listed):
            found |= {Spot(cluster, live.ref): read_body(live) for live in outcome.items}
        else:
            found[Spot(cluster, Ref(kind, "", ""))] = UNSEEN
    return found


def guards_of(bodies: Mapping[Spot, Body]) -> list[Guard]:
    """The webhooks, and the policies that are bound to something and deny it or change it."""
    named = {(spot.ref.kind.name, spot.ref.name): spot for spot in bodies}
    found: list[Guard] = []
    for spot, body in bodies.items():
        found += _webhooks(spot, body)
        policy = named.get((POLICIES.get(spot.ref.kind.name, ""), text(body, "spec", "policyName")))
        if policy is not None and _is_strict(spot, body):
            found.append(_bound(spot, body, policy, bodies[policy]))
    return found


def covers(guard: Guard, kinds: Sequence[Served], operation: str) -> bool:
    """Whether an operation on a kind is its business; `kinds` are all that its objects are served
    as, the one that is written first."""
    return all(_covers(scope, kinds, operation) for scope in guard.scopes)


def takes(guard: Guard, sight: GuardSight) -> bool:
    """Whether an object of such a kind is its business."""
    return all(
        matches(mapping(scope, "objectSelector"), sight.labels)
        and _takes_namespace(mapping(scope, "namespaceSelector"), sight)
        for scope in guard.scopes
    )


def _webhooks(spot: Spot, body: Body) -> Iterator[Guard]:
    for hook in mappings(body, "webhooks"):
        yield Guard((spot,), (hook,), _mutates(spot), text(hook, "sideEffects") in HARMLESS)


def _bound(spot: Spot, binding: Body, other: Spot, policy: Body) -> Guard:
    constraints = _scope(mapping(policy, "spec", "matchConstraints"))
    scopes = (constraints, _scope(mapping(binding, "spec", "matchResources")))
    return Guard((spot, other), scopes, _mutates(spot))


def _mutates(spot: Spot) -> bool:
    return spot.ref.kind.name.startswith("Mutating")


def _is_strict(spot: Spot, binding: Body) -> bool:
    """Some bindings only warn, or write to the audit log."""
    return _mutates(spot) or "Deny" in listed(binding, "spec", "validationActions")


def _scope(resources: Body) -> Body:
    """What a policy matches, written as a webhook would; no rules mean everything."""
    return {**resources, "rules": listed(resources, "resourceRules") or [ALL]}


def _covers(scope: Body, kinds: Sequence[Served], operation: str) -> bool:
    if text(scope, "matchPolicy", default=EQUIVALENT) != EQUIVALENT:
        kinds = kinds[:1]
    excluded: Body = {"rules": listed(scope, "excludeResourceRules")}
    is_meant = any(is_asked(scope, served, operation) for served in kinds)
    return is_meant and not any(is_asked(excluded, served, operation) for served in kinds)


def _takes_namespace(selector: Body, sight: GuardSight) -> bool:
    if not sight.place:
        return True
    own: Body = {NAME_LABEL: sight.place}
    if sight.around is not None:
        return matches(selector, own | sight.around)
    equal, expressions = mapping(selector, "matchLabels"), mappings(selector, "matchExpressions")
    known: Body = {
        "matchLabels": {key: value for key, value in equal.items() if key == NAME_LABEL},
        "matchExpressions": [one for one in expressions if text(one, "key") == NAME_LABEL],
    }
    return matches(known, own)
