"""Asking for what an object promises: a definition's kinds, a webhook's answer."""

from __future__ import annotations

from tidegate.engine.means import Body
from tidegate.engine.reach.errands import Errand
from tidegate.engine.reach.outlook import Outlook
from tidegate.engine.reach.webhooks import Planned, probe_webhooks
from tidegate.engine.reach.writing import read_body
from tidegate.engine.vocabulary import Trouble
from tidegate.model.objects import Kind, Spot
from tidegate.model.reading import mappings, part, text


def probe(spot: Spot, outlook: Outlook, planned: Planned) -> Errand[Trouble | None]:
    """None: it serves. `planned` are the objects of its cluster that can be tried."""
    live = outlook.lives.get(spot)
    if live is None:
        return Trouble("Missing", "it is not there")
    body = read_body(live)
    if spot.ref.kind.name == "CustomResourceDefinition":
        return (yield from _probe_definition(spot, body, outlook))
    return (yield from probe_webhooks(spot.cluster, body, outlook, planned))


def _probe_definition(spot: Spot, body: Body, outlook: Outlook) -> Errand[Trouble | None]:
    kinds = defined_kinds(body)
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
