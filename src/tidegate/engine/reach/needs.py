"""What objects need to be written at all: their kind is served, their namespace is there.

What neither lives nor comes with the plan is a fault, told before the first write. A step that
expands may bring anything, so nothing is said of a plan before each such step has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from tidegate.engine.reach.checking import Examined
from tidegate.engine.reach.errands import Ask, Errand, Pause
from tidegate.engine.reach.outlook import Outlook
from tidegate.engine.reach.preflight import Fault, is_written
from tidegate.engine.reach.probing import defined_kinds
from tidegate.engine.reach.surroundings import DEFINITION, NAMESPACE, NEVER_WRITTEN
from tidegate.engine.vocabulary import Trouble
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Kind, Ref, Spot
from tidegate.model.plan import Item, Step, items_of
from tidegate.world.calls import Get
from tidegate.world.facts import Missing, Refusal

SERVED_WITHIN = Ms(30 * SECOND)
"""How long a definition may take until its kind is served."""
ASKS_AGAIN = Ms(SECOND // 2)
OPTION = "SkipDryRunOnMissingResource=true"


def unmet_needs(
    steps: list[Step], examined: list[Examined], outlook: Outlook
) -> Errand[list[Fault]]:
    """The objects that would be written and for which something is not there and will not be.

    `steps` are those of the rollout that bring something, or may.
    """
    if any(step.expands and not step.batches for step in steps):
        return []
    wanted = [one for one in examined if is_written(one)]
    strange = [one for one in wanted if not outlook.serves(one[2].spot)]
    strange = [one for one in strange if not one[1].handling.waits_for_kind]
    clusters = dict.fromkeys(step.cluster for step, *_ in strange)
    planned = [(step.cluster, item) for step in steps for item in items_of(step)]
    brought = {
        name: brought_kinds(item for cluster, item in planned if cluster == name)
        for name in clusters
    }
    unserved = [one for one in strange if one[1].ref.kind not in brought[one[0].cluster]]
    homeless = yield from _homeless(wanted, planned, outlook)
    served = (_unserved(one, outlook) for one in unserved)
    return [*served, *map(_without_home, homeless)]


def brought_kinds(items: Iterable[Item]) -> set[Kind]:
    """The kinds that these define."""
    definitions = (item for item in items if item.ref.kind == DEFINITION)
    bodies = (item.body for item in definitions if item.deed not in NEVER_WRITTEN)
    return {kind for body in bodies for kind in defined_kinds(msgspec.json.decode(body))}


def await_kind(spot: Spot, outlook: Outlook, now: Callable[[], Ms]) -> Errand[Refusal | None]:
    """Bring an object into view whose definition was written a moment ago.

    Where its kind is not served for long, the write says so.
    """
    ends = now() + SERVED_WITHIN
    while outlook.hidden((spot,)):
        if outlook.serves(spot):
            return (yield from outlook.view((spot,)))
        refused = yield from outlook.catalogue((spot.cluster,))
        if refused is not None or now() >= ends:
            return refused
        if not outlook.serves(spot):
            yield Pause(Ms(now() + ASKS_AGAIN))
    return None


def _homeless(
    wanted: list[Examined], planned: list[tuple[str, Item]], outlook: Outlook
) -> Errand[list[Examined]]:
    """Those whose namespace is missing. Where something lives, the namespace need not be asked."""
    known = {(spot.cluster, spot.ref.namespace) for spot in outlook.lives}
    known |= {
        (cluster, item.ref.name)
        for cluster, item in planned
        if item.ref.kind == NAMESPACE and item.deed not in NEVER_WRITTEN
    }
    homes = dict.fromkeys((step.cluster, item.ref.namespace) for step, item, _ in wanted)
    asked = [_namespace(*home) for home in homes if home[1] and home not in known]
    outcomes = yield tuple(Ask(spot.cluster, Get(spot.ref)) for spot in asked)
    missing = {
        (spot.cluster, spot.ref.name)
        for spot, outcome in zip(asked, outcomes, strict=True)
        if isinstance(outcome, Missing)
    }
    return [one for one in wanted if (one[0].cluster, one[1].ref.namespace) in missing]


def _namespace(cluster: str, name: str) -> Spot:
    return Spot(cluster, Ref(NAMESPACE, "", name))


def _unserved(examined: Examined, outlook: Outlook) -> Fault:
    step, item, _ = examined
    kind = item.ref.kind
    namesakes = [one for one in outlook.served.get(step.cluster, {}) if _is_heir(one, kind)]
    if namesakes:
        told = " and ".join(f"`{one}`" for one in sorted(namesakes))
        sentence = f"the cluster does not serve `{kind}`; it serves {told}"
        return step, item.ref, Trouble("NotServed", sentence, final=True)
    sentence = (
        f"the cluster does not serve `{item.ref.kind}`, nor does the plan define it;"
        f" install it first, or let it wait with `{OPTION}`"
    )
    return step, item.ref, Trouble("NotServed", sentence, final=True)


def _is_heir(served: Kind, wanted: Kind) -> bool:
    """Whether it is the same kind in another version; those of Kubernetes moved between groups."""
    if served.name != wanted.name:
        return False
    return served.group == wanted.group or all(map(_is_built_in, (served.group, wanted.group)))


def _is_built_in(group: str) -> bool:
    return "." not in group or group.endswith(".k8s.io")


def _without_home(examined: Examined) -> Fault:
    step, item, _ = examined
    sentence = (
        f"there is no namespace `{item.ref.namespace}`, nor does the plan bring it;"
        " create it first, or add it to the plan"
    )
    return step, item.ref, Trouble("NoNamespace", sentence, final=True)
