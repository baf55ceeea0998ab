"""Validation of the custom resources of Argo CD and Flux, as a server does it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plane.dialect_schemas import MODULES
from tests.support.dialect_bodies import BODIES
from tidegate.model.k8s.objects import FieldPath, Json, JsonObject, Kind
from tidegate.schema.custom_resources import FILE, check_custom_resource, list_versions

JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
KNOWN = ("metadata", "spec", "name", "labels", "source", "sourceRef", "generators", "list", "chart")
LIKELY: st.SearchStrategy[Json] = st.recursive(
    JSON,
    lambda inner: st.dictionaries(st.sampled_from(KNOWN), inner) | st.lists(inner, max_size=2),
    max_leaves=30,
)
APPLICATION, KUSTOMIZATION, RELEASE = BODIES[0], BODIES[3], BODIES[4]


def changed(body: JsonObject, path: str, value: Json = None) -> JsonObject:
    """A copy with another value at a path, or without the path if no value is given."""
    copy: JsonObject = msgspec.json.decode(msgspec.json.encode(body))
    *above, last = path.split(".")
    part = copy
    for name in above:
        below = part.setdefault(name, {})
        assert isinstance(below, dict)
        part = below
    part.pop(last, None)
    if value is not None:
        part[last] = value
    return copy


def name_of(body: JsonObject) -> str:
    return str(Kind.of(str(body["apiVersion"]), str(body["kind"])))


@pytest.mark.parametrize("body", BODIES, ids=name_of)
def test_a_valid_object_has_no_problems(body: JsonObject) -> None:
    assert check_custom_resource(body) == ()


def test_every_kind_of_the_file_is_among_the_bodies() -> None:
    kinds = {(Kind.of(str(body["apiVersion"]), "").group, str(body["kind"])) for body in BODIES}

    assert set(list_versions()) == kinds


def test_the_file_is_small_and_names_the_modules_it_is_from() -> None:
    book = msgspec.json.decode(FILE.read_bytes())

    assert FILE.stat().st_size < 100_000
    assert book["modules"] == sorted(module for module, _ in MODULES)
    assert '"description":"' not in FILE.read_text()


@pytest.mark.parametrize("number", range(len(msgspec.json.decode(FILE.read_bytes())["kinds"])))
def test_every_version_can_be_read(number: int) -> None:
    group, version, name, _, _ = msgspec.json.decode(FILE.read_bytes())["kinds"][number]

    flaws = check_custom_resource(
        {"apiVersion": f"{group}/{version}", "kind": name, "metadata": {}}
    )

    assert ("metadata", "name") in [flaw.path for flaw in flaws]


UNKNOWN: tuple[tuple[JsonObject, str, str], ...] = (
    (APPLICATION, "spec.syncPolicy.automated.prun", "prune"),
    (APPLICATION, "spec.destination.namespaces", "namespace"),
    (APPLICATION, "metadata.annotation", "annotations"),
    (APPLICATION, "spec.autoSync", ""),
    (KUSTOMIZATION, "spec.dependOn", "dependsOn"),
    (KUSTOMIZATION, "specs", "spec"),
    (RELEASE, "spec.chart.spec.sourceref", "sourceRef"),
)


@pytest.mark.parametrize(("body", "path", "near"), UNKNOWN)
def test_an_unknown_field_is_reported_with_the_nearest_known_one(
    body: JsonObject, path: str, near: str
) -> None:
    (flaw,) = check_custom_resource(changed(body, path, {"a": 1}))

    assert flaw.is_dropped
    assert flaw.path == tuple(path.split("."))
    assert flaw.suggestion == near


REFUSED: tuple[tuple[JsonObject, str, Json, str], ...] = (
    (APPLICATION, "spec.syncPolicy.automated.prune", "yes", "must be of type boolean"),
    (APPLICATION, "spec.project", None, "Required value"),
    (APPLICATION, "spec.revisionHistoryLimit", "3", "must be of type integer"),
    (APPLICATION, "metadata.name", "Shop", "lowercase RFC 1123"),
    (KUSTOMIZATION, "spec.sourceRef", None, "Required value"),
    (KUSTOMIZATION, "spec.sourceRef.kind", "Git", "Unsupported value"),
    (KUSTOMIZATION, "spec.interval", "often", "should match"),
    (KUSTOMIZATION, "spec.postBuild.substitute", {"a.b": 5}, "must be of type string"),
    (RELEASE, "spec.upgrade.remediation.strategy", "hope", "supported values"),
    (RELEASE, "spec.dependsOn", {"name": "db"}, "must be of type array"),
)


@pytest.mark.parametrize(("body", "path", "value", "message"), REFUSED)
def test_input_that_a_server_rejects_is_reported_with_its_message(
    body: JsonObject, path: str, value: Json, message: str
) -> None:
    (flaw,) = check_custom_resource(changed(body, path, value))

    assert not flaw.is_dropped
    assert flaw.path[: path.count(".") + 1] == tuple(path.split("."))
    assert message in flaw.problem


def test_metadata_that_cannot_be_read_is_refused() -> None:
    (flaw,) = check_custom_resource(changed(APPLICATION, "metadata.labels", {"a": 1}))

    assert flaw.path == ("metadata",)


def test_a_key_with_dots_is_one_step_of_a_path() -> None:
    (flaw,) = check_custom_resource(
        changed(KUSTOMIZATION, "spec.postBuild.substitute", {"a.b": {"c": 1}})
    )

    assert flaw.path == ("spec", "postBuild", "substitute", "a.b")


def test_items_of_lists_have_numbers() -> None:
    sources: list[Json] = [{"repoURL": "a"}, {"repoUrl": "b"}]

    flaws = check_custom_resource(changed(APPLICATION, "spec.sources", sources))

    paths: list[FieldPath] = [("spec", "sources", 1, "repoURL"), ("spec", "sources", 1, "repoUrl")]
    assert [flaw.path for flaw in flaws] == paths
    assert flaws[1].suggestion == "repoURL"


def test_a_null_means_that_the_field_is_missing() -> None:
    spec = APPLICATION["spec"]
    assert isinstance(spec, dict)

    assert check_custom_resource({**APPLICATION, "spec": {**spec, "syncPolicy": None}}) == ()


def test_an_unknown_version_is_reported_with_the_known_ones() -> None:
    (flaw,) = check_custom_resource(
        {**KUSTOMIZATION, "apiVersion": "kustomize.toolkit.fluxcd.io/v3"}
    )

    assert flaw.path == ("apiVersion",)
    assert "`kustomize.toolkit.fluxcd.io/v1`, `kustomize.toolkit.fluxcd.io/v1beta1`" in flaw.problem


@pytest.mark.parametrize("kind", ["v1 ConfigMap", "argoproj.io/v1alpha1 Rollout", " "])
def test_kinds_of_other_projects_are_not_checked(kind: str) -> None:
    version, _, name = kind.partition(" ")

    assert check_custom_resource({"apiVersion": version, "kind": name, "spec": {"prun": 1}}) == ()


@given(body=st.sampled_from(BODIES), value=LIKELY, place=st.sampled_from(["spec", "spec.source"]))
def test_any_json_is_judged(body: JsonObject, value: Json, place: str) -> None:
    spoiled = changed(body, place, value)
    spoiled |= value if isinstance(value, dict) and place == "spec" else {}

    for flaw in check_custom_resource(spoiled):
        part: Json = spoiled
        for step in flaw.path[:-1]:
            assert isinstance(part, dict | list)
            part = part[step]  # type: ignore[index]
