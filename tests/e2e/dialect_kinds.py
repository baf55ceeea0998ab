"""A real API server that serves the kinds of Argo CD and Flux."""

from __future__ import annotations

from functools import partial

from plane import ControlPlane
from plane.dialect_schemas import read_definitions
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, mappings, text
from tidegate.testing import Body, Desk, live_of, real_world
from tidegate.world.calls import Kinds
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Catalogue, Outcome


def definitions() -> list[Body]:
    """The CRDs of all modules; one that is in several has the versions of all."""
    found: dict[str, Body] = {}
    for _, body in read_definitions():
        name, spec = text(body, "metadata", "name"), mapping(body, "spec")
        known = mapping(found.get(name), "spec") or {**spec, "versions": []}
        versions = mappings(known, "versions")
        names = {version["name"] for version in versions}
        newer: list[Json] = [
            {**version, "storage": not versions and version.get("storage") is True}
            for version in mappings(spec, "versions")
            if version["name"] not in names
        ]
        head: Body = {"apiVersion": body["apiVersion"], "kind": body["kind"]}
        whole: Body = {**known, "versions": [*versions, *newer]}
        found[name] = {**head, "metadata": {"name": name}, "spec": whole}
    return [*found.values()]


async def serve(plane: ControlPlane) -> None:
    """Have the kinds served; a server takes a moment until it tells of kinds that are new."""
    bodies = definitions()
    names = {text(body, "spec", "names", "kind") for body in bodies}
    async with real_world(kubeconfig=plane.kubeconfig("admin")) as world:
        desk = Desk(Exchange(world))
        for body in bodies:
            live_of(await desk.create(body))
        await desk.eventually(partial(_asked, desk), partial(_tells, names))


async def _asked(desk: Desk) -> Outcome:
    (outcome,) = await desk.ask(Kinds())
    return outcome


def _tells(names: set[str], outcome: Outcome) -> bool:
    kinds = outcome.kinds if isinstance(outcome, Catalogue) else ()
    return names <= {one.kind.name for one in kinds}
