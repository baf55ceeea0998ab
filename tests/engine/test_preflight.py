"""Before the first write everything is validated: one bad object in the last wave, zero writes."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from plane import ControlPlane
from tests.engine.hooks import a_webhook
from tests.support.builders import make_config_map, make_deployment, make_object, make_pod_template
from tests.support.cluster_client import require_live
from tests.support.http_application import served
from tests.support.objects import a_definition, a_namespace
from tests.support.rollout_runs import Run
from tests.support.rollout_stage import HASTY, Stage
from tests.support.write_records import Record
from tidegate.model.k8s.json_fields import get_mapping, get_mappings
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.rollouts.event import Event, EventType
from tidegate.world.messages import Forbidden, Invalid

REPLICAS = "spec.replicas"
IMAGE = "spec.template.spec.containers[0].image"


def with_spec(body: JsonObject, **spec: Json) -> JsonObject:
    return {**body, "spec": {**get_mapping(body, "spec"), **spec}}


def without_image(name: str = "web") -> JsonObject:
    template: JsonObject = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "app"}]},
    }
    return with_spec(make_deployment(name), template=template)


def moved(body: JsonObject, namespace: str) -> JsonObject:
    return {**body, "metadata": {**get_mapping(body, "metadata"), "namespace": namespace}}


def a_gate(group: str, **spec: Json) -> JsonObject:
    return make_object(f"{group}/v1 Gate", "north", spec={**spec})


def the_refusal(run: Run) -> Event:
    """A rollout that wrote nothing reports its errors, and its end."""
    (refused,) = run.events_of(EventType.OBJECT_REFUSED)
    assert [event.type for event in run.events] == [
        EventType.OBJECT_REFUSED,
        EventType.ROLLOUT_FINISHED,
    ]
    assert run.result == "invalid"
    return refused


BAD: dict[str, tuple[JsonObject, str, str]] = {
    "a wrong type": (with_spec(make_deployment(), replicas="three"), "Invalid", REPLICAS),
    "a missing field": (without_image(), "Invalid", IMAGE),
    "an unknown field": (with_spec(make_deployment(), replicsa=3), "Invalid", "spec.replicsa"),
    "a value that is none": (
        make_object("v1 Service", "web", spec={"type": "Outside", "ports": [{"port": 80}]}),
        "Invalid",
        "spec.type",
    ),
    "no quantity": (
        with_spec(
            make_deployment(),
            template=make_pod_template("web", overhead={"cpu": "a lot"}),
        ),
        "Invalid",
        "quantities must match",
    ),
    "a number in a map of text": (
        make_object("v1 Secret", "login", stringData={"user": "admin", "pin": 4711}),
        "Invalid",
        "stringData.pin: expected string",
    ),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_object_in_the_last_wave_means_zero_writes(
    living_stage: Stage, record: Record, name: str
) -> None:
    bad, reason, field = BAD[name]
    await record.mark()

    run = await living_stage.roll_out(make_config_map("first"), make_config_map("second"), bad)

    refused = the_refusal(run)
    assert refused.ref == await living_stage.ref(bad)
    assert refused.reason == reason
    assert field in refused.message
    assert await record.written() == []


@pytest.mark.parametrize("name", BAD)
async def test_an_invalid_object_in_a_new_namespace_prevents_all_writes(
    living_stage: Stage, record: Record, name: str
) -> None:
    bad, reason, field = BAD[name]
    place = f"{living_stage.namespace}-new"
    await record.mark()

    run = await living_stage.roll_out(
        a_namespace(place), moved(make_config_map("first"), place), moved(bad, place)
    )

    refused = the_refusal(run)
    assert refused.reason == reason
    assert field in refused.message
    assert await record.written() == []


GATES: dict[str, tuple[JsonObject, str]] = {
    "a wrong type": ({"color": 5}, "spec.color"),
    "a missing field": ({"size": 5}, "spec.color"),
    "an unknown field": ({"color": "red", "colour": "red"}, "spec.colour"),
    "an item twice": ({"color": "red", "set": ["a", "a"]}, "spec.set"),
}


@pytest.mark.parametrize("name", GATES)
async def test_an_invalid_custom_resource_of_a_new_crd_prevents_all_writes(
    living_stage: Stage, record: Record, name: str
) -> None:
    spec, field = GATES[name]
    group = f"{living_stage.namespace}.example.org"
    await record.mark()

    run = await living_stage.roll_out(
        a_definition(group), make_config_map("between"), a_gate(group, **spec)
    )

    refused = the_refusal(run)
    assert refused.ref == await living_stage.ref(a_gate(group))
    assert field in refused.message
    assert await record.written() == []


@pytest.mark.parametrize("name", GATES)
async def test_an_invalid_custom_resource_of_a_live_crd_prevents_all_writes(
    living_stage: Stage, record: Record, name: str
) -> None:
    spec, field = GATES[name]
    group = f"{living_stage.namespace}.example.org"
    assert (await living_stage.roll_out(a_definition(group))).result == "passed"
    await record.mark()

    run = await living_stage.roll_out(make_config_map("first"), a_gate(group, **spec))

    assert field in the_refusal(run).message
    assert await record.written() == []


async def test_a_field_of_a_newer_crd_in_the_plan_is_valid(living_stage: Stage) -> None:
    group = f"{living_stage.namespace}.example.org"
    newer = _with_property(a_definition(group), "depth", {"type": "integer"})
    assert (await living_stage.roll_out(a_definition(group))).result == "passed"

    run = await living_stage.roll_out(newer, a_gate(group, color="red", depth=3), semantics=HASTY)

    assert run.events_of(EventType.OBJECT_REFUSED) == []
    live = await living_stage.live(a_gate(group))
    assert b'"depth":3' in live.body


async def test_an_immutable_field_is_reported_before_the_first_write(
    living_stage: Stage, record: Record
) -> None:
    fixed = {**make_config_map("last", color="red"), "immutable": True}
    require_live(await living_stage.client.apply(living_stage.here(fixed)))
    other: JsonObject = {**fixed, "data": {"color": "blue"}}
    await record.mark()

    run = await living_stage.roll_out(make_config_map("first"), other)

    refused = the_refusal(run)
    assert refused.reason == "Immutable"
    assert "`data.color`" in refused.message
    assert await record.written() == []


async def test_all_errors_of_a_plan_are_reported_at_once(living_stage: Stage) -> None:
    run = await living_stage.roll_out(
        (without_image("one"), make_config_map("first")),
        with_spec(make_deployment("two"), replicas="x"),
    )

    refused = run.events_of(EventType.OBJECT_REFUSED)
    assert [event.ref.name for event in refused if event.ref] == ["one", "two"]


async def test_a_message_about_a_secret_holds_nothing_of_it(living_stage: Stage) -> None:
    numeric = make_object("v1 Secret", "login", data={"password": 8675309})

    run = await living_stage.roll_out(make_config_map("first"), numeric)

    refused = the_refusal(run)
    assert "data.password" in refused.message
    assert all("8675309" not in str(event) for event in run.events)


@pytest.mark.parametrize(
    "living_world", [pytest.param("kube", marks=pytest.mark.kube)], indirect=True
)
async def test_a_denial_by_a_policy_prevents_all_writes(
    living_stage: Stage, record: Record
) -> None:
    """A sandbox runs no policies and no webhooks."""
    for body in a_policy(living_stage.namespace):
        require_live(await living_stage.client.apply(body))
    red = make_config_map("last", color="red")
    await living_stage.client.eventually(
        lambda: living_stage.client.apply(living_stage.here(red), dry_run=True),
        lambda outcome: isinstance(outcome, Invalid),
    )
    await record.mark()

    run = await living_stage.roll_out(make_config_map("first"), red)

    refused = the_refusal(run)
    assert refused.reason == "Invalid"
    assert "no red here" in refused.message
    assert await record.written() == []


@pytest.mark.parametrize(
    "living_world", [pytest.param("kube", marks=pytest.mark.kube)], indirect=True
)
async def test_a_denial_by_a_webhook_prevents_all_writes(
    plane: ControlPlane, living_stage: Stage, record: Record
) -> None:
    red = make_config_map("last", color="red")
    async with a_denying_port(plane) as client:
        require_live(await living_stage.client.apply(a_webhook(living_stage.namespace, client)))
        await living_stage.client.eventually(
            lambda: living_stage.client.apply(living_stage.here(red), dry_run=True),
            lambda outcome: isinstance(outcome, Forbidden),
        )
        await record.mark()

        run = await living_stage.roll_out(make_config_map("first"), red)

        refused = the_refusal(run)
        assert refused.reason == "Forbidden"
        assert "no red here" in refused.message
        assert await record.written() == []


@asynccontextmanager
async def a_denying_port(plane: ControlPlane) -> AsyncIterator[JsonObject]:
    """How a server calls a webhook that takes everything but what is red."""

    async def review(request: web.Request) -> web.Response:
        requested = await request.json()
        is_red = "color" in (requested["request"]["object"].get("data") or {})
        response: JsonObject = {"uid": requested["request"]["uid"], "allowed": not is_red}
        result: JsonObject = {**response, "status": {"code": 403, "message": "no red here"}}
        return web.json_response({**requested, "request": None, "response": result})

    certificate, key = plane.authority.for_server("denying-hook", names=["127.0.0.1"])
    bundle = base64.b64encode(plane.ca.read_bytes()).decode()
    app = web.Application()
    app.router.add_post("/", review)
    async with served(app, certificate=certificate, key=key) as port:
        yield {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle}


def a_policy(namespace: str) -> tuple[JsonObject, JsonObject]:
    """ConfigMaps of a namespace may not be red."""
    group = "admissionregistration.k8s.io/v1"
    rule: Json = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["configmaps"],
    }
    claim: Json = {
        "expression": "!has(object.data) || !('color' in object.data)",
        "message": "no red here",
    }
    here: Json = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return (
        make_object(
            f"{group} ValidatingAdmissionPolicy",
            namespace,
            namespace="",
            spec={"matchConstraints": {"resourceRules": [rule]}, "validations": [claim]},
        ),
        make_object(
            f"{group} ValidatingAdmissionPolicyBinding",
            namespace,
            namespace="",
            spec={
                "policyName": namespace,
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": here},
            },
        ),
    )


def _with_property(definition: JsonObject, name: str, schema: Json) -> JsonObject:
    """The definition with one more field of `spec`."""
    (version,) = get_mappings(definition, "spec", "versions")
    root = get_mapping(version, "schema", "openAPIV3Schema")
    properties = get_mapping(root, "properties")
    fields = {**get_mapping(properties, "spec", "properties"), name: schema}
    spec: JsonObject = {**get_mapping(properties, "spec"), "properties": fields}
    newer: JsonObject = {**root, "properties": {**properties, "spec": spec}}
    return with_spec(definition, versions=[{**version, "schema": {"openAPIV3Schema": newer}}])
