"""Files of a tree that override a source: `.argocd-source.yaml` and the like."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.dialect.applications import GIT, OWNER, WEB, details
from tidegate.dialect.argo.source import apply_source_overrides, read_source
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.units.rendering import Overlay


def over(source: JsonObject, *overrides: JsonObject) -> JsonObject:
    return apply_source_overrides(msgspec.json.encode({**WEB, **source}), overrides)


def test_override_files_of_the_source_are_merged_in_order() -> None:
    first: JsonObject = {"helm": {"releaseName": "a", "values": "x: 1"}}
    last: JsonObject = {"helm": {"releaseName": "b"}}

    assert over({"helm": {"version": "v3"}}, first, last) == {
        **WEB,
        "helm": {"releaseName": "b", "values": "x: 1", "version": "v3"},
    }


def test_they_cannot_lead_elsewhere() -> None:
    away: JsonObject = {
        "repoURL": "https://evil.example",
        "path": "x",
        "chart": "x",
        "targetRevision": "x",
        "ref": "x",
        "name": "x",
    }

    assert over({}, away) == WEB


def test_they_are_read_in_any_case_as_the_image_updater_writes_them() -> None:
    parameters: Json = [{"name": "tag", "value": "2", "forcestring": True}]

    assert over({}, {"Helm": {"parameters": parameters}})["helm"] == {
        "parameters": [{"name": "tag", "value": "2", "forceString": True}]
    }


def test_null_takes_nothing_away_except_among_values() -> None:
    source: JsonObject = {
        "helm": {"releaseName": "a", "valuesObject": {"a": 1, "b": {"c": 1, "d": 2}}}
    }
    nothing: JsonObject = {
        "helm": {"releaseName": None, "valuesObject": {"a": None, "b": {"c": None}}}
    }

    assert over(source, nothing)["helm"] == {"releaseName": "a", "valuesObject": {"b": {"d": 2}}}
    assert over(source, {"helm": None})["helm"] == source["helm"]


def test_an_overriding_list_keeps_unset_fields_of_its_entries() -> None:
    source: JsonObject = {
        "helm": {
            "parameters": [
                {"name": "a", "value": "1", "forceString": True},
                {"name": "b", "value": "2"},
            ],
            "valueFiles": ["a.yaml"],
        }
    }
    new: JsonObject = {
        "helm": {"parameters": [{"name": "c", "value": "3"}], "valueFiles": ["b.yaml", "c.yaml"]}
    }

    assert over(source, new)["helm"] == {
        "parameters": [{"name": "c", "value": "3", "forceString": True}],
        "valueFiles": ["b.yaml", "c.yaml"],
    }


def test_an_overridden_source_is_validated() -> None:
    result = details(kustomize={"namePrefix": "a-"})
    again = apply_source_overrides(
        result.source_json, [{"kustomize": {"images": ["web:2"], "oops": 1}}]
    )

    source, findings = read_source(again, OWNER)

    assert findings == ()
    assert source is not None
    assert isinstance(source.request, Overlay)
    assert getattr(source.request.overrides, "name_prefix", "") == "a-"
    assert getattr(source.request.overrides, "images", ()) == ("web:2",)


BLOCK = st.dictionaries(
    st.sampled_from(["helm", "kustomize", "directory"]),
    st.dictionaries(
        st.sampled_from(["version", "namePrefix", "recurse", "values", "valuesObject"]),
        st.none() | st.text(max_size=3) | st.dictionaries(st.text(max_size=2), st.integers(0, 9)),
    ),
)


@given(BLOCK, BLOCK)
def test_overriding_twice_with_the_same_is_overriding_once(
    source: JsonObject, override: JsonObject
) -> None:
    once = over(source, override)

    assert over(source, override, override) == once
    assert over(once) == once
    assert once["repoURL"] == GIT
    read_source(once, OWNER)
