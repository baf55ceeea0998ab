"""Local validation of Argo CD and Flux objects agrees with a real server with their CRDs.

Valid objects are corrupted at random and validated by both. CEL rules are left to the server, and
so are errors without a location.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plane import ControlPlane
from plane.dialect_schemas import UNREAD, read_definitions, rows_of, write
from tests.e2e.schema_bodies import SPOILINGS, BodyMutation, spoiled
from tests.e2e.test_schemas import answers, causes_of, tries, warned_fields
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.dialect_bodies import BODIES
from tests.support.dialect_kinds import definitions
from tests.support.worlds import real_world
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import FieldPath, Json
from tidegate.schema.causes import NO_FIELD
from tidegate.schema.custom_resources import FILE, check_custom_resource
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Invalid, Success
from tidegate.world.requests import Verb

pytestmark = pytest.mark.kube

PLACED = tuple(
    {name: part for name, part in body.items() if name != "status"} | {"metadata": {"name": "x"}}
    for body in BODIES
)


def test_the_stored_rules_equal_those_of_the_go_modules() -> None:
    assert FILE.read_text() == write([*rows_of(read_definitions()), *UNREAD])


def rules_in(part: Json) -> Iterator[str]:
    """What the rules of a CRD say where they are broken."""
    match part:
        case dict():
            yield from (
                get_text(rule, "message") for rule in get_mappings(part, "x-kubernetes-validations")
            )
            for inner in part.values():
                yield from rules_in(inner)
        case list():
            for inner in part:
                yield from rules_in(inner)
        case _:
            pass


@pytest.fixture(scope="module")
def rules(plane: ControlPlane) -> Iterator[tuple[str, ...]]:
    """A server that serves all kinds; what only it can tell."""
    bodies = definitions()

    async def serve() -> None:
        async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
            client = ClusterClient(Dispatcher(world))
            for body in bodies:
                require_live(await client.create(body))
            for good in PLACED:
                attempt = partial(client.create, good, dry_run=True)
                await client.eventually(attempt, lambda outcome: isinstance(outcome, Success))

    async def withdraw() -> None:
        async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
            client = ClusterClient(Dispatcher(world))
            for body in bodies:
                await client.delete(await client.ref(body))

    asyncio.run(serve())
    yield tuple(rules_in([*bodies]))
    asyncio.run(withdraw())


def spoken(path: FieldPath) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


@tries
@given(st.lists(SPOILINGS, min_size=len(PLACED), max_size=len(PLACED)))
def test_a_create_is_validated_like_on_the_server(
    plane: ControlPlane, rules: tuple[str, ...], batch: list[list[BodyMutation]]
) -> None:
    requests = [spoiled(body, each) for body, each in zip(PLACED, batch, strict=True)]

    for body, outcome in zip(requests, answers(plane, Verb.CREATE, *requests), strict=True):
        assert isinstance(outcome, Success | Invalid), (body, outcome)
        flaws = check_custom_resource(body)
        causes = [cause for cause in causes_of(outcome) if not cause.message.endswith(rules)]
        theirs = {cause.field for cause in causes if cause.field != NO_FIELD}
        assert {
            spoken(flaw.path) for flaw in flaws if flaw.path and not flaw.is_dropped
        } == theirs, body
        assert {flaw.problem for flaw in flaws if not flaw.is_dropped} <= {
            cause.message for cause in causes
        }
        if isinstance(outcome, Success):
            dropped = [spoken(flaw.path) for flaw in flaws if flaw.is_dropped]
            assert warned_fields(outcome) == sorted(dropped), body
