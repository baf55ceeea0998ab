"""Nulls in custom objects, in spec and status, mean in the sandbox what they mean to a real server.

Random objects with many nulls are created, applied, patched and given a status in both worlds; both
must say the same of each write, and have the same object afterwards.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from plane import ControlPlane
from tests.support.cluster_client import ClusterClient
from tests.support.worlds import real_world
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Invalid, Outcome, Success
from tidegate.world.requests import Get, PatchType, Verb, Write
from tidegate.world.resilient import ResilientWorld

pytestmark = pytest.mark.kube

BATCH, BATCHES = 12, 5
GROUP = "nulls.example.com"
KIND = Kind(GROUP, "v1", "Hollow")
TEXT: JsonObject = {"type": "string"}
FIELDS: JsonObject = {
    "plain": TEXT,
    "nullable": {"type": "string", "nullable": True},
    "defaulted": {"type": "string", "default": "x"},
    "hollow": {"type": "string", "nullable": True, "default": "y"},
    "number": {"type": "integer"},
    "list": {"type": "array", "items": TEXT},
    "loose": {"type": "array", "items": {"type": "string", "nullable": True}},
    "map": {"type": "object", "additionalProperties": TEXT},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "inner": {
        "type": "object",
        "properties": {"plain": TEXT, "defaulted": {"type": "string", "default": "z"}},
    },
}
PART: JsonObject = {"type": "object", "properties": FIELDS}
DEFINITION: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"hollows.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Hollow", "plural": "hollows"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": PART, "status": PART},
                    }
                },
            }
        ],
    },
}
TEXTS = st.sampled_from([None, "a"])
VALUES = {
    "plain": TEXTS,
    "nullable": TEXTS,
    "defaulted": TEXTS,
    "hollow": TEXTS,
    "number": st.sampled_from([None, 3]),
    "list": st.one_of(st.none(), st.lists(TEXTS, max_size=2)),
    "loose": st.one_of(st.none(), st.lists(TEXTS, max_size=2)),
    "map": st.one_of(st.none(), st.dictionaries(st.sampled_from("ab"), TEXTS)),
    "free": st.one_of(st.none(), st.dictionaries(st.sampled_from("ab"), TEXTS)),
    "inner": st.one_of(
        st.none(), st.fixed_dictionaries({}, optional={"plain": TEXTS, "defaulted": TEXTS})
    ),
}
PARTS = st.one_of(st.none(), st.fixed_dictionaries({}, optional=VALUES))
BODIES = st.fixed_dictionaries({}, optional={"spec": PARTS, "status": PARTS})
DEEDS = st.sampled_from(["create", "apply", "merge", "status", "replace-status", "apply-status"])
WriteSpec = tuple[str, JsonObject]
STORIES = st.lists(st.tuples(DEEDS, BODIES), min_size=2, max_size=4)
_names = itertools.count(1)


def write_of(write: WriteSpec, name: str) -> Write:
    how, parts = write
    ref = Ref(KIND, "default", name)
    head: JsonObject = {
        "apiVersion": KIND.api_version,
        "kind": KIND.name,
        "metadata": {"name": name},
    }
    whole = msgspec.json.encode({**head, **parts})
    changes = msgspec.json.encode(parts)
    match how:
        case "create":
            return Write(verb=Verb.CREATE, ref=ref, body=whole, manager="tester")
        case "apply":
            return Write(verb=Verb.APPLY, ref=ref, body=whole, manager="tester", force=True)
        case "apply-status":
            status_write = Write(verb=Verb.APPLY, ref=ref, body=whole, manager="tester", force=True)
            return msgspec.structs.replace(status_write, subresource="status")
        case "merge":
            return Write(verb=Verb.PATCH, ref=ref, body=changes, manager="tester")
        case "status":
            return Write(
                verb=Verb.PATCH, ref=ref, body=changes, subresource="status", manager="tester"
            )
        case _:
            operations: Json = [{"op": "add", "path": "/status", "value": parts.get("status")}]
            return Write(
                verb=Verb.PATCH,
                patch_type=PatchType.JSON,
                ref=ref,
                body=msgspec.json.encode(operations),
                subresource="status",
                manager="tester",
            )


def read_result(outcome: Outcome) -> Json:
    """What counts of an answer: whether it was done, or which fields are wrong."""
    if isinstance(outcome, Invalid):
        return {"invalid": [*sorted({cause.field for cause in outcome.causes})]}
    return type(outcome).__name__


def parts_of(outcome: Outcome) -> Json:
    if not isinstance(outcome, Success) or outcome.live is None:
        return type(outcome).__name__
    body: JsonObject = msgspec.json.decode(outcome.live.body)
    return {key: body[key] for key in ("spec", "status") if key in body}


async def list_results(
    client: ClusterClient, sequences: list[tuple[str, list[WriteSpec]]]
) -> list[Json]:
    """What a world says to each write, and what it has afterwards."""
    result: list[Json] = []
    for name, sequence in sequences:
        for write in sequence:
            (outcome,) = await client.ask(write_of(write, name))
            (after,) = await client.ask(Get(Ref(KIND, "default", name)))
            result.append([name, write[0], write[1], read_result(outcome), parts_of(after)])
    return result


@pytest.fixture(scope="module")
def hollow_plane(plane: ControlPlane) -> Iterator[ControlPlane]:
    """A server that serves the kind meanwhile."""

    async def serve() -> None:
        async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
            await _define(ClusterClient(Dispatcher(ResilientWorld(world))))

    async def withdraw() -> None:
        async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
            client = ClusterClient(Dispatcher(ResilientWorld(world)))
            await client.delete(await client.ref(DEFINITION))

    asyncio.run(serve())
    yield plane
    asyncio.run(withdraw())


async def _define(client: ClusterClient) -> None:
    await client.create(DEFINITION)
    probe = write_of(("create", {}), "probe")
    await client.eventually(
        lambda: _first(client, msgspec.structs.replace(probe, dry_run=True)),
        lambda outcome: isinstance(outcome, Success),
    )


async def _first(client: ClusterClient, write: Write) -> Outcome:
    (outcome,) = await client.ask(write)
    return outcome


@settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=BATCHES,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(batch=st.lists(STORIES, min_size=BATCH, max_size=BATCH))
def test_a_null_in_a_custom_object_has_the_same_effect_in_the_sandbox(
    hollow_plane: ControlPlane, batch: list[list[WriteSpec]]
) -> None:
    sequences = [(f"hollow-{next(_names)}", sequence) for sequence in batch]

    async def both() -> tuple[list[Json], list[Json]]:
        sandbox = ClusterClient(Dispatcher(ResilientWorld(build_sandbox(SimulationConfig()))))
        await _define(sandbox)
        async with real_world(kubeconfig=hollow_plane.kubeconfig("tidegate")) as world:
            real = await list_results(ClusterClient(Dispatcher(ResilientWorld(world))), sequences)
        return await list_results(sandbox, sequences), real

    ours, theirs = asyncio.run(both())
    for mine, real in zip(ours, theirs, strict=True):
        assert mine == real
