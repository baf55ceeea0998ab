"""A real API server that serves the kinds of Argo CD and Flux."""

from __future__ import annotations

from functools import partial

from plane import ControlPlane
from plane.dialect_schemas import read_definitions
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.worlds import real_world
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import ApiResources, Outcome
from tidegate.world.requests import Discover


def definitions() -> list[JsonObject]:
    """The CRDs of all modules; one that is in several has the versions of all."""
    result: dict[str, JsonObject] = {}
    for _, body in read_definitions():
        name, spec = get_text(body, "metadata", "name"), get_mapping(body, "spec")
        known = get_mapping(result.get(name), "spec") or {**spec, "versions": []}
        versions = get_mappings(known, "versions")
        names = {version["name"] for version in versions}
        newer: list[Json] = [
            {**version, "storage": not versions and version.get("storage") is True}
            for version in get_mappings(spec, "versions")
            if version["name"] not in names
        ]
        head: JsonObject = {"apiVersion": body["apiVersion"], "kind": body["kind"]}
        whole: JsonObject = {**known, "versions": [*versions, *newer]}
        result[name] = {**head, "metadata": {"name": name}, "spec": whole}
    return [*result.values()]


async def serve(plane: ControlPlane) -> None:
    """Serve the kinds; a server takes a moment until it lists new kinds."""
    bodies = definitions()
    names = {get_text(body, "spec", "names", "kind") for body in bodies}
    async with real_world(kubeconfig=plane.kubeconfig("admin")) as world:
        client = ClusterClient(Dispatcher(world))
        for body in bodies:
            require_live(await client.create(body))
        await client.eventually(partial(_discover, client), partial(_serves, names))


async def _discover(client: ClusterClient) -> Outcome:
    (outcome,) = await client.ask(Discover())
    return outcome


def _serves(names: set[str], outcome: Outcome) -> bool:
    kinds = outcome.kinds if isinstance(outcome, ApiResources) else ()
    return names <= {kind.kind.name for kind in kinds}
