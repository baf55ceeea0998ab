"""What a unit changes in a kustomization, by the rules of Argo CD and of Flux."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

import msgspec
import pytest

from tidegate.documents import Document
from tidegate.errors import Location, RenderError
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.units.rendering import (
    ArgoOverrides,
    FluxOverrides,
    ImageOverride,
    KustomizePatch,
)
from tidegate.render.kustomize import add_common_metadata
from tidegate.render.kustomize.override import apply_overrides, generate_kustomization, read_image

DIGEST = "sha256:0123"


@dataclass(frozen=True)
class FakeDirectory:
    """The directory of a kustomization, with these paths."""

    present: tuple[str, ...] = ()

    def exists(self, text: str) -> bool:
        return text in self.present

    def exists_below(self, text: str) -> bool:
        return text in self.present

    def list_matches(self, pattern: str) -> list[str]:
        return [path for path in self.present if fnmatchcase(path, pattern)]


def changed(
    body: JsonObject,
    overrides: ArgoOverrides | FluxOverrides | None,
    *,
    made: bool = False,
    present: tuple[str, ...] = (),
) -> JsonObject:
    return apply_overrides(body, overrides, is_generated=made, directory=FakeDirectory(present))


def test_without_overrides_nothing_changes() -> None:
    body: JsonObject = {"resources": ["a"]}

    assert changed(body, None) == body


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("web:1.2", ImageOverride(name="web", new_tag="1.2")),
        ("host:5000/web:1.2", ImageOverride(name="host:5000/web", new_tag="1.2")),
        (f"web@{DIGEST}", ImageOverride(name="web", digest=DIGEST)),
        ("web=other", ImageOverride(name="web", new_name="other")),
        ("web=other:1.2", ImageOverride(name="web", new_name="other", new_tag="1.2")),
        (f"web=other@{DIGEST}", ImageOverride(name="web", new_name="other", digest=DIGEST)),
        ("web=*:1.2", ImageOverride(name="web", new_name="*", new_tag="1.2")),
    ],
)
def test_an_image_is_read_as_argo_writes_it(text: str, image: ImageOverride) -> None:
    assert read_image(text) == image


@pytest.mark.parametrize("text", ["web", "", "web="])
def test_an_image_without_a_change_is_refused(text: str) -> None:
    with pytest.raises(RenderError) as caught:
        read_image(text)

    assert caught.value.code == "render.kustomize.image"


def test_an_image_of_argo_replaces_the_entry_and_keeps_what_an_asterisk_matches() -> None:
    body: JsonObject = {
        "images": [{"name": "web", "newName": "kept", "digest": DIGEST}, {"name": "b"}]
    }

    result = changed(body, ArgoOverrides(images=("web=*:2", "a:1")))

    assert result["images"] == [
        {"name": "a", "newTag": "1"},
        {"name": "b"},
        {"name": "web", "newName": "kept", "newTag": "2"},
    ]


def test_replicas_of_argo_cd_replace_those_with_the_same_name() -> None:
    body: JsonObject = {"replicas": [{"name": "web", "count": 1}, {"name": "db", "count": 1}]}

    result = changed(body, ArgoOverrides(replicas={"web": 3}))

    assert result["replicas"] == [{"name": "db", "count": 1}, {"name": "web", "count": 3}]


def test_an_existing_label_is_refused_unless_forced() -> None:
    body: JsonObject = {"commonLabels": {"team": "red"}}

    with pytest.raises(RenderError) as caught:
        changed(body, ArgoOverrides(common_labels={"team": "blue"}))
    forced = changed(body, ArgoOverrides(common_labels={"team": "blue"}, force_common_labels=True))

    assert caught.value.code == "render.kustomize.label"
    assert forced["commonLabels"] == {"team": "blue"}


def test_labels_in_templates_need_labels_without_selectors() -> None:
    with pytest.raises(RenderError) as caught:
        changed({}, ArgoOverrides(common_labels={"a": "b"}, label_include_templates=True))

    assert caught.value.code == "render.kustomize.label"


def test_labels_without_selectors_are_added_as_an_entry() -> None:
    body: JsonObject = {"labels": [{"pairs": {"a": "b"}, "includeSelectors": True}]}

    result = changed(body, ArgoOverrides(common_labels={"x": "z"}, label_without_selector=True))

    assert result["labels"] == [
        {"pairs": {"a": "b"}, "includeSelectors": True},
        {"pairs": {"x": "z"}},
    ]


def test_components_that_are_missing_can_be_ignored() -> None:
    for overrides in (
        ArgoOverrides(components=("a", "b"), ignore_missing_components=True),
        FluxOverrides(components=("a", "b"), ignore_missing_components=True),
    ):
        result = changed({"components": ["x"]}, overrides, present=("b",))

        assert result["components"] == ["x", "b"]


def test_patterns_of_components_are_expanded_by_argo_alone() -> None:
    present = ("parts/a", "parts/b", "c")

    argo = changed({}, ArgoOverrides(components=("c", "parts/*")), present=present)
    flux = changed({}, FluxOverrides(components=("parts/*",)), present=present)

    assert argo["components"] == ["c", "parts/a", "parts/b"]
    assert flux["components"] == ["parts/*"]


def test_argo_cd_rejects_an_overlay_without_any_component() -> None:
    overrides = ArgoOverrides(components=("a",), ignore_missing_components=True)

    with pytest.raises(RenderError) as caught:
        changed({}, overrides)

    assert caught.value.code == "render.kustomize.component"


def test_images_and_labels_of_argo_name_variables_of_the_build() -> None:
    overrides = ArgoOverrides(
        images=("web:$ARGOCD_APP_REVISION_SHORT",),
        common_labels={"app": "${ARGOCD_APP_NAME}"},
        common_annotations={"cost": "$$5 for $ARGOCD_APP_NAME"},
        variables={"ARGOCD_APP_NAME": "shop", "ARGOCD_APP_REVISION_SHORT": "0a1b2c3"},
    )

    plain = changed({}, overrides)
    expanded = changed({}, msgspec.structs.replace(overrides, annotation_variables=True))

    assert plain["images"] == [{"name": "web", "newTag": "0a1b2c3"}]
    assert plain["commonLabels"] == {"app": "shop"}
    assert plain["commonAnnotations"] == {"cost": "$$5 for $ARGOCD_APP_NAME"}
    assert expanded["commonAnnotations"] == {"cost": "$5 for shop"}


@pytest.mark.parametrize(
    "path", ["https://example.com/a", "git@host:a", "/abs", "file:///abs", "GitHub.com/a/b"]
)
def test_flux_accepts_only_components_of_its_own_tree(path: str) -> None:
    with pytest.raises(RenderError) as caught:
        changed({}, FluxOverrides(components=(path,)))

    assert caught.value.code == "render.kustomize.component"


def test_flux_merges_images_and_tag_and_digest_replace_each_other() -> None:
    body: JsonObject = {"images": [{"name": "web", "newName": "x", "newTag": "1.0"}]}

    renamed = changed(body, FluxOverrides(images=(ImageOverride(name="web", new_name="y"),)))
    pinned = changed(body, FluxOverrides(images=(ImageOverride(name="web", digest=DIGEST),)))
    untouched = changed(body, FluxOverrides(images=(ImageOverride(name="web"),)))

    assert renamed["images"] == [{"name": "web", "newName": "y", "newTag": "1.0"}]
    assert pinned["images"] == [{"name": "web", "newName": "x", "newTag": "", "digest": DIGEST}]
    assert untouched["images"] == body["images"]


def test_flux_appends_patches_and_sets_names_and_namespace() -> None:
    body: JsonObject = {"resources": ["a"], "namespace": "old", "patches": [{"path": "p.yaml"}]}
    patch = KustomizePatch(patch="[]", target={"kind": "Deployment"})

    result = changed(body, FluxOverrides(target_namespace="new", name_prefix="", patches=(patch,)))

    assert result["namespace"] == "new"
    assert result["namePrefix"] == ""
    assert result["patches"] == [
        {"path": "p.yaml"},
        {"patch": "[]", "target": {"kind": "Deployment"}},
    ]


def test_flux_adds_origin_annotations_where_a_file_names_no_resources() -> None:
    without = changed({"configMapGenerator": []}, FluxOverrides())
    made = changed({"namespace": "_placeholder"}, FluxOverrides(), made=True)

    assert without["buildMetadata"] == ["originAnnotations"]
    assert "buildMetadata" not in made


def test_the_build_metadata_of_the_unit_replaces_that_of_the_file() -> None:
    result = changed(
        {"resources": ["a"], "buildMetadata": ["managedByLabel"]},
        FluxOverrides(build_metadata=("originAnnotations",)),
    )

    assert result["buildMetadata"] == ["originAnnotations"]


def test_a_kustomization_is_made_of_manifests_or_of_a_placeholder() -> None:
    assert generate_kustomization(["a.yaml", "sub"])["resources"] == ["./a.yaml", "./sub"]
    assert generate_kustomization([])["namespace"] == "_placeholder"


def test_common_metadata_overrides_existing_metadata() -> None:
    body: JsonObject = {"metadata": {"name": "a", "labels": {"x": "old", "y": "kept"}}}
    document = Document(body, Location("a.yaml"))

    (result,) = add_common_metadata([document], labels={"x": "new"}, annotations={"n": "1"})

    assert result.body["metadata"] == {
        "name": "a",
        "labels": {"x": "new", "y": "kept"},
        "annotations": {"n": "1"},
    }
    assert body["metadata"] == {"name": "a", "labels": {"x": "old", "y": "kept"}}


def test_a_patch_is_not_in_a_repr() -> None:
    assert "hunter2" not in repr(
        ArgoOverrides(patches=(KustomizePatch(patch="password: hunter2"),))
    )
