"""Asking for what an object promises: a definition's kinds, a webhook's answer."""

from __future__ import annotations

from tidegate.engine.means import Body
from tidegate.engine.reach.errands import Errand
from tidegate.engine.reach.outlook import Outlook
from tidegate.engine.reach.writing import read_body
from tidegate.engine.vocabulary import Spot, Trouble
from tidegate.model.objects import Kind
from tidegate.model.reading import mappings, part, text


def probe(spot: Spot, outlook: Outlook) -> Errand[Trouble | None]:
    """None: it serves."""
    live = outlook.lives.get(spot)
    if live is None:
        return Trouble("Missing", "it is not there")
    if spot.ref.kind.name != "CustomResourceDefinition":
        return None
    kinds = defined_kinds(read_body(live))
    if not _served(spot, outlook, kinds):
        yield from outlook.catalogue((spot.cluster,))
    missing = [kind for kind in kinds if kind not in outlook.served.get(spot.cluster, {})]
    if missing:
        return Trouble("NotServed", f"`{missing[0]}` is not served yet")
    return None


def _served(spot: Spot, outlook: Outlook, kinds: list[Kind]) -> bool:
    return all(kind in outlook.served.get(spot.cluster, {}) for kind in kinds)


def defined_kinds(body: Body) -> list[Kind]:
    """The kinds that a definition says it serves."""
    group = text(body, "spec", "group")
    name = text(body, "spec", "names", "kind")
    versions = mappings(body, "spec", "versions")
    return [
        Kind(group, text(version, "name"), name)
        for version in versions
        if part(version, "served") is True
    ]
