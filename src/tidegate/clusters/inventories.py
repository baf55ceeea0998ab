"""Inventories of units: objects that Argo CD or Flux deployed, and not Tidegate.

    cluster        the status of the live Application or Kustomization
    simulation     the tracking metadata of the objects that existed before

What a unit may prune is decided later, by the tracking metadata of each live object.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.clusters.sandboxes import preinstalled_objects
from tidegate.clusters.session import Session
from tidegate.dialect.ownership.inventories import inventory_refs
from tidegate.model.k8s.json_fields import object_ref
from tidegate.model.k8s.kinds import APPLICATION
from tidegate.model.k8s.objects import Kind, Ref, object_body
from tidegate.model.plans.plan import PlannedUnit
from tidegate.model.units.unit import UnitId
from tidegate.world.requests import Selection

KINDS = {
    kind.name: kind
    for kind in (APPLICATION, Kind("kustomize.toolkit.fluxcd.io", "v1", "Kustomization"))
}
"""Kinds of units whose status lists their objects. The objects of a release are in its history."""


async def read_inventories(
    units: Iterable[PlannedUnit], session: Session
) -> dict[UnitId, tuple[Ref, ...]]:
    """Return the objects of units that other controllers report as theirs."""
    listed = {unit.id: unit for unit in units if unit.id.kind in KINDS}
    if not listed:
        return {}
    if session.targets.simulation is not None:
        return _tracked_objects(listed, session)
    inventories: dict[UnitId, tuple[Ref, ...]] = {}
    selections = sorted({(name.cluster, name.kind) for name in listed})
    for cluster, kind_name in selections:
        listing = await session.reader(cluster).list_each((Selection(KINDS[kind_name]),))
        for live in listing.items:
            name = UnitId(kind_name, cluster, live.ref.namespace, live.ref.name)
            if name in listed:
                inventories[name] = tuple(inventory_refs(object_body(live)) or ())
    return inventories


def _tracked_objects(
    units: dict[UnitId, PlannedUnit], session: Session
) -> dict[UnitId, tuple[Ref, ...]]:
    """Return the objects of units that exist before a simulation."""
    simulation = session.targets.simulation
    names = {name.tracking_id: name for name in units}
    inventories: dict[UnitId, list[Ref]] = {}
    for body in preinstalled_objects(simulation) if simulation is not None else ():
        owner = names.get(session.evaluator.find_owner(body))
        if owner is not None:
            inventories.setdefault(owner, []).append(object_ref(body))
    return {name: tuple(refs) for name, refs in inventories.items()}
