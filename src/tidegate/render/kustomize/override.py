"""Change a kustomization as its unit asks: by the rules of Argo CD, or by those of Flux."""

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

_TAGGED = lazy_regex(r"(.*):([a-zA-Z0-9._-]*|\*)")
_KEEP = "*"
_NOT_LOCAL = ("git::", "gh:", "ssh://", "https://", "http://", "git@", "github.com:", "github.com/")


class OverlayDirectory(Protocol):
    """What lies around the kustomization."""

    def exists(self, text: str) -> bool:
        """True if there is something at a path, seen from here."""

    def exists_below(self, text: str) -> bool:
        """As `exists`, for a path that `..` cannot lead out of this directory."""

    def matching(self, pattern: str) -> list[str]:
        """The paths that fit a pattern, seen from here."""


def apply_overrides(
    body: JsonObject,
    overrides: ArgoOverrides | FluxOverrides | None,
    *,
    made: bool,
    nearby: OverlayDirectory,
) -> JsonObject:
    """The kustomization to build. `made` says that there was no file before."""
    match overrides:
        case ArgoOverrides():
            return _apply_argo(body, overrides, nearby)
        case FluxOverrides():
            return _apply_flux(body, overrides, nearby, made=made)
        case None:
            return body


def generate_kustomization(manifests: list[str]) -> JsonObject:
    """What Flux writes where there is no kustomization."""
    body: JsonObject = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    if not manifests:
        # Kustomize refuses a file that says nothing. A namespace that nobody gets says enough.
        return {**body, "namespace": "_placeholder"}
    return {**body, "resources": [f"./{path}" for path in manifests]}


def _apply_argo(body: JsonObject, wanted: ArgoOverrides, nearby: OverlayDirectory) -> JsonObject:
    """What `kustomize edit` would do, in the order in which Argo CD calls it."""
    texts = {
        "namePrefix": wanted.name_prefix,
        "nameSuffix": wanted.name_suffix,
        "namespace": wanted.namespace,
    }
    changed = {**body, **{name: text for name, text in texts.items() if text}}
    if wanted.images:
        images = tuple(expand(image, wanted.variables) for image in wanted.images)
        changed["images"] = _set_images(changed, images)
    if wanted.replicas:
        counts: dict[str, Json] = {**wanted.replicas}
        kept = [
            entry for entry in get_mappings(body, "replicas") if entry.get("name") not in counts
        ]
        new: list[JsonObject] = [{"name": name, "count": count} for name, count in counts.items()]
        changed["replicas"] = _by_name([*kept, *new])
    _add_labels(changed, wanted)
    annotations = wanted.common_annotations
    if wanted.annotation_variables:
        annotations = _expanded(annotations, wanted.variables)
    if annotations:
        force = wanted.force_common_annotations
        field = "commonAnnotations"
        changed[field] = _add_pairs(changed.get(field), annotations, force=force, field=field)
    _extend(changed, "patches", [_patch_body(patch) for patch in wanted.patches])
    known = get_list(changed, "components")
    components = dict.fromkeys(_argo_components(wanted, nearby))
    _extend(changed, "components", [path for path in components if path not in known])
    return changed


def _argo_components(wanted: ArgoOverrides, nearby: OverlayDirectory) -> Iterator[str]:
    """Those that are there, if others are to be ignored; of a pattern, all that fit.

    What is to be ignored Argo CD looks for without leaving the directory, so that `../part` is
    left out although it is there; and where all are left out, it has nothing to add and gives up.
    """
    present = wanted.components
    if wanted.ignore_missing_components:
        present = tuple(path for path in present if nearby.exists_below(path))
        if wanted.components and not present:
            problem = f"the component `{sanitize(wanted.components[0])}` is not below the directory"
            hint = "with `ignoreMissingComponents`, Argo CD wants at least one that is"
            raise RenderError("render.kustomize.component", problem, hint=hint)
    for path in present:
        yield from nearby.matching(path) or [path]


def _apply_flux(
    body: JsonObject, wanted: FluxOverrides, nearby: OverlayDirectory, *, made: bool
) -> JsonObject:
    changed = dict(body)
    if not made and not body.get("resources"):
        # Flux does so to keep kustomize from calling the file empty, whatever else is in it.
        changed["buildMetadata"] = ["originAnnotations"]
    texts = (
        ("namespace", wanted.target_namespace),
        ("namePrefix", wanted.name_prefix),
        ("nameSuffix", wanted.name_suffix),
    )
    changed |= {name: text for name, text in texts if text is not None}
    patches = (KustomizePatch(patch=one.patch, target=one.target) for one in wanted.patches)
    _extend(changed, "patches", [_patch_body(one) for one in patches])
    for path in wanted.components:
        _refuse_distant(path)
    missing_is_fine = wanted.ignore_missing_components
    present = [path for path in wanted.components if not missing_is_fine or nearby.exists(path)]
    _extend(changed, "components", present)
    if wanted.images:
        changed["images"] = _merge_images(get_mappings(body, "images"), wanted.images)
    if wanted.build_metadata:
        changed["buildMetadata"] = list(wanted.build_metadata)
    # Flux takes the objects as they come; kustomize's own program sorts them by kind.
    return {"sortOptions": {"order": "fifo"}, **changed}


def _extend(body: JsonObject, name: str, more: list[Json] | list[JsonObject] | list[str]) -> None:
    if more:
        body[name] = [*get_list(body, name), *more]


def _by_name(entries: list[JsonObject]) -> list[Json]:
    return [*sorted(entries, key=lambda entry: str(entry.get("name")))]


def _set_images(body: JsonObject, texts: tuple[str, ...]) -> list[Json]:
    """One entry for each name: what is given replaces what the file says of that name."""
    old = {str(entry.get("name")): entry for entry in get_mappings(body, "images")}
    old |= {str(entry.get("name")): entry for entry in get_mappings(body, "imageTags")}
    body.pop("imageTags", None)
    for text in texts:
        image = read_image(text)
        before = old.get(image.name, {})
        fields = {"newName": image.new_name, "newTag": image.new_tag, "digest": image.digest}
        entry: JsonObject = {"name": image.name}
        for field, value in fields.items():
            kept = before.get(field) if value == _KEEP else value
            entry |= {field: kept} if kept else {}
        old[image.name] = entry
    return _by_name(list(old.values()))


def read_image(text: str) -> ImageOverride:
    """An image as Argo CD writes it: `name:tag`, `name@digest`, `old=new`, with tag or digest."""
    parts = text.split("=")
    renames = len(parts) == 2  # noqa: PLR2004  (with more, the signs belong to the name)
    target = parts[1] if renames else text
    if "@" in target:
        name, digest = target.split("@")[:2]
        tag = ""
    elif tagged := _TAGGED.fullmatch(target):
        name, tag, digest = tagged[1], tagged[2], ""
    elif renames and target:
        name, tag, digest = target, "", ""
    else:
        problem = f"`{sanitize(text)}` does not say what becomes of an image"
        hint = "write `name:tag`, `name@digest` or `name=other`"
        raise RenderError("render.kustomize.image", problem, hint=hint)
    if renames:
        return ImageOverride(name=parts[0], new_name=name, new_tag=tag, digest=digest)
    return ImageOverride(name=name, new_tag=tag, digest=digest)


def _merge_images(old: list[JsonObject], images: tuple[ImageOverride, ...]) -> list[Json]:
    """Flux changes the fields that are given; a tag and a digest replace each other."""
    merged = [dict(entry) for entry in old]
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


def _add_labels(body: JsonObject, wanted: ArgoOverrides) -> None:
    if not wanted.common_labels:
        return
    added = _expanded(wanted.common_labels, wanted.variables)
    force = wanted.force_common_labels
    if wanted.label_include_templates and not wanted.label_without_selector:
        problem = "`labelIncludeTemplates` needs `labelWithoutSelector`"
        raise RenderError("render.kustomize.label", problem)
    if not wanted.label_without_selector:
        field = "commonLabels"
        body[field] = _add_pairs(body.get(field), added, force=force, field=field)
        return
    templates = wanted.label_include_templates
    labels = [dict(entry) for entry in get_mappings(body, "labels")]
    entry = next((entry for entry in labels if _is_like(entry, templates=templates)), None)
    if entry is None:
        entry = {"includeTemplates": True} if templates else {}
        labels.append(entry)
    entry["pairs"] = _add_pairs(entry.get("pairs"), added, force=force, field="labels")
    body["labels"] = [*labels]


def _expanded(pairs: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    return {name: expand(value, variables) for name, value in pairs.items()}


def _is_like(entry: JsonObject, *, templates: bool) -> bool:
    return not entry.get("includeSelectors") and bool(entry.get("includeTemplates")) == templates


def _add_pairs(old: Json, pairs: Mapping[str, str], *, force: bool, field: str) -> JsonObject:
    known = get_mapping(old)
    twice = sorted(set(known) & set(pairs))
    if twice and not force:
        problem = f"`{sanitize(twice[0])}` is in the `{field}` of the kustomization already"
        hint = "remove it from one of the two, or force it"
        raise RenderError("render.kustomize.label", problem, hint=hint)
    return {**known, **pairs}


def _patch_body(patch: KustomizePatch) -> JsonObject:
    fields: JsonObject = {
        "patch": patch.patch,
        "path": patch.path,
        "target": {**patch.target},
        "options": {**patch.options},
    }
    return {name: value for name, value in fields.items() if value}


def _refuse_distant(path: str) -> None:
    lower = path.lower()
    if lower.startswith((*_NOT_LOCAL, "/", "file:///")):
        problem = f"the component `{sanitize(path)}` must be a path from this directory on"
        raise RenderError("render.kustomize.component", problem)


def add_common_metadata(
    documents: Iterable[Document],
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> tuple[Document, ...]:
    """The same objects with these on top. Flux does so last of all, so that they win."""
    wanted = {"labels": labels, "annotations": annotations}
    return tuple(_with_metadata(document, wanted) for document in documents)


def _with_metadata(document: Document, wanted: Mapping[str, Mapping[str, str]]) -> Document:
    merged = dict(get_mapping(document.body, "metadata"))
    for field, pairs in wanted.items():
        if pairs:
            merged[field] = {**get_mapping(merged, field), **pairs}
    return msgspec.structs.replace(document, body={**document.body, "metadata": merged})
