"""Requests before the first write: only those that the local rules cannot decide."""

from __future__ import annotations

import pytest

from tests.support.builders import (
    annotate,
    make_config_map,
    make_deployment,
    make_object,
    make_plan_from,
)
from tests.support.objects import a_definition
from tests.support.quick_workloads import quick_sandbox
from tests.support.rollout_runs import make_settings, roll_out
from tidegate.engine.cluster.preflight.admission import POLICIES, WEBHOOKS
from tidegate.engine.context import RolloutSettings
from tidegate.model.k8s.json_fields import get_mapping, get_mappings
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.model.times import Ms
from tidegate.model.units.policy import PreflightMode
from tidegate.sandbox.faults import CallFault, Fault, FaultSelector, Rejection
from tidegate.sandbox.world import Sandbox
from tidegate.world.messages import Forbidden, Invalid, Message
from tidegate.world.requests import Call, Get, List, RequestId, Write

ADMISSION = "admissionregistration.k8s.io"
MUTATING = "MutatingWebhookConfiguration"
GROUP = "example.org"
DENIED = Forbidden('admission webhook "gate.example.org" denied the request: not today')


class RecordingSandbox:
    """A sandbox, and everything that was asked of it."""

    def __init__(self, *faults: Fault) -> None:
        self._world: Sandbox = quick_sandbox(faults=faults)
        self.calls: list[Call] = []
        self.give(make_object("v1 Namespace", "default", namespace=""))

    def give(self, *bodies: JsonObject) -> None:
        self._world.preload([*bodies])

    def now(self) -> Ms:
        return self._world.now()

    def submit(self, call: Call) -> None:
        self.calls.append(call)
        self._world.submit(call)

    def cancel(self, request_id: RequestId) -> bool:
        return self._world.cancel(request_id)

    async def wait(self, until: Ms | None) -> tuple[Message, ...]:
        return await self._world.wait(until)

    def wake(self) -> None:
        self._world.wake()

    @property
    def writes(self) -> list[Write]:
        requests = (call.request for call in self.calls)
        return [request for request in requests if isinstance(request, Write)]

    @property
    def dry_runs(self) -> list[str]:
        return [write.ref.name for write in self.writes if write.dry_run]

    @property
    def listed_guards(self) -> list[str]:
        """The kinds of webhooks and policies that were listed."""
        requests = (call.request for call in self.calls)
        kinds = (request.selection.kind for request in requests if isinstance(request, List))
        return [kind.name for kind in kinds if kind.group == ADMISSION]

    @property
    def writes_for_good(self) -> list[str]:
        return [write.ref.name for write in self.writes if not write.dry_run]


def asking(depth: PreflightMode, number: int = 0) -> RolloutSettings:
    known = make_settings(number)
    return RolloutSettings(holder=known.holder, preflight_mode=depth)


def a_large_plan() -> Plan:
    def wave(number: int) -> tuple[JsonObject, ...]:
        names = [f"w{number}-{place}" for place in range(10)]
        services = (
            make_object(
                "v1 Service", name, spec={"ports": [{"port": 80}], "selector": {"app": name}}
            )
            for name in names
        )
        settings = (make_config_map(f"{name}-{side}") for name in names for side in "ab")
        return (*map(make_deployment, names), *services, *settings)

    return make_plan_from(*(wave(number) for number in range(5)))


def a_guarded_plan() -> Plan:
    return make_plan_from(
        make_config_map("first"), (make_deployment("web"), make_config_map("last"))
    )


def a_hook(**rule: Json) -> JsonObject:
    """Asks about every ConfigMap, and agrees."""
    known: JsonObject = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["configmaps"],
    }
    hook: JsonObject = {
        "name": "gate.example.org",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{**known, **rule}],
    }
    return make_object(
        f"{ADMISSION}/v1 ValidatingWebhookConfiguration", "hook", namespace="", webhooks=[hook]
    )


def a_gate(**spec: Json) -> JsonObject:
    return make_object(f"{GROUP}/v1 Gate", "north", spec={"color": "red", **spec})


async def test_a_valid_plan_is_rolled_out_without_a_single_dry_run() -> None:
    world, plan = RecordingSandbox(), a_large_plan()

    run = await roll_out(world, plan)

    assert run.result == "passed"
    assert len(run.events_of(EventType.OBJECT_WRITTEN)) == 200
    assert world.dry_runs == []


@pytest.mark.parametrize("depth", PreflightMode)
async def test_a_second_run_sends_no_dry_run_and_no_write(depth: PreflightMode) -> None:
    world, plan = RecordingSandbox(), a_large_plan()
    await roll_out(world, plan, asking(depth))
    world.calls.clear()

    run = await roll_out(world, plan, asking(depth, 1))

    assert run.result == "passed"
    assert world.writes == []
    assert world.listed_guards == []


async def test_preflight_server_sends_a_dry_run_of_every_object() -> None:
    world, plan = RecordingSandbox(), a_large_plan()

    run = await roll_out(world, plan, asking(PreflightMode.SERVER))

    assert run.result == "passed"
    assert len(world.dry_runs) == 200


async def test_objects_that_a_webhook_matches_get_a_dry_run() -> None:
    world = RecordingSandbox()
    world.give(a_hook())

    run = await roll_out(world, a_guarded_plan())

    assert run.result == "passed"
    assert world.dry_runs == ["first", "last"]


HOOKS_OF_OTHERS: dict[str, JsonObject] = {
    "of other operations": {"operations": ["DELETE"]},
    "of other kinds": {"resources": ["secrets"]},
    "of a part of the object": {"resources": ["configmaps/status"]},
}


@pytest.mark.parametrize("name", HOOKS_OF_OTHERS)
async def test_a_webhook_that_matches_nothing_causes_no_dry_run(name: str) -> None:
    world = RecordingSandbox()
    world.give(a_hook(**HOOKS_OF_OTHERS[name]))

    await roll_out(world, a_guarded_plan())

    assert world.dry_runs == []


async def test_a_denial_by_a_webhook_is_reported_before_the_first_write() -> None:
    world = RecordingSandbox(
        CallFault(Rejection(DENIED), FaultSelector(kind="ConfigMap", name="last"))
    )
    world.give(a_hook())

    run = await roll_out(world, a_guarded_plan())

    (refused,) = run.events_of(EventType.OBJECT_REFUSED)
    assert (run.result, refused.reason) == ("invalid", "Forbidden")
    assert "not today" in refused.message
    assert world.writes_for_good == []


async def test_a_webhook_of_the_plan_is_called_in_the_next_step() -> None:
    world = RecordingSandbox()

    run = await roll_out(world, make_plan_from(a_hook(), make_config_map("last")))

    assert run.result == "passed"
    made = next(place for place, write in enumerate(world.writes) if write.ref.name == "hook")
    tried = [place for place, write in enumerate(world.writes) if write.dry_run]
    assert tried
    assert all(place > made for place in tried)


async def test_without_permission_to_list_webhooks_every_object_gets_a_dry_run() -> None:
    hidden = FaultSelector(verbs=("list",), group=ADMISSION)
    world = RecordingSandbox(CallFault(Rejection(Forbidden("you may not")), hidden))

    run = await roll_out(world, a_guarded_plan())

    assert run.result == "passed"
    assert sorted(world.dry_runs) == ["first", "last", "web"]


async def test_objects_with_unsupported_schema_rules_get_a_dry_run() -> None:
    world = RecordingSandbox()
    world.give(a_strict_definition())

    run = await roll_out(world, make_plan_from(a_gate()))

    assert run.events_of(EventType.OBJECT_REFUSED) == []
    assert world.dry_runs == ["north"]


async def test_a_plain_schema_is_read_once_and_nothing_is_tried() -> None:
    world = RecordingSandbox()
    world.give(a_definition(GROUP))
    spec: Json = {"color": "red"}
    gates = (make_object(f"{GROUP}/v1 Gate", name, spec=spec) for name in ("north", "south"))

    await roll_out(world, make_plan_from(*gates))

    read = [call.request.ref.name for call in world.calls if isinstance(call.request, Get)]
    assert read.count(f"gates.{GROUP}") == 1
    assert world.dry_runs == []


async def test_webhooks_are_listed_once() -> None:
    world = RecordingSandbox()

    await roll_out(world, a_large_plan())

    assert sorted(world.listed_guards) == sorted(
        (*WEBHOOKS, *POLICIES)
    )  # no binding enforces a policy


def a_strict_definition() -> JsonObject:
    """Whether an object fits it, only a server can tell."""
    return _with_rule(a_definition(GROUP), {"rule": "self.size > 0"})


async def test_objects_of_new_kinds_get_a_dry_run_while_a_gate_waits() -> None:
    world = RecordingSandbox(
        CallFault(Rejection(Invalid("size: not so small")), FaultSelector(kind="Gate"))
    )
    slow = annotate(make_deployment("operator"), after="45000")

    run = await roll_out(
        world, make_plan_from(a_strict_definition(), slow, a_gate(), make_config_map("later"))
    )

    messages = [(event.type, event.step) for event in run.events]
    failed = messages.index((EventType.STEP_FAILED, "shop/sync/2"))
    assert failed < messages.index((EventType.STEP_PASSED, "shop/sync/1"))
    assert run.states["shop/sync/1"] is StepState.PASSED
    assert run.states["shop/sync/3"] is StepState.SKIPPED
    assert "not so small" in run.events_of(EventType.STEP_FAILED)[0].message


async def test_objects_of_a_kind_in_its_own_step_get_a_dry_run() -> None:
    world = RecordingSandbox(
        CallFault(Rejection(Invalid("size: not so small")), FaultSelector(kind="Gate"))
    )
    slow = annotate(make_deployment("operator"), after="45000")

    run = await roll_out(world, make_plan_from((a_strict_definition(), slow), a_gate()))

    messages = [(event.type, event.step) for event in run.events]
    failed = messages.index((EventType.STEP_FAILED, "shop/sync/1"))
    assert failed < messages.index((EventType.STEP_PASSED, "shop/sync/0"))


async def test_a_successful_dry_run_is_not_repeated() -> None:
    world = RecordingSandbox()
    slow = annotate(make_deployment("operator"), after="45000")

    await roll_out(world, make_plan_from(a_strict_definition(), slow, a_gate()))

    assert world.dry_runs == ["north"]


async def test_a_denial_of_the_plans_own_webhook_is_foreseen() -> None:
    world = RecordingSandbox(
        CallFault(Rejection(DENIED), FaultSelector(kind="ConfigMap", name="last"))
    )
    slow = annotate(make_deployment("operator"), after="45000")

    run = await roll_out(world, make_plan_from(a_hook(), slow, make_config_map("last")))

    messages = [(event.type, event.step) for event in run.events]
    failed = messages.index((EventType.STEP_FAILED, "shop/sync/2"))
    assert failed < messages.index((EventType.STEP_PASSED, "shop/sync/1"))
    assert "last" not in world.writes_for_good


async def test_a_field_that_a_webhook_may_set_is_not_missing_yet() -> None:
    world = RecordingSandbox()
    mending = {**a_hook(apiGroups=[GROUP], resources=["gates"]), "kind": MUTATING}
    colourless = make_object(f"{GROUP}/v1 Gate", "north", spec={})

    run = await roll_out(world, make_plan_from(a_definition(GROUP), mending, colourless))

    assert run.states["shop/sync/1"] is StepState.PASSED
    assert run.states["shop/sync/2"] is StepState.FAILED


async def test_a_pod_may_wait_for_its_account() -> None:
    """Its account comes with the plan, and before that a server refuses the pod."""
    world = RecordingSandbox()
    pod = make_object(
        "v1 Pod",
        "web",
        spec={"serviceAccountName": "own", "containers": [{"name": "app", "image": "app:1"}]},
    )

    run = await roll_out(
        world,
        make_plan_from(make_object("v1 ServiceAccount", "own"), pod),
        asking(PreflightMode.SERVER),
    )

    assert run.events_of(EventType.OBJECT_REFUSED) == []
    assert run.states["shop/sync/1"] is not StepState.SKIPPED


def _with_rule(definition: JsonObject, rule: Json) -> JsonObject:
    (version,) = get_mappings(definition, "spec", "versions")
    root = get_mapping(version, "schema", "openAPIV3Schema")
    fields = get_mapping(root, "properties")
    spec: JsonObject = {**get_mapping(fields, "spec"), "x-kubernetes-validations": [rule]}
    schema: JsonObject = {**root, "properties": {**fields, "spec": spec}}
    newer: JsonObject = {**version, "schema": {"openAPIV3Schema": schema}}
    return {**definition, "spec": {**get_mapping(definition, "spec"), "versions": [newer]}}
