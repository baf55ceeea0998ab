"""What a deletion takes along that is not the unit's: a namespace has contents, a kind has objects.

Asked before the first write, and by whoever shows a deletion. What a controller owns, and what
every namespace has by itself, is nobody's loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidegate.engine.means import Body
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.reach.probing import defined_kinds
from tidegate.engine.reach.surroundings import DEFINITION, NAMESPACE
from tidegate.engine.reach.writing import read_body
from tidegate.model.objects import Kind, Live, Ref, Served, Spot
from tidegate.model.reading import listed
from tidegate.world.calls import List, Selection, View
from tidegate.world.facts import Listed

PASSING_KINDS = frozenset({"events", "endpoints", "endpointslices", "leases", "bindings"})
GIVEN = frozenset({("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")})
"""What every namespace has."""
Owner = Callable[[Body], str]
MOST_NAMED = 3


def find_losses(
    spot: Spot, live: Live, served: Iterable[Served], owner: Owner, mark: str
) -> Errand[list[Ref]]:
    """The objects of others that go along with one of the unit with this mark."""
    kinds = [one for one in served if "list" in one.verbs and one.plural not in PASSING_KINDS]
    selections = _selections(spot.ref, live, kinds)
    outcomes = yield tuple(Ask(spot.cluster, List(one)) for one in selections)
    pages = (page.items for page in outcomes if isinstance(page, Listed))
    found = (one for page in pages for one in page)
    return sorted({one.ref for one in found if _is_loss(one) and owner(read_body(one)) != mark})


def told_loss(others: list[Ref]) -> str:
    """What goes along, and how to agree to that."""
    names = ", ".join(map(str, others[:MOST_NAMED]))
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    count = "an object" if len(others) == 1 else f"{len(others)} objects"
    return (
        f"its deletion takes {count} of others along: {names}{more};"
        " move them, or agree with `--yes-delete-contents`"
    )


def _selections(ref: Ref, live: Live, kinds: list[Served]) -> list[Selection]:
    if ref.kind == NAMESPACE:
        chosen: dict[tuple[str, str], Kind] = {}
        for one in kinds:
            if one.namespaced:
                chosen.setdefault((one.kind.group, one.kind.name), one.kind)
        return [Selection(kind, ref.name, view=View.METADATA) for kind in chosen.values()]
    if ref.kind == DEFINITION:
        known = {one.kind for one in kinds}
        defined = [kind for kind in defined_kinds(read_body(live)) if kind in known]
        return [Selection(kind, view=View.METADATA) for kind in defined[:1]]
    return []


def _is_loss(live: Live) -> bool:
    is_given = (live.ref.kind.name, live.ref.name) in GIVEN
    return not is_given and not listed(read_body(live), "metadata", "ownerReferences")
