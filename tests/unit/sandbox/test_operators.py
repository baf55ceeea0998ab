"""The interpreter of rows: which operator serves an object, when and how often."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.cluster_client import require_items, require_live
from tests.support.objects import SECRET, a_namespace
from tests.support.operator_stage import AVAILABLE, OperatorStage, a_crd, an_operator
from tests.support.recorded_wording import RecordedWording
from tidegate.knowledge.reader import load_builtin_knowledge, parse_knowledge
from tidegate.model.k8s.json_fields import get_mapping, get_mappings
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.node.profile import StageRule, StageSelector
from tidegate.sandbox.operators.interpreter import apply_stage_rules
from tidegate.world.requests import Selection

WIDGET = Kind("widgets.example.com", "v1", "Widget")
SEALED = Kind("bitnami.com", "v1alpha1", "SealedSecret")
OTHER = Kind("external-secrets.io", "v1alpha1", "SecretMap")
EVENT = Kind("", "v1", "Event")
SEALER = an_operator("sealed-secrets", "registry.example/sealed-secrets-controller:1")
WIDGETS = an_operator("widgets-controller")

ROWS = b"""
rows:
- group: widgets.example.com
  kinds: [Widget]
  versions: [v1]
  source: the test
  served_by: {names: [widget-operator]}
  stages:
  - name: begun
    writes: {phase: Begun}
  - name: done
    after: 20s
    writes: {phase: Done, at: "${now}"}
    produces:
    - object: {apiVersion: v1, kind: Secret, metadata: {name: "${name}-key"}, stringData: {key: it}}
  ready_when: [{path: status.phase, values: [Done]}]
"""


def a_widget_stage(*rules: StageRule) -> OperatorStage:
    return OperatorStage(apply_stage_rules(parse_knowledge(ROWS, "rows.yaml").rows, rules))


async def test_an_unknown_kind_is_ready_a_while_after_a_controller_of_its_group_runs(
    wording: RecordedWording,
) -> None:
    stage = await OperatorStage().start(WIDGET)
    widget = await stage.make(WIDGET, "it", {})
    await stage.wait(Ms(MINUTE))
    alone = await stage.status(widget)
    ((unserved, reason),) = stage.unserved()

    await stage.operate(WIDGETS)
    await stage.wait(Ms(5 * SECOND))
    early = await stage.status(widget)
    await stage.wait(Ms(10 * SECOND))

    assert (alone, early) == ({}, {})
    assert unserved == "Widget shop/it"
    wording(reason)
    assert (await stage.condition(widget, "Ready"))["status"] == "True"
    assert stage.unserved() == []


async def test_an_unavailable_operator_serves_no_object_and_is_named(
    wording: RecordedWording,
) -> None:
    stage = await OperatorStage().start(SEALED)
    require_live(await stage.client.create(SEALER))

    sealed = await stage.make(SEALED, "login", {"encryptedData": {"user": "Ag"}})
    await stage.wait(Ms(MINUTE))

    ((unserved, reason),) = stage.unserved()
    assert await stage.status(sealed) == {}
    assert unserved == "SealedSecret shop/login"
    assert "Deployment shop/sealed-secrets" in reason
    wording(reason)


async def test_an_operator_that_is_no_longer_available_does_not_serve_new_objects() -> None:
    stage = await OperatorStage().start(SEALED)
    await stage.operate(SEALER)
    first = await stage.make(SEALED, "first", {"encryptedData": {"user": "Ag"}})
    await stage.wait(Ms(5 * SECOND))

    await stage.stamp(SEALER, {**AVAILABLE, "availableReplicas": None, "readyReplicas": None})
    second = await stage.make(SEALED, "second", {"encryptedData": {"user": "Ag"}})
    await stage.wait(Ms(MINUTE))

    assert (await stage.condition(first, "Synced"))["status"] == "True"
    assert await stage.status(second) == {}


async def test_a_kind_without_a_row_has_the_operator_of_its_group() -> None:
    stage = await OperatorStage().start(OTHER)
    await stage.operate(an_operator("eso", "registry.example/external-secrets/external-secrets:1"))

    other = await stage.make(OTHER, "it", {})
    await stage.wait(Ms(20 * SECOND))

    assert (await stage.condition(other, "Ready"))["status"] == "True"


async def test_an_operator_outside_of_the_cluster_is_always_available() -> None:
    rows = parse_knowledge(
        ROWS.replace(b"names: [widget-operator]", b"outside: true"), "rows.yaml"
    ).rows
    stage = await OperatorStage(rows).start(WIDGET)

    widget = await stage.make(WIDGET, "it", {})
    await stage.wait(Ms(MINUTE))

    assert (await stage.status(widget))["phase"] == "Done"
    assert stage.unserved() == []


async def test_stages_are_reached_in_order_after_their_durations() -> None:
    stage = await a_widget_stage().start(WIDGET)
    await stage.operate(an_operator("widget-operator"))
    widget = await stage.make(WIDGET, "it", {})

    phases = []
    for _ in range(4):
        await stage.wait(Ms(7 * SECOND))
        phases.append((await stage.status(widget)).get("phase"))

    assert phases == ["Begun", "Begun", "Done", "Done"]


async def test_the_profile_decides_how_long_a_stage_takes() -> None:
    stage = await a_widget_stage(
        StageRule(when=StageSelector(stage="done"), after=Ms(5 * MINUTE))
    ).start(WIDGET)
    await stage.operate(an_operator("widget-operator"))
    widget = await stage.make(WIDGET, "it", {})

    await stage.wait(Ms(4 * MINUTE))
    early = await stage.status(widget)
    await stage.wait(Ms(2 * MINUTE))

    assert early["phase"] == "Begun"
    assert (await stage.status(widget))["phase"] == "Done"


async def test_the_profile_decides_for_some_objects_and_its_last_rule_wins() -> None:
    slow = StageRule(when=StageSelector(kind="Widget", stage="done"), after=Ms(5 * MINUTE))
    quick = StageRule(
        when=StageSelector(kind="Wid*", namespace="shop", name="small-*"), after=Ms(0)
    )
    stage = await a_widget_stage(slow, quick).start(WIDGET)
    await stage.operate(an_operator("widget-operator"))
    refs = [await stage.make(WIDGET, name, {}) for name in ("small-one", "large-one")]

    await stage.wait(Ms(SECOND))

    assert [(await stage.status(ref))["phase"] for ref in refs] == ["Done", "Begun"]


async def test_a_rule_about_another_group_changes_nothing() -> None:
    rows = parse_knowledge(ROWS, "rows.yaml").rows
    rule = StageRule(when=StageSelector(group="other.example.com"), after=Ms(0))

    assert apply_stage_rules(rows, [rule]) == rows


async def test_the_profile_decides_for_a_kind_without_a_row_too() -> None:
    rule = StageRule(when=StageSelector(group="widgets.*", kind="Widget"), after=Ms(2 * MINUTE))
    stage = await OperatorStage(apply_stage_rules(load_builtin_knowledge().rows, [rule])).start(
        WIDGET
    )
    await stage.operate(WIDGETS)
    widget = await stage.make(WIDGET, "it", {})

    await stage.wait(Ms(MINUTE))
    early = await stage.status(widget)
    await stage.wait(Ms(2 * MINUTE))

    assert early == {}
    assert (await stage.condition(widget, "Ready"))["status"] == "True"


async def test_a_product_that_is_deleted_is_created_again() -> None:
    stage = await a_widget_stage().start(WIDGET)
    await stage.operate(an_operator("widget-operator"))
    await stage.make(WIDGET, "it", {})
    await stage.wait(Ms(MINUTE))

    await stage.client.delete(Ref(SECRET, "shop", "it-key"))
    await stage.wait(Ms(SECOND))

    assert await stage.secret("it-key") == {"key": "it"}


async def test_nothing_is_written_when_nothing_changes() -> None:
    stage = await a_widget_stage().start(WIDGET)
    await stage.operate(an_operator("widget-operator"))
    widget = await stage.make(WIDGET, "it", {})
    await stage.wait(Ms(MINUTE))
    before = await stage.body(widget)

    await stage.stamp(an_operator("widget-operator"), {"observedGeneration": 2})
    await stage.wait(Ms(10 * MINUTE))

    assert await stage.body(widget) == before


async def test_a_status_field_that_the_crd_does_not_know_is_dropped() -> None:
    stage = await a_widget_stage().start()
    crd = a_crd(WIDGET)
    versions = get_mappings(crd, "spec", "versions")
    known: Json = {"type": "object", "properties": {"phase": {"type": "string"}}}
    narrow: Json = {"type": "object", "properties": {"spec": {"type": "object"}, "status": known}}
    crd["spec"] = {
        **get_mapping(crd, "spec"),
        "versions": [{**versions[0], "schema": {"openAPIV3Schema": narrow}}],
    }
    await stage.add(crd)
    await stage.wait(Ms(SECOND))
    await stage.operate(an_operator("widget-operator"))

    widget = await stage.make(WIDGET, "it", {})
    await stage.wait(Ms(MINUTE))
    before = await stage.body(widget)
    await stage.wait(Ms(MINUTE))

    assert get_mapping(before, "status") == {"phase": "Done"}
    assert await stage.body(widget) == before


async def test_a_status_that_a_server_refuses_has_an_event() -> None:
    stage = await a_widget_stage().start()
    crd = a_crd(WIDGET)
    versions = get_mappings(crd, "spec", "versions")
    known: Json = {"type": "object", "properties": {"phase": {"type": "integer"}}}
    narrow: Json = {"type": "object", "properties": {"spec": {"type": "object"}, "status": known}}
    crd["spec"] = {
        **get_mapping(crd, "spec"),
        "versions": [{**versions[0], "schema": {"openAPIV3Schema": narrow}}],
    }
    await stage.add(crd)
    await stage.wait(Ms(SECOND))
    await stage.operate(an_operator("widget-operator"))

    await stage.make(WIDGET, "it", {})
    await stage.wait(Ms(MINUTE))
    events = require_items(await stage.client.page(Selection(EVENT, "shop")))

    assert [msgspec.json.decode(event.body)["reason"] for event in events] == ["StatusRefused"]


async def test_a_kind_without_a_status_subresource_gets_a_status() -> None:
    stage = await a_widget_stage().start()
    crd = a_crd(WIDGET)
    version = {**get_mappings(crd, "spec", "versions")[0], "subresources": {}}
    crd["spec"] = {**get_mapping(crd, "spec"), "versions": [version]}
    await stage.add(crd)
    await stage.wait(Ms(SECOND))
    await stage.operate(an_operator("widget-operator"))

    widget = await stage.make(WIDGET, "it", {})
    await stage.wait(Ms(MINUTE))

    assert (await stage.status(widget))["phase"] == "Done"


async def test_the_same_seed_gives_the_same_bytes() -> None:
    async def run() -> list[bytes]:
        stage = await OperatorStage(seed=7).start(SEALED, WIDGET)
        await stage.operate(SEALER)
        await stage.operate(WIDGETS)
        for name in ("a", "b", "c"):
            await stage.make(SEALED, name, {"encryptedData": {"y": "Ag", "x": "Ag"}})
            await stage.make(WIDGET, name, {})
        await stage.wait(Ms(MINUTE))
        kinds = (SECRET, SEALED, WIDGET)
        pages = [await stage.client.page(Selection(kind, "shop")) for kind in kinds]
        return [live.body for page in pages for live in require_items(page)]

    assert await run() == await run()


async def test_a_deleted_namespace_deletes_everything_in_it() -> None:
    stage = await OperatorStage().start(SEALED)
    await stage.operate(SEALER)
    await stage.make(SEALED, "login", {"encryptedData": {"user": "Ag"}})
    await stage.wait(Ms(5 * SECOND))

    await stage.client.delete(await stage.client.ref(a_namespace("shop")))
    await stage.wait(Ms(MINUTE))

    assert not await stage.exists(SEALED, "login")
    assert not await stage.exists(SECRET, "login")


USER_ROW = """
rows:
- group: {group}
  kinds: [{kind}]
  versions: [{version}]
  source: our own operator
  served_by: {{names: [ours]}}
  stages:
  - {{name: done, after: 2s, writes: {{phase: Done}}}}
"""


@pytest.mark.parametrize("kind", [SEALED, WIDGET], ids=["known kind", "new kind"])
async def test_a_row_of_a_user_overrides_any_other(kind: Kind) -> None:
    text = USER_ROW.format(group=kind.group, kind=kind.name, version=kind.version)
    knowledge = parse_knowledge(text.encode(), "rows.yaml")
    stage = await OperatorStage(load_builtin_knowledge().merged_with(knowledge).rows).start(kind)
    await stage.operate(an_operator("ours"))

    created = await stage.make(kind, "it", {})
    await stage.wait(Ms(MINUTE))

    assert await stage.status(created) == {"phase": "Done"}
