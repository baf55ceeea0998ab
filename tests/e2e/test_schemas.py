"""Local validation agrees with a real server.

A few hundred objects are corrupted at random and validated by both. Known differences:

- An apply names one unknown field of each object, and Go chooses which; we name all.
- Go's decoder names its own types of strings (`v1.RestartPolicy`) and embedded structs
  (`volumes.VolumeSource.configMap`), which a schema does not contain.
- Errors in the metadata of an embedded object have their own message.
- We check only a part of what a server requires of built-in objects: the server reports every
  error that we report, and we accept every object that the server accepts.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from plane import ControlPlane
from plane.schemas import read_plane
from tests.e2e import schema_bodies as bodies
from tests.e2e.schema_bodies import BUILT_IN_BODIES, SPOILINGS, BodyMutation, spoiled
from tests.support.cluster_client import ClusterClient, require_body
from tests.support.worlds import real_world
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.schema.builtin import find_shape, object_meta_shape, served_kinds
from tidegate.schema.crd_validation import find_crd_problems
from tidegate.schema.defaulting import drop_nulls, fill_defaults, list_unknown_fields, prune
from tidegate.schema.shape import Shape
from tidegate.schema.structural import shapes_from_crd
from tidegate.schema.types import find_decode_problem, find_typed_problems
from tidegate.schema.validation.requirements import find_requirement_problems
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import ApiResources, Cause, Invalid, Outcome, ServerError, Success
from tidegate.world.requests import Discover, Verb, Write

pytestmark = pytest.mark.kube

BATCH, BATCHES = 30, 8
UNREADABLE = " cannot be handled as a "
UNTYPED = "failed to create typed patch object"
UNCONVERTED = "failed to convert new object"

tries = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=BATCHES,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
batches = given(st.lists(SPOILINGS, min_size=BATCH, max_size=BATCH))


def answers(plane: ControlPlane, verb: Verb, *request_bodies: JsonObject) -> tuple[Outcome, ...]:
    """What the server says to these, without doing any of it."""

    async def ask() -> tuple[Outcome, ...]:
        async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
            return await ClusterClient(Dispatcher(world)).ask(
                *(write_of(body, verb) for body in request_bodies)
            )

    return asyncio.run(ask())


def write_of(body: JsonObject, verb: Verb) -> Write:
    kind = kind_of(body)
    namespaced = kind.name not in {"CustomResourceDefinition", "Namespace"}
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    ref = Ref(kind, "default" if namespaced else "", str(metadata.get("name", "")))
    encoded = msgspec.json.encode(body)
    manager = "tester" if verb is Verb.APPLY else ""
    return Write(verb=verb, ref=ref, body=encoded, dry_run=True, manager=manager)


def kind_of(body: JsonObject) -> Kind:
    return Kind.of(str(body["apiVersion"]), str(body["kind"]))


def shape_for(body: JsonObject) -> Shape:
    shape = find_shape(kind_of(body))
    assert shape is not None
    return shape


def warned_fields(outcome: Success) -> list[str]:
    return [result[1] for text in outcome.warnings if (result := re.search('field "(.*)"', text))]


def causes_of(outcome: Outcome) -> tuple[Cause, ...]:
    return outcome.causes if isinstance(outcome, Invalid) else ()


@pytest.fixture(scope="module")
def everything(plane: ControlPlane) -> Iterator[Shape]:
    """The shape of a custom kind that the server serves meanwhile."""

    async def serve() -> None:
        async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
            client = ClusterClient(Dispatcher(world))
            await client.create(bodies.DEFINITION)
            await client.eventually(
                lambda: client.create(bodies.EVERYTHING_BODY, dry_run=True),
                lambda outcome: isinstance(outcome, Success),
            )

    async def withdraw() -> None:
        async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
            client = ClusterClient(Dispatcher(world))
            await client.delete(await client.ref(bodies.DEFINITION))

    asyncio.run(serve())
    yield shapes_from_crd(bodies.DEFINITION["spec"])["v1"]
    asyncio.run(withdraw())


async def test_the_stored_schemas_equal_those_of_the_server(plane: ControlPlane) -> None:
    path, text = await read_plane(plane.kubeconfig("tidegate"))

    assert path.read_text() == text


async def test_the_kinds_equal_those_of_the_server_in_its_order(plane: ControlPlane) -> None:
    async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
        (catalogue,) = await ClusterClient(Dispatcher(world)).ask(Discover())

    assert isinstance(catalogue, ApiResources)
    ours = {served.kind.group for served in served_kinds()}
    assert served_kinds() == tuple(each for each in catalogue.kinds if each.kind.group in ours)


@tries
@batches
def test_a_create_of_a_custom_object_is_validated_like_on_the_server(
    plane: ControlPlane, everything: Shape, batch: list[list[BodyMutation]]
) -> None:
    requests = [spoiled(bodies.EVERYTHING_BODY, each) for each in batch]

    for body, outcome in zip(requests, answers(plane, Verb.CREATE, *requests), strict=True):
        kept = fill_defaults(drop_nulls(prune(body, everything), everything), everything)
        assert isinstance(outcome, Success | Invalid), (body, outcome)
        assert causes_of(outcome) == find_crd_problems(kept, everything), body
        if isinstance(outcome, Success):
            assert warned_fields(outcome) == sorted(list_unknown_fields(body, everything))
            assert require_body(outcome).get("spec") == dict_of(kept).get("spec")


@tries
@batches
def test_an_apply_of_a_custom_object_is_validated_like_on_the_server(
    plane: ControlPlane, everything: Shape, batch: list[list[BodyMutation]]
) -> None:
    requests = [spoiled(bodies.EVERYTHING_BODY, each) for each in batch]

    for body, outcome in zip(requests, answers(plane, Verb.APPLY, *requests), strict=True):
        typed = find_typed_problems(body, everything)
        if typed:
            assert is_reported(causes_of(outcome), typed), (body, outcome)
        else:
            kept = fill_defaults(prune(body, everything), everything)
            assert isinstance(outcome, Success | Invalid), (body, outcome)
            assert without_either(causes_of(outcome)) == find_crd_problems(kept, everything), body


def without_either(causes: tuple[Cause, ...]) -> tuple[Cause, ...]:
    """A null for an int-or-string that is spelled out is refused three times; we say it once."""
    place = "spec.eitherSpelledOut"
    is_refused = any(
        f'{place} in body must be of type integer,string: "null"' in each.message for each in causes
    )
    also = ("(anyOf)", f'{place} in body must be of type integer: "null"')
    return tuple(
        each
        for each in causes
        if not (is_refused and place in each.message and each.message.endswith(also))
    )


@tries
@batches
def test_a_create_of_a_built_in_object_is_validated_like_on_the_server(
    plane: ControlPlane, batch: list[list[BodyMutation]]
) -> None:
    requests = [spoiled(body, each) for each, body in zip(batch, BUILT_IN_BODIES * 6, strict=True)]

    for body, outcome in zip(requests, answers(plane, Verb.CREATE, *requests), strict=True):
        problem = find_decode_problem(body, shape_for(body))
        if isinstance(outcome, Invalid) and UNREADABLE in outcome.message:
            assert without_type(outcome.message.split(UNREADABLE)[1]).endswith(
                without_type(problem)
            ), (body, outcome.message, problem)
            assert problem
        else:
            assert problem == "", (body, outcome)
            assert set(find_requirement_problems(kind_of(body), body)) <= set(causes_of(outcome)), (
                body,
                outcome,
            )
        if isinstance(outcome, Success):
            assert warned_fields(outcome) == [*list_unknown_fields(body, shape_for(body))], body


@tries
@batches
def test_an_apply_of_a_built_in_object_is_validated_like_on_the_server(
    plane: ControlPlane, batch: list[list[BodyMutation]]
) -> None:
    requests = [spoiled(body, each) for each, body in zip(batch, BUILT_IN_BODIES * 6, strict=True)]

    for body, outcome in zip(requests, answers(plane, Verb.APPLY, *requests), strict=True):
        typed = find_typed_problems(body, shape_for(body))
        if typed:
            assert is_reported(causes_of(outcome), typed), (body, outcome)
        elif isinstance(outcome, ServerError):
            assert UNCONVERTED in outcome.message, (body, outcome)
            assert find_decode_problem(body, shape_for(body)), body
        else:
            assert UNTYPED not in getattr(outcome, "message", ""), (body, outcome)


def is_reported(theirs: tuple[Cause, ...], ours: tuple[Cause, ...]) -> bool:
    """Whether the server reports the same, or the part of it that Go reached."""
    if any(cause.reason == "unknown" for cause in ours):
        return bool(theirs) and set(theirs) <= set(ours)
    return theirs == ours


def without_type(message: str) -> str:
    return re.sub(r"\.[A-Z]\w*(?=\.)", "", message.partition(" of type ")[0])


def dict_of(value: Json) -> JsonObject:
    assert isinstance(value, dict)
    return value


def test_invalid_metadata_is_reported_like_on_the_server(
    plane: ControlPlane, everything: Shape
) -> None:
    spoilt: tuple[Json, ...] = ({"name": "x", "labels": {"a": 1}}, {"name": "x", "labels": "a"})
    requests: list[JsonObject] = [
        {**bodies.EVERYTHING_BODY, "metadata": metadata} for metadata in spoilt
    ]

    for body, outcome in zip(requests, answers(plane, Verb.CREATE, *requests), strict=True):
        assert isinstance(outcome, Invalid)
        assert everything.fields["metadata"]() is object_meta_shape()
        assert outcome.message.endswith(find_decode_problem(body["metadata"], object_meta_shape()))
