"""What Argo CD's generators refuse, and patterns and patches that only it reads so."""

from __future__ import annotations

import pytest

from tests.unit.dialect.test_appset_generators import a_list, git, params
from tidegate.dialect.argo.appset.applications import strategic_merge
from tidegate.dialect.argo.appset.queries import GeneratorError
from tidegate.model.k8s.objects import Json, JsonObject


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({**a_list(), "selector": {"matchLabels": {"path[0]": "apps"}}}, "appset.selector"),
        ({"clusters": {"selector": {"matchLabels": {"env": "a b"}}}}, "appset.selector"),
        (
            {"clusters": {"selector": {"matchExpressions": [{"key": "env", "operator": "In"}]}}},
            "appset.selector",
        ),
        ({"list": {"elementsYaml": "name: web"}}, "appset.file"),
        (a_list({"name": "web", "values": "x"}), "appset.element"),
        (git(files=[{"path": "/apps/*"}]), "appset.pattern"),
        (git(files=[{"path": ""}]), "appset.pattern"),
    ],
)
async def test_input_that_argo_cd_rejects_is_an_error(entry: JsonObject, code: str) -> None:
    with pytest.raises(GeneratorError) as refused:
        await params(entry)
    assert refused.value.code == code


async def test_a_selector_over_parameters_may_ask_for_any_value() -> None:
    entry: JsonObject = {**a_list({"name": "a b"}), "selector": {"matchLabels": {"name": "a b"}}}

    assert await params(entry) == [{"name": "a b"}]


@pytest.mark.parametrize(
    ("more", "bases"),
    [
        ({"directories": [{"path": "apps/[!w]*"}]}, ["web"]),
        ({"directories": [{"path": "apps/[^w]*"}]}, ["cart"]),
        ({"files": [{"path": "apps/[!w]*"}]}, ["cart"]),
        ({"files": [{"path": "./apps/*"}]}, ["cart", "web"]),
    ],
)
async def test_go_patterns_and_git_patterns_differ(more: JsonObject, bases: list[str]) -> None:
    files = {"apps/cart/a.yaml": "", "apps/web/a.yaml": ""}

    result = await params(git(**more), files=files)

    assert [item["path.basename"] for item in result] == bases


@pytest.mark.parametrize(
    ("patch", "made"),
    [
        ({"$retainKeys": ["a"], "a": 2}, {"a": 2}),
        ({"$retainKeys": ["b"]}, {"b": {"c": 1}}),
        ({"finalizers": ["x", "x"]}, {"a": 1, "b": {"c": 1}, "finalizers": ["x"]}),
    ],
)
def test_a_patch_is_merged_as_kubernetes_merges_it(patch: Json, made: Json) -> None:
    assert strategic_merge({"a": 1, "b": {"c": 1}}, patch) == made
