"""Ignored fields: no difference on either side, and live values in their place when written."""

from __future__ import annotations

import pytest

from tests.support.live_objects import OURS, a_live, an_entry, applied, find_paths
from tests.support.objects import a_container, a_deployment, a_gate, a_pod_template, labelled
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_value
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.plans.change import DiffAction
from tidegate.model.units.ignore_differences import IgnoreDifference
from tidegate.plan.diff.compare import compare
from tidegate.plan.diff.ignore_differences import with_live_values, without_ignored

GATE = a_gate("example.org", size=1)
WEB = Ref(Kind("apps", "v1", "Deployment"), "shop", "web")


def by_path(*expressions: str) -> IgnoreDifference:
    return IgnoreDifference(kind="*", group="*", expressions=expressions)


def by_pointer(*pointers: str) -> IgnoreDifference:
    return IgnoreDifference(kind="*", group="*", pointers=pointers)


def by_manager(*managers: str) -> IgnoreDifference:
    return IgnoreDifference(kind="*", group="*", managers=managers)


def action_for(expected: JsonObject, live: JsonObject, *rules: IgnoreDifference) -> DiffAction:
    return compare(*without_ignored(expected, live, rules, find_paths), manager=OURS).action


SIZE = by_pointer("/spec/size")


def with_spec(body: JsonObject, **spec: Json) -> JsonObject:
    return {**body, "spec": {**get_mapping(body, "spec"), **spec}}


def containers(*items: JsonObject) -> JsonObject:
    return a_deployment(template=a_pod_template(*items))


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        (IgnoreDifference(kind="Deployment", group="apps"), True),
        (IgnoreDifference(kind="Deploy*", group="*"), True),
        (IgnoreDifference(kind="*", group="apps", name="web", namespace="shop"), True),
        (IgnoreDifference(kind="Deployment"), False),
        (IgnoreDifference(kind="Deployment", group="apps", name="db"), False),
        (IgnoreDifference(kind="Deployment", group="apps", namespace="other"), False),
        (IgnoreDifference(kind="deployment", group="apps"), False),
    ],
)
def test_a_rule_fits_objects_by_group_kind_name_and_namespace(
    rule: IgnoreDifference, *, fits: bool
) -> None:
    assert rule.matches(WEB) is fits


@pytest.mark.parametrize("rule", [SIZE, by_path(".spec.size"), by_path(".spec.size?")])
def test_a_field_that_is_ignored_is_no_difference(rule: IgnoreDifference) -> None:
    live = with_spec(applied(GATE), size=5)

    assert action_for(GATE, live) is DiffAction.CHANGE
    assert action_for(GATE, live, rule) is DiffAction.KEEP


def test_a_field_that_is_ignored_is_no_difference_where_only_one_side_has_it() -> None:
    without = a_gate("example.org")

    assert action_for(GATE, applied(without), SIZE) is DiffAction.KEEP
    assert action_for(without, applied(GATE), SIZE) is DiffAction.KEEP


def test_other_fields_are_still_compared() -> None:
    live = with_spec(applied(GATE), size=5, color="green")

    assert action_for(GATE, live, SIZE) is DiffAction.CHANGE


def test_a_mapping_with_only_ignored_fields_is_empty() -> None:
    expected, theirs = labelled(GATE, team="shop"), labelled(GATE, team="bank")
    rule = by_pointer("/metadata/labels/team")

    assert action_for(expected, applied(theirs), rule) is DiffAction.KEEP
    assert action_for(expected, applied(GATE), rule) is DiffAction.KEEP


def test_a_name_with_a_slash_is_escaped_in_a_pointer() -> None:
    notes: JsonObject = {"example.org/hash": "1"}
    live = a_live(GATE, annotations=notes)
    rule = by_pointer("/metadata/annotations/example.org~1hash")

    left = without_ignored(GATE, live, (rule,), find_paths)[1]

    assert get_value(left, "metadata", "annotations") == {}


@pytest.mark.parametrize(
    "rule",
    [
        by_pointer("/spec/missing"),
        by_pointer("/spec/template/spec/containers/7/image"),
        by_pointer("/spec/size/deep"),
        by_pointer("/"),
        by_path(".spec.missing[]"),
        by_path('.spec.template.spec.containers[] | select(.name == "other")'),
    ],
)
def test_a_path_without_a_match_ignores_nothing(rule: IgnoreDifference) -> None:
    live = with_spec(applied(GATE), size=5)

    assert without_ignored(GATE, live, (rule,), find_paths) == (GATE, live)


def test_a_list_item_is_ignored_at_any_position() -> None:
    app, proxy = a_container("app"), a_container("proxy")
    owned: JsonObject = {'k:{"name":"app"}': {}, 'k:{"name":"proxy"}': {}}
    fields: JsonObject = {"f:spec": {"f:template": {"f:spec": {"f:containers": owned}}}}
    live = a_live(containers(proxy, app), an_entry(OURS, fields))
    rule = by_path('.spec.template.spec.containers[] | select(.name == "proxy")')

    expected, left = without_ignored(containers(app), live, (rule,), find_paths)

    assert expected == containers(app)
    assert get_mapping(left, "spec") == get_mapping(containers(app), "spec")
    (entry,) = get_mappings(left, "metadata", "managedFields")
    assert "proxy" not in str(entry)


@pytest.mark.parametrize(
    ("manager", "rule", "action"),
    [
        ("scaler", by_manager("other"), DiffAction.CHANGE),
        ("scaler", by_manager("scaler"), DiffAction.KEEP),
        ("kubectl", by_manager("kubectl"), DiffAction.KEEP),
        ("kubectl", SIZE, DiffAction.KEEP),
    ],
)
def test_fields_of_a_trusted_manager_are_no_difference(
    manager: str, rule: IgnoreDifference, action: DiffAction
) -> None:
    scaled = an_entry(manager, {"f:spec": {"f:size": {}}}, operation="Update")
    live = with_spec(applied(a_gate("example.org"), scaled), size=5)

    assert action_for(GATE, live, rule) is action


def test_ignored_fields_keep_their_live_value() -> None:
    live = with_spec(applied(GATE), size=5, color="green", paused=True)

    written = with_live_values(GATE, live, (SIZE, by_path(".spec.paused")), find_paths)

    assert written == with_spec(GATE, size=5, paused=True)


def test_ignored_fields_without_a_live_value_are_not_written() -> None:
    live = applied(a_gate("example.org"))

    assert with_live_values(GATE, live, (SIZE,), find_paths) == a_gate("example.org")


def test_a_status_is_never_taken_over() -> None:
    live: JsonObject = {**applied(GATE), "status": {"size": 5}}

    rules = (by_pointer("/status"), by_path(".status.size"))

    assert with_live_values(GATE, live, rules, find_paths) == GATE


def test_live_items_are_kept_by_their_merge_keys() -> None:
    app, proxy = a_container("app", "app:2"), a_container("proxy", "proxy:1")
    live = applied(containers(proxy, {**a_container("app", "app:1"), "resources": {"limits": {}}}))
    rules = (
        by_path(".spec.template.spec.containers[].resources"),
        by_path('.spec.template.spec.containers[] | select(.name == "proxy")'),
    )

    written = with_live_values(containers(app), live, rules, find_paths)

    assert written == containers({**app, "resources": {"limits": {}}}, proxy)


def test_no_part_of_an_item_that_is_not_desired_is_kept() -> None:
    live = applied(containers(a_container("app"), a_container("proxy")))

    rule = by_path(".spec.template.spec.containers[].image")

    written = with_live_values(containers(a_container("app")), live, (rule,), find_paths)

    assert written == containers(a_container("app"))
