"""What ApplicationSets generate, and the findings of invalid ones."""

from __future__ import annotations

import pytest

from tests.support.appset_runner import Runner, a_set
from tests.support.recorded_wording import RecordedWording
from tidegate.dialect.argo.appset.applications import GenerationResult, strategic_merge
from tidegate.dialect.argo.appset.policies import (
    OVERRIDE_SETTING,
    POLICY_SETTING,
    ApplicationSetPolicy,
    effective_policy,
    with_preserved_fields,
)
from tidegate.dialect.argo.appset.reader import (
    application_set_unit,
    application_units,
    read_application_set,
)
from tidegate.dialect.argo.appset.rolling_sync import without_auto_sync
from tidegate.dialect.declared import ApplicationSet
from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.model.k8s.objects import Json, JsonObject

WEB: Json = {"list": {"elements": [{"name": "web"}]}}


async def generated(item: ApplicationSet) -> GenerationResult:
    return await Runner().generated(item)


def codes(result: GenerationResult) -> list[str]:
    return [f"{finding.severity} {finding.code}" for finding in result.findings]


async def test_an_application_gets_a_finalizer_unless_its_resources_are_preserved() -> None:
    """Acceptance case 74."""
    metadata: JsonObject = {"name": "{{name}}", "finalizers": ["background"]}
    plain = await generated(a_set(WEB))
    stays = await generated(a_set(WEB, syncPolicy={"preserveResourcesOnDeletion": True}))
    unit_resource = await generated(a_set(WEB, template={"metadata": metadata}))

    assert [application.body["metadata"] for application in plain.applications] == [
        {
            "name": "web",
            "namespace": "argocd",
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
        }
    ]
    assert stays.applications[0].body["metadata"] == {"name": "web", "namespace": "argocd"}
    assert unit_resource.applications[0].body["metadata"] == {
        "name": "web",
        "namespace": "argocd",
        "finalizers": ["background"],
    }


async def test_a_patch_changes_everything_but_the_project() -> None:
    """Acceptance case 74."""
    patch = "metadata: {name: '{{name}}-2', namespace: else}\nspec: {project: root, a: 1}\n"

    result = await generated(a_set(WEB, templatePatch=patch))

    (application,) = result.applications
    assert (application.name, application.body["spec"]) == ("web-2", {"project": "default", "a": 1})
    assert application.body["metadata"] == {
        "name": "web-2",
        "namespace": "argocd",
        "finalizers": ["resources-finalizer.argocd.argoproj.io"],
    }


def test_a_patch_removes_what_is_null_and_joins_finalizers() -> None:
    old: Json = {"a": {"b": 1, "c": 2}, "finalizers": ["x"], "list": [1]}
    new: Json = {"a": {"b": None}, "finalizers": ["y"], "list": [2]}

    assert strategic_merge(old, new) == {"a": {"c": 2}, "finalizers": ["y", "x"], "list": [2]}


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ([{"name": "a"}, {"name": "a"}], ["error appset.duplicate"]),
        ([{"name": "No Name"}], ["error appset.name"]),
        ([{"name": ""}], ["error appset.name"]),
        ([{"name": 3}], ["error appset.element"]),
        ([], ["warning appset.no-results", "note appset.empty"]),
    ],
)
async def test_an_error_of_a_set_is_reported(elements: list[Json], expected: list[str]) -> None:
    result = await generated(a_set({"list": {"elements": elements}}))

    assert codes(result) == expected
    assert result.applications == ()
    assert {
        (finding.location.name, finding.location.line)
        for finding in result.findings
        if finding.location
    } == {("sets.yaml", 3)}


async def test_a_generator_without_results_next_to_others_is_a_note() -> None:
    result = await generated(a_set(WEB, {"list": {"elements": []}}))

    assert codes(result) == ["note appset.no-results"]
    assert len(result.applications) == 1


PRODUCTION: JsonObject = {"clusters": {"selector": {"matchLabels": {"stage": "production"}}}}


@pytest.mark.parametrize(
    "generator",
    [
        PRODUCTION,
        {"matrix": {"generators": [PRODUCTION, {"list": {"elements": [{"a": "b"}]}}]}},
        {"merge": {"mergeKeys": ["name"], "generators": [PRODUCTION, PRODUCTION]}},
    ],
)
async def test_clusters_that_are_not_in_the_repository_are_unknown(generator: JsonObject) -> None:
    result = await generated(a_set(generator))

    assert "warning appset.unknown-clusters" in codes(result)
    assert "appset.no-results" not in {finding.code for finding in result.findings}


async def test_an_invalid_appset_generates_nothing() -> None:
    result = await generated(a_set(WEB, {"plugin": {}}))

    assert result.applications == ()
    (finding,) = result.findings
    assert finding.code == "appset.unknown"
    assert "`plugin`" in finding.message


async def test_units_name_their_set_and_an_error_of_many_is_reported_once(
    wording: RecordedWording,
) -> None:
    item = a_set({"list": {"elements": [{"name": "web"}, {"name": "cart"}]}})

    result = application_units(item, await generated(item), {})

    assert [str(unit.id) for unit in result.units] == [
        "Application/argocd/web",
        "Application/argocd/cart",
    ]
    assert {unit.generated_by for unit in result.units} == {"ApplicationSet/argocd/apps"}
    wording(str(result.units[1].location))
    assert [finding.code for finding in result.findings].count("argo.source") == 1


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        (
            {"syncPolicy": {"applicationsSync": "creat"}},
            ["error appset.policy"],
        ),
        (
            {"syncPolicy": {"applicationsSync": "create-only"}},
            ["note appset.policy", "note appset.policy"],
        ),
        ({"preservedFields": {"labels": ["a"]}}, []),
        (
            {"ignoreApplicationDifferences": [{"jsonPointers": ["spec"]}]},
            ["warning argo.ignored"],
        ),
    ],
)
def test_settings_that_prevent_updates_of_applications_are_reported(
    spec: JsonObject, expected: list[str]
) -> None:
    result = application_units(a_set(WEB, **spec), GenerationResult(), {})

    assert [f"{finding.severity} {finding.code}" for finding in result.findings] == expected


def test_a_set_without_generators_is_reported() -> None:
    document = Document({"metadata": {"name": "apps"}, "spec": {}}, Location("sets.yaml", 3))

    application_set = read_application_set(document, "argocd")

    assert [f"{finding.severity} {finding.code}" for finding in application_set.findings] == [
        "error appset.generator"
    ]
    assert application_set.application_sets[0].tracking_id == "ApplicationSet/argocd/apps"


@pytest.mark.parametrize(
    ("policy", "settings", "updates", "deletes"),
    [
        ("", {}, True, True),
        ("sync", {}, True, True),
        ("create-only", {}, False, False),
        ("create-update", {}, True, False),
        ("create-delete", {}, False, True),
        ("create-only", {POLICY_SETTING: "sync"}, True, True),
        ("", {POLICY_SETTING: "create-only"}, False, False),
        ("create-delete", {POLICY_SETTING: "create-only", OVERRIDE_SETTING: "true"}, False, True),
        ("create-only", {OVERRIDE_SETTING: "false"}, True, True),
    ],
)
def test_the_controller_can_override_the_policy_of_an_appset(
    policy: str, settings: dict[str, str], *, updates: bool, deletes: bool
) -> None:
    item = a_set(WEB, syncPolicy={"applicationsSync": policy} if policy else {})

    unit = application_set_unit(item, effective_policy(item, settings), is_complete=True)

    assert effective_policy(item, settings) == ApplicationSetPolicy(updates, deletes)
    assert unit.policy.prune is deletes
    assert not application_set_unit(item, ApplicationSetPolicy(), is_complete=False).policy.prune


def test_preserved_fields_are_as_they_live_where_they_are_there() -> None:
    item = a_set(WEB, preservedFields={"annotations": ["a/b"], "labels": ["c", "d"]})
    generated: JsonObject = {
        "metadata": {"annotations": {"a/b": "new", "x": "1"}, "labels": {"d": "2"}}
    }
    live: JsonObject = {"metadata": {"annotations": {"a/b": "old", "y": "3"}, "labels": {"c": "4"}}}

    assert with_preserved_fields(generated, live, item) == {
        "metadata": {"annotations": {"a/b": "old", "x": "1"}, "labels": {"c": "4", "d": "2"}}
    }


def test_applications_of_a_rolling_sync_have_no_automated_sync() -> None:
    body: JsonObject = {
        "spec": {"syncPolicy": {"automated": {"prune": True}, "retry": {"limit": 2}}}
    }

    assert without_auto_sync(body) == {
        "spec": {
            "syncPolicy": {"automated": {"prune": True, "enabled": False}, "retry": {"limit": 2}}
        }
    }
    assert without_auto_sync({"spec": {}}) == {"spec": {}}
