"""Changes that a unit makes to its kustomization, with the rules of Argo CD or of Flux."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import msgspec

from tidegate.documents import Document
from tidegate.errors import RenderError, sanitize
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.rendering import (
    ArgoOverrides,
    FluxOverrides,
    ImageOverride,
    KustomizePatch,
)
from tidegate.render.argocd_variables import expand

_IMAGE_WITH_TAG = lazy_regex(r"(.*):([a-zA-Z0-9._-]*|\*)")
_UNCHANGED = "*"
_REMOTE_PREFIXES = (
    "git::",
    "gh:",
    "ssh://",
    "https://",
    "http://",
    "git@",
    "github.com:",
    "github.com/",
)


class OverlayDirectory(Protocol):
    """The directory of a kustomization."""

    def exists(self, text: str) -> bool:
        """Return whether a path exists, relative to the kustomization."""

    def exists_below(self, text: str) -> bool:
        """Return whether a path exists; `..` cannot lead out of the directory."""

    def list_matches(self, pattern: str) -> list[str]:
        """Return the paths that match a pattern, relative to the kustomization."""


def apply_overrides(
    body: JsonObject,
    overrides: ArgoOverrides | FluxOverrides | None,
    *,
    is_generated: bool,
    directory: OverlayDirectory,
) -> JsonObject:
    """Return the kustomization to build. `is_generated`: there was no file before."""
    match overrides:
        case ArgoOverrides():
            return _apply_argo(body, overrides, directory)
        case FluxOverrides():
            return _apply_flux(body, overrides, directory, is_generated=is_generated)
        case None:
            return body


def generate_kustomization(manifests: list[str]) -> JsonObject:
    """Return what Flux writes where there is no kustomization.

    Like `findOrGenerateKustomization` in `kustomize_generator.go` of fluxcd/pkg/kustomize 1.35.6.
    """
    body: JsonObject = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    if not manifests:
        # Kustomize rejects an empty file. A namespace is enough, and no object gets it.
        return {**body, "namespace": "_placeholder"}
    return {**body, "resources": [f"./{path}" for path in manifests]}


def _apply_argo(
    body: JsonObject, overrides: ArgoOverrides, directory: OverlayDirectory
) -> JsonObject:
    """Apply what `kustomize edit` would do, in the order in which Argo CD calls it.

    Like `Build` in `util/kustomize/kustomize.go` of Argo CD 3.5.6.
    """
    texts = {
        "namePrefix": overrides.name_prefix,
        "nameSuffix": overrides.name_suffix,
        "namespace": overrides.namespace,
    }
    changed = {**body, **{name: text for name, text in texts.items() if text}}
    if overrides.images:
        images = tuple(expand(image, overrides.variables) for image in overrides.images)
        changed["images"] = _set_images(changed, images)
    if overrides.replicas:
        counts: dict[str, Json] = {**overrides.replicas}
        other_replicas = [
            entry for entry in get_mappings(body, "replicas") if entry.get("name") not in counts
        ]
        new_replicas: list[JsonObject] = [
            {"name": name, "count": count} for name, count in counts.items()
        ]
        changed["replicas"] = _sorted_by_name([*other_replicas, *new_replicas])
    _add_labels(changed, overrides)
    annotations = overrides.common_annotations
    if overrides.annotation_variables:
        annotations = _expanded(annotations, overrides.variables)
    if annotations:
        force = overrides.force_common_annotations
        field = "commonAnnotations"
        changed[field] = _add_pairs(changed.get(field), annotations, force=force, field=field)
    _extend(changed, "patches", [_patch_body(patch) for patch in overrides.patches])
    existing = get_list(changed, "components")
    components = dict.fromkeys(_argo_components(overrides, directory))
    _extend(changed, "components", [path for path in components if path not in existing])
    return changed


def _argo_components(overrides: ArgoOverrides, directory: OverlayDirectory) -> Iterator[str]:
    """Yield the components to add; of a pattern, all that match.

    To ignore missing ones, Argo CD looks for them without leaving the directory, so that `../part`
    is dropped although it exists. If all are dropped, Argo CD fails.

    Like `Build` in `util/kustomize/kustomize.go` of Argo CD 3.5.6.
    """
    present = overrides.components
    if overrides.ignore_missing_components:
        present = tuple(path for path in present if directory.exists_below(path))
        if overrides.components and not present:
            problem = (
                f"the component `{sanitize(overrides.components[0])}` is not below the directory"
            )
            hint = "with `ignoreMissingComponents`, at least one component must exist"
            raise RenderError("render.kustomize.component", problem, hint=hint)
    for path in present:
        yield from directory.list_matches(path) or [path]


def _apply_flux(
    body: JsonObject, overrides: FluxOverrides, directory: OverlayDirectory, *, is_generated: bool
) -> JsonObject:
    changed = dict(body)
    if not is_generated and not body.get("resources"):
        # Flux sets it so that kustomize does not reject the file as empty.
        changed["buildMetadata"] = ["originAnnotations"]
    texts = (
        ("namespace", overrides.target_namespace),
        ("namePrefix", overrides.name_prefix),
        ("nameSuffix", overrides.name_suffix),
    )
    changed |= {name: text for name, text in texts if text is not None}
    patches = (
        KustomizePatch(patch=patch.patch, target=patch.target) for patch in overrides.patches
    )
    _extend(changed, "patches", [_patch_body(patch) for patch in patches])
    for path in overrides.components:
        _require_local(path)
    ignore_missing = overrides.ignore_missing_components
    present = [
        path for path in overrides.components if not ignore_missing or directory.exists(path)
    ]
    _extend(changed, "components", present)
    if overrides.images:
        changed["images"] = _merge_images(get_mappings(body, "images"), overrides.images)
    if overrides.build_metadata:
        changed["buildMetadata"] = list(overrides.build_metadata)
    # Flux keeps the order; the kustomize program sorts by kind.
    return {"sortOptions": {"order": "fifo"}, **changed}


def _extend(body: JsonObject, name: str, more: list[Json] | list[JsonObject] | list[str]) -> None:
    if more:
        body[name] = [*get_list(body, name), *more]


def _sorted_by_name(entries: list[JsonObject]) -> list[Json]:
    return [*sorted(entries, key=lambda entry: str(entry.get("name")))]


def _set_images(body: JsonObject, texts: tuple[str, ...]) -> list[Json]:
    """Return one entry per image name: overrides replace the entries of the file."""
    by_name = {str(entry.get("name")): entry for entry in get_mappings(body, "images")}
    by_name |= {str(entry.get("name")): entry for entry in get_mappings(body, "imageTags")}
    body.pop("imageTags", None)
    for text in texts:
        image = read_image(text)
        existing = by_name.get(image.name, {})
        fields = {"newName": image.new_name, "newTag": image.new_tag, "digest": image.digest}
        entry: JsonObject = {"name": image.name}
        for field, value in fields.items():
            field_value = existing.get(field) if value == _UNCHANGED else value
            entry |= {field: field_value} if field_value else {}
        by_name[image.name] = entry
    return _sorted_by_name(list(by_name.values()))


def read_image(text: str) -> ImageOverride:
    """Read an image as Argo CD writes it: `name:tag`, `name@digest` or `old=new`.

    The new name may have a tag or a digest.

    Like `KustomizeImage` in `pkg/apis/application/v1alpha1/types.go` of Argo CD 3.5.6.
    """
    parts = text.split("=")
    is_renamed = len(parts) == 2  # noqa: PLR2004  (with more, `=` is part of the name)
    target = parts[1] if is_renamed else text
    if "@" in target:
        name, digest = target.split("@")[:2]
        tag = ""
    elif tagged := _IMAGE_WITH_TAG.fullmatch(target):
        name, tag, digest = tagged[1], tagged[2], ""
    elif is_renamed and target:
        name, tag, digest = target, "", ""
    else:
        problem = f"`{sanitize(text)}` has no new name, tag or digest for the image"
        hint = "write `name:tag`, `name@digest` or `name=other`"
        raise RenderError("render.kustomize.image", problem, hint=hint)
    if is_renamed:
        return ImageOverride(name=parts[0], new_name=name, new_tag=tag, digest=digest)
    return ImageOverride(name=name, new_tag=tag, digest=digest)


def _merge_images(existing: list[JsonObject], images: tuple[ImageOverride, ...]) -> list[Json]:
    """Merge images as Flux does: given fields change; a tag and a digest replace each other.

    Like `checkKustomizeImageExists` in `kustomize_generator.go` of fluxcd/pkg/kustomize 1.35.6.
    """
    merged = [dict(entry) for entry in existing]
    for image in images:
        entry = next((entry for entry in merged if entry.get("name") == image.name), None)
        if entry is None:
            entry = {"name": image.name}
            merged.append(entry)
        if image.new_name:
            entry["newName"] = image.new_name
        if image.new_tag or image.digest:
            entry |= {"newTag": image.new_tag, "digest": image.digest}
    return [*merged]


def _add_labels(body: JsonObject, overrides: ArgoOverrides) -> None:
    if not overrides.common_labels:
        return
    added = _expanded(overrides.common_labels, overrides.variables)
    force = overrides.force_common_labels
    if overrides.label_include_templates and not overrides.label_without_selector:
        problem = "`labelIncludeTemplates` needs `labelWithoutSelector`"
        raise RenderError("render.kustomize.label", problem)
    if not overrides.label_without_selector:
        field = "commonLabels"
        body[field] = _add_pairs(body.get(field), added, force=force, field=field)
        return
    templates = overrides.label_include_templates
    labels = [dict(entry) for entry in get_mappings(body, "labels")]
    entry = next(
        (entry for entry in labels if _is_matching_label(entry, templates=templates)), None
    )
    if entry is None:
        entry = {"includeTemplates": True} if templates else {}
        labels.append(entry)
    entry["pairs"] = _add_pairs(entry.get("pairs"), added, force=force, field="labels")
    body["labels"] = [*labels]


def _expanded(pairs: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    return {name: expand(value, variables) for name, value in pairs.items()}


def _is_matching_label(entry: JsonObject, *, templates: bool) -> bool:
    return not entry.get("includeSelectors") and bool(entry.get("includeTemplates")) == templates


def _add_pairs(
    existing_field: Json, pairs: Mapping[str, str], *, force: bool, field: str
) -> JsonObject:
    existing = get_mapping(existing_field)
    duplicates = sorted(set(existing) & set(pairs))
    if duplicates and not force:
        problem = f"`{sanitize(duplicates[0])}` is already in `{field}` of the kustomization"
        hint = "remove one of the two, or set `force`"
        raise RenderError("render.kustomize.label", problem, hint=hint)
    return {**existing, **pairs}


def _patch_body(patch: KustomizePatch) -> JsonObject:
    fields: JsonObject = {
        "patch": patch.patch,
        "path": patch.path,
        "target": {**patch.target},
        "options": {**patch.options},
    }
    return {name: value for name, value in fields.items() if value}


def _require_local(path: str) -> None:
    lower = path.lower()
    if lower.startswith((*_REMOTE_PREFIXES, "/", "file:///")):
        problem = f"the component `{sanitize(path)}` must be a path relative to this directory"
        raise RenderError("render.kustomize.component", problem)


def add_common_metadata(
    documents: Iterable[Document],
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> tuple[Document, ...]:
    """Return the objects with common labels and annotations. Flux adds them last, so they win.

    Like `SetCommonMetadata` in `utils/meta.go` of fluxcd/pkg/ssa 0.76.2.
    """
    common_metadata = {"labels": labels, "annotations": annotations}
    return tuple(_with_metadata(document, common_metadata) for document in documents)


def _with_metadata(
    document: Document, common_metadata: Mapping[str, Mapping[str, str]]
) -> Document:
    merged = dict(get_mapping(document.body, "metadata"))
    for field, pairs in common_metadata.items():
        if pairs:
            merged[field] = {**get_mapping(merged, field), **pairs}
    return msgspec.structs.replace(document, body={**document.body, "metadata": merged})
