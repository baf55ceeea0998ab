"""What sets generate, and what is told of those that are at fault."""

from __future__ import annotations

import pytest

from tests.unit.dialect.running_sets import Body, Runner, a_set
from tidegate.dialect.argo.sets.applications import Generated, patched
from tidegate.dialect.argo.sets.reading import read_set, units_of
from tidegate.dialect.declared import DeclaredSet
from tidegate.documents import Document
from tidegate.errors import Place
from tidegate.model.objects import Json

WEB: Json = {"list": {"elements": [{"name": "web"}]}}


async def generated(one: DeclaredSet) -> Generated:
    return await Runner().generated(one)


def codes(found: Generated) -> list[str]:
    return [f"{one.severity} {one.code}" for one in found.findings]


async def test_an_application_gets_a_finalizer_unless_what_it_brings_shall_stay() -> None:
    """Acceptance case 74."""
    metadata: Body = {"name": "{{name}}", "finalizers": ["background"]}
    plain = await generated(a_set(WEB))
    stays = await generated(a_set(WEB, syncPolicy={"preserveResourcesOnDeletion": True}))
    own = await generated(a_set(WEB, template={"metadata": metadata}))

    assert [one.body["metadata"] for one in plain.applications] == [
        {
            "name": "web",
            "namespace": "argocd",
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
        }
    ]
    assert stays.applications[0].body["metadata"] == {"name": "web", "namespace": "argocd"}
    assert own.applications[0].body["metadata"] == {
        "name": "web",
        "namespace": "argocd",
        "finalizers": ["background"],
    }


async def test_a_patch_changes_everything_but_the_project() -> None:
    """Acceptance case 74."""
    patch = "metadata: {name: '{{name}}-2', namespace: else}\nspec: {project: root, a: 1}\n"

    found = await generated(a_set(WEB, templatePatch=patch))

    (one,) = found.applications
    assert (one.name, one.body["spec"]) == ("web-2", {"project": "default", "a": 1})
    assert one.body["metadata"] == {
        "name": "web-2",
        "namespace": "argocd",
        "finalizers": ["resources-finalizer.argocd.argoproj.io"],
    }


def test_a_patch_removes_what_is_null_and_joins_finalizers() -> None:
    old: Json = {"a": {"b": 1, "c": 2}, "finalizers": ["x"], "list": [1]}
    new: Json = {"a": {"b": None}, "finalizers": ["y"], "list": [2]}

    assert patched(old, new) == {"a": {"c": 2}, "finalizers": ["y", "x"], "list": [2]}


@pytest.mark.parametrize(
    ("elements", "told"),
    [
        ([{"name": "a"}, {"name": "a"}], ["error argo.set-twice"]),
        ([{"name": "No Name"}], ["error argo.set-name"]),
        ([{"name": ""}], ["error argo.set-name"]),
        ([{"name": 3}], ["error argo.set-element"]),
        ([], ["warning argo.set-nothing", "note argo.set-empty"]),
    ],
)
async def test_what_is_wrong_with_a_set_is_told(elements: list[Json], told: list[str]) -> None:
    found = await generated(a_set({"list": {"elements": elements}}))

    assert codes(found) == told
    assert found.applications == ()
    assert {(one.where.name, one.where.line) for one in found.findings if one.where} == {
        ("sets.yaml", 3)
    }


async def test_of_a_set_at_fault_nothing_is_generated() -> None:
    found = await generated(a_set(WEB, {"plugin": {}}))

    assert found.applications == ()
    assert [one.sentence for one in found.findings] == [
        "what `plugin` finds is not known here: it asks a server elsewhere"
    ]


async def test_units_tell_their_set_and_what_is_wrong_with_many_is_said_once() -> None:
    one = a_set({"list": {"elements": [{"name": "web"}, {"name": "cart"}]}})

    found = units_of(one, await generated(one))

    assert [str(unit.id) for unit in found.units] == [
        "Application/argocd/web",
        "Application/argocd/cart",
    ]
    assert {unit.made_by for unit in found.units} == {"ApplicationSet/argocd/apps"}
    assert str(found.units[1].where) == "sets.yaml:3 (generator 0, 2: name=cart)"
    sentences = [finding.sentence for finding in found.findings]
    assert "`spec.destination` is missing" in sentences


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"generators": []}, ["error argo.set-generator"]),
        (
            {"generators": [WEB], "syncPolicy": {"applicationsSync": "creat"}},
            ["error argo.set-policy"],
        ),
        (
            {"generators": [WEB], "syncPolicy": {"applicationsSync": "create-only"}},
            ["note argo.set-policy", "note argo.set-policy"],
        ),
        ({"generators": [WEB], "preservedFields": {"labels": ["a"]}}, ["note argo.set-ignored"]),
        ({"generators": [WEB]}, []),
    ],
)
def test_a_set_is_read_with_what_is_not_played(spec: Body, told: list[str]) -> None:
    document = Document({"metadata": {"name": "apps"}, "spec": spec}, Place("sets.yaml", 3))

    found = read_set(document, "argocd")

    assert [f"{one.severity} {one.code}" for one in found.findings] == told
    assert found.sets[0].mark == "ApplicationSet/argocd/apps"
