"""Options of objects and units: what is made, left out, taken over, or refused before the start."""

from __future__ import annotations

import pytest

from tests.conformance.argocd.objects import (
    a_hook,
    a_pod,
    a_server_pod,
    a_volume,
    annotated,
    in_wave,
    operations,
    running,
    succeeded,
    with_options,
)
from tests.conformance.argocd.stage import ArgoStage, case, named
from tests.support.builders import make_config_map, make_deployment, make_object
from tests.support.objects import a_definition
from tidegate.errors import DialectError
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.rollouts.event import EventType
from tidegate.world.messages import NotFound, NotServed, Outcome

WAITS = "SkipDryRunOnMissingResource=true"
CHANGED_ONLY = ("ApplyOutOfSyncOnly=true",)
MAKES_NAMESPACE = ("CreateNamespace=true",)


def a_gate(group: str, **spec: Json) -> JsonObject:
    return make_object(f"{group}/v1 Gate", "north", spec={"color": "red", **spec})


async def until_served(stage: ArgoStage, group: str) -> None:
    gate = stage.here(a_gate(group))
    await stage.client.eventually(lambda: stage.client.create(gate, dry_run=True), is_served)


def is_served(outcome: Outcome) -> bool:
    return not isinstance(outcome, NotFound | NotServed)


def move_away(stage: ArgoStage) -> None:
    """To a namespace that is not there."""
    stage.namespace = stage.client.namespace = f"{stage.namespace}-new"


@case(40)
async def test_an_object_without_a_name_is_rejected_unless_it_is_a_hook(stage: ArgoStage) -> None:
    nameless = make_config_map()
    nameless = {**nameless, "metadata": {"generateName": "settings-"}}

    with pytest.raises(DialectError) as raised:
        await stage.sync(nameless)

    assert (raised.value.code, await stage.changes()) == ("dialect.nameless", [])


@case(41)
async def test_an_object_with_hook_skip_is_never_synced(stage: ArgoStage) -> None:
    for color in ("red", "green"):
        run = await stage.sync(
            a_hook("Skip", make_config_map("skipped", color=color)), make_config_map()
        )
        assert run.result == "passed"

    assert await stage.changes() == ["create configmaps/settings"]


@case(42)
async def test_a_sync_of_chosen_objects_runs_no_hook_and_prunes_none(stage: ArgoStage) -> None:
    hook = a_hook("PreSync", a_pod("hook"))
    syncing = await stage.begin_sync(hook, make_config_map())
    await stage.becomes(hook, succeeded())
    await syncing.ends()
    await stage.record.mark()
    uid = (await stage.live(hook)).uid

    run = await stage.sync(hook, make_config_map(color="red"), resources=(":ConfigMap:settings",))

    assert run.result == "passed"
    assert await stage.changes() == ["change configmaps/settings"]
    assert (await stage.live(hook)).uid == uid


@case(46)
async def test_an_unknown_kind_is_rejected_before_the_first_write(
    each_stage: ArgoStage,
) -> None:
    stage = each_stage

    run = await stage.sync(make_config_map(), in_wave(1, a_gate(stage.group)))

    assert run.result == "invalid"
    assert [item.reason for item in run.events_of(EventType.OBJECT_REFUSED)] == ["NotServed"]
    assert await stage.changes() == []


@case(46)
async def test_a_kind_with_its_crd_in_the_sync_is_accepted(each_stage: ArgoStage) -> None:
    stage, group = each_stage, each_stage.group

    run = await stage.sync(a_gate(group), a_definition(group))

    assert run.result == "passed"
    assert await stage.changes("create") == [
        f"create customresourcedefinitions/gates.{group}",
        "create gates/north",
    ]


@case(46)
@pytest.mark.parametrize("level", ["object", "unit"])
async def test_skip_dry_run_on_missing_resource_waits_for_the_kind(
    each_stage: ArgoStage, level: str
) -> None:
    """Another client creates the CRD while a hook runs."""
    stage, group = each_stage, each_stage.group
    hook = a_hook("PreSync", a_pod("hook"))
    gate = with_options(WAITS, a_gate(group)) if level == "object" else a_gate(group)

    syncing = await stage.begin_sync(hook, gate, options=(WAITS,) if level == "unit" else ())
    await stage.client.create(a_definition(group))
    await until_served(stage, group)
    await stage.becomes(hook, succeeded())
    run = await syncing.ends()

    assert run.result == "passed"
    assert await stage.exists(gate)


@case(46)
async def test_skip_dry_run_on_missing_resource_does_not_skip_checks_of_a_served_kind(
    each_stage: ArgoStage,
) -> None:
    stage, group = each_stage, each_stage.group
    await stage.sync(a_definition(group))
    await until_served(stage, group)
    await stage.record.mark()

    run = await stage.sync(make_config_map(), with_options(WAITS, a_gate(group, size="big")))

    assert run.result == "invalid"
    assert await stage.changes() == []


@case(47)
async def test_create_namespace_creates_a_missing_namespace_first(stage: ArgoStage) -> None:
    move_away(stage)

    run = await stage.sync(make_config_map(), options=MAKES_NAMESPACE)

    assert run.result == "passed"
    made = [f"create namespaces/{stage.namespace}", "create configmaps/settings"]
    assert await stage.changes() == made


@case(47)
async def test_no_namespace_is_created_for_a_rejected_sync(stage: ArgoStage) -> None:
    move_away(stage)
    wrong: JsonObject = {**make_deployment(), "spec": {"replicas": "three"}}

    run = await stage.sync(wrong, options=MAKES_NAMESPACE)

    assert run.result == "invalid"
    assert await stage.changes() == []


@case(48)
async def test_a_namespace_among_the_manifests_is_not_created_twice(stage: ArgoStage) -> None:
    move_away(stage)
    unit_resource = make_object("v1 Namespace", stage.namespace, namespace="")
    unit_resource = annotated(unit_resource, "example.org/team", "shop")

    run = await stage.sync(unit_resource, make_config_map(), options=MAKES_NAMESPACE)

    assert run.result == "passed"
    made = [f"create namespaces/{stage.namespace}", "create configmaps/settings"]
    assert await stage.changes() == made
    assert get_mapping(await stage.body(unit_resource), "metadata", "annotations")[
        "example.org/team"
    ]


@case(48)
async def test_an_existing_namespace_is_not_part_of_the_sync(stage: ArgoStage) -> None:
    run = await stage.sync(make_config_map(), options=MAKES_NAMESPACE)

    assert run.result == "passed"
    assert named(run, EventType.OBJECT_WRITTEN, EventType.OBJECT_UNCHANGED) == ["settings"]
    assert await stage.changes() == ["create configmaps/settings"]


@case(49)
async def test_apply_out_of_sync_only_syncs_changed_and_pruned_objects(stage: ArgoStage) -> None:
    same, old, new = a_server_pod("same"), a_server_pod("old"), a_server_pod("new")
    await stage.sync(same, old)
    await stage.record.mark()

    run = await stage.sync(same, new, options=CHANGED_ONLY, prunes=True)

    assert run.result == "passed"
    result = named(
        run, EventType.OBJECT_WRITTEN, EventType.OBJECT_UNCHANGED, EventType.OBJECT_PRUNED
    )
    assert sorted(result) == ["new", "old"]
    assert await stage.changes("create", "delete") == ["delete pods/old", "create pods/new"]


@case(49)
@pytest.mark.parametrize("options", [CHANGED_ONLY, ()])
async def test_apply_out_of_sync_only_does_not_await_unchanged_waves(
    stage: ArgoStage, options: tuple[str, ...]
) -> None:
    first, second = a_server_pod("first"), in_wave(1, make_config_map("second"))
    syncing = await stage.begin_sync(first, second)
    await stage.becomes(first, running())
    await syncing.ends()
    await stage.says(first, {"phase": "Pending", "conditions": [], "containerStatuses": []})

    syncing = await stage.begin_sync(first, second, in_wave(2, make_config_map()), options=options)
    if not options:
        await syncing.waits("Pending")
        await stage.says(first, running())
    run = await syncing.ends()

    assert run.result == "passed"
    assert bool(run.events_of(EventType.GATE_WAITING)) is not bool(options)
    assert ("first" in named(run, EventType.OBJECT_UNCHANGED)) is not bool(options)
    assert named(run, EventType.OBJECT_WRITTEN) == ["settings"]


@case(49)
async def test_an_unchanged_cluster_scoped_object_with_a_namespace_is_not_synced(
    stage: ArgoStage,
) -> None:
    volume = a_volume(stage.namespace)
    volume = {**volume, "metadata": {**get_mapping(volume, "metadata"), "namespace": "anywhere"}}
    await stage.sync(volume)
    await stage.record.mark()

    run = await stage.sync(volume, make_config_map(), options=CHANGED_ONLY)

    assert run.result == "passed"
    assert named(run, EventType.OBJECT_WRITTEN, EventType.OBJECT_UNCHANGED) == ["settings"]
    assert await stage.changes() == ["create configmaps/settings"]


@case(49)
async def test_hooks_run_in_a_wave_without_changes(stage: ArgoStage) -> None:
    hook = a_hook("PreSync", a_pod("hook"), deletes="BeforeHookCreation")
    syncing = await stage.begin_sync(hook, make_config_map())
    await stage.becomes(hook, succeeded())
    await syncing.ends()
    before = (await stage.live(hook)).uid
    await stage.record.mark()

    syncing = await stage.begin_sync(hook, make_config_map(), options=CHANGED_ONLY)
    ref = await stage.ref(hook)
    await stage.client.settled(ref, lambda live: live is not None and live.uid != before)
    await stage.says(hook, succeeded())
    run = await syncing.ends()

    assert run.result == "passed"
    assert await stage.changes("create", "delete") == ["delete pods/hook", "create pods/hook"]
    assert named(run, EventType.OBJECT_UNCHANGED) == []


@pytest.mark.parametrize(
    ("options", "left"),
    [((), {"color": "red"}), (("ClientSideApplyMigration=false",), {"color": "red", "size": "1"})],
)
async def test_fields_of_kubectl_apply_are_removed_unless_migration_is_disabled(
    each_stage: ArgoStage, options: tuple[str, ...], left: JsonObject
) -> None:
    stage, theirs = each_stage, make_config_map(color="green", size="1")
    await stage.client.create(stage.here(theirs), manager="kubectl-client-side-apply")

    first = await stage.sync(make_config_map(color="red"), options=options)
    await stage.record.mark()
    again = await stage.sync(make_config_map(color="red"), options=options)

    assert (first.result, again.result) == ("passed", "passed")
    assert (await stage.body(theirs))["data"] == left
    assert await stage.changes() == []


@case(51)
@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize("level", ["object", "unit"])
async def test_objects_are_applied_server_side_whatever_the_option_says(
    each_stage: ArgoStage, level: str, value: str
) -> None:
    stage, option = each_stage, f"ServerSideApply={value}"
    settings = make_config_map(color="red")
    expected = with_options(option, settings) if level == "object" else settings

    run = await stage.sync(expected, options=(option,) if level == "unit" else ())

    assert run.result == "passed"
    assert operations(await stage.body(settings)) == {"Apply"}
