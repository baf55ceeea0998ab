"""One source of an Application: its repository, what to render of it, and the findings about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import normpath

import msgspec

from tidegate.dialect.argo.finding_collector import FindingCollector
from tidegate.dialect.argo.render_requests import (
    BLOCKS,
    explicit_tools,
    is_true,
    read_details,
    read_request,
    report_unsupported,
)
from tidegate.errors import Location
from tidegate.model.finding import Finding
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.kinds import APPLICATION
from tidegate.model.k8s.objects import FieldPath, Json, JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.rendering import ArgoBuild
from tidegate.model.units.source import (
    ChartSource,
    GitRef,
    GitRefKind,
    GitSource,
    OciSource,
    SourceRef,
)
from tidegate.model.units.unit import UnitSource
from tidegate.schema.custom_resources import find_field_shape
from tidegate.schema.shape import Shape, find_child_shape

OCI_SCHEME = "oci://"
HEAD_REVISIONS = frozenset({"", "HEAD"})
VERSION_RANGE = lazy_regex(r".*[*^~<>=|, ].*|(.*\.)?[xX](\..*)?", re.DOTALL)
"""Characters that a tag of a registry cannot have."""
FIXED_FIELDS = ("chart", "name", "path", "ref", "repoURL", "tagPrefix", "targetRevision")
"""Fields that files in the tree cannot override."""


class SourceContext(msgspec.Struct, frozen=True, kw_only=True):
    """Application of a source, and the path of the source in it."""

    name: str
    location: Location
    namespace: str = ""
    """Namespace of the destination."""
    project: str = "default"
    path: FieldPath = ("spec", "source")

    @property
    def is_in_list(self) -> bool:
        """Whether the source is in `sources`, where other sources may use its files."""
        return "sources" in self.path


def read_source(
    body: JsonObject, context: SourceContext
) -> tuple[UnitSource | None, tuple[Finding, ...]]:
    """Read a source and the findings about it; None if it cannot be fetched or rendered."""
    collector = FindingCollector(context.location)
    report_unsupported(body, context.path, collector)
    source = _build_source(body, context) if _is_complete(body, context, collector) else None
    return source, collector.findings


def apply_source_overrides(raw_source: bytes, overrides: Sequence[JsonObject]) -> JsonObject:
    """Apply `.argocd-source.yaml` and similar files to a source, in order.

    Argo CD patches the JSON and decodes it over the old value: null removes nothing, except in
    values, and items of lists keep the fields that the new item at their index does not have.
    """
    source: JsonObject = msgspec.json.decode(raw_source)
    merged: Json = source
    shape = find_field_shape(APPLICATION, "spec", "source")
    for override in overrides:
        merged = _decode_over(merged, _with_field_case(override, shape), shape)
    fields = merged if isinstance(merged, dict) else {}
    fixed = {key: source[key] for key in FIXED_FIELDS if key in source}
    return {**{key: value for key, value in fields.items() if key not in FIXED_FIELDS}, **fixed}


def _with_field_case(value: Json, shape: Shape | None) -> Json:
    """Return the value with the canonical case of its keys: Go decodes JSON keys in any case."""
    if shape is None:
        return value
    if isinstance(value, list) and shape.items is not None:
        return [_with_field_case(item, shape.items()) for item in value]
    if not isinstance(value, dict) or shape.values is not None:
        return value
    known = {name.lower(): name for name in shape.fields}
    names = {key: known.get(key.lower(), key) for key in value}
    return {
        names[key]: _with_field_case(field_value, find_child_shape(shape, names[key]))
        for key, field_value in value.items()
    }


def _decode_over(old: Json, new: Json, shape: Shape | None) -> Json:
    if shape is not None and shape.is_open:
        return _merge_patch(old, new)
    if new is None:
        return old
    if isinstance(new, list) and isinstance(old, list) and shape and shape.items:
        old_items = [*old[: len(new)], *[None] * (len(new) - len(old))]
        item = shape.items()
        return [
            _decode_over(old_item, new_item, item)
            for old_item, new_item in zip(old_items, new, strict=True)
        ]
    if isinstance(new, dict) and shape is not None:
        old_fields = old if isinstance(old, dict) else {}
        merged = {
            key: _decode_over(old_fields.get(key), new_value, find_child_shape(shape, key))
            for key, new_value in new.items()
        }
        return {**old_fields, **{key: value for key, value in merged.items() if value is not None}}
    return new


def _merge_patch(old: Json, new: Json) -> Json:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(new, dict):
        return new
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        merged.pop(key, None) if value is None else merged.update(
            {key: _merge_patch(merged.get(key), value)}
        )
    return merged


def _build_source(body: JsonObject, context: SourceContext) -> UnitSource:
    path, chart = get_text(body, "path"), get_text(body, "chart")
    build = ArgoBuild(
        name=context.name,
        namespace=context.namespace,
        project=context.project,
        repository=get_text(body, "repoURL"),
        path=path,
        target_revision=get_text(body, "targetRevision"),
    )
    directory = "." if chart else normpath(path or ".")
    has_objects = bool(path or chart)
    return UnitSource(
        source=_source_ref(body, chart),
        request=read_request(body, explicit_tools(body), build, directory) if has_objects else None,
        details=read_details(body, build, msgspec.json.encode(body)),
    )


def _source_ref(body: JsonObject, chart: str) -> SourceRef:
    """Return the repository of a source.

    A URL without a scheme is a registry, if the source is a chart. Git repositories are fetched
    with their submodules, like in Argo CD.
    """
    url, revision = get_text(body, "repoURL"), get_text(body, "targetRevision")
    if chart:
        address = url if "://" in url else f"{OCI_SCHEME}{url}"
        shares_credentials = is_true(body, "helm", "passCredentials")
        return ChartSource(
            address.rstrip("/"), chart, revision, shares_credentials=shares_credentials
        )
    if url.startswith(OCI_SCHEME):
        if revision.startswith("sha256:"):
            return OciSource(url, digest=revision)
        is_range = VERSION_RANGE.fullmatch(revision) is not None
        return OciSource(url, range=revision) if is_range else OciSource(url, tag=revision)
    if revision in HEAD_REVISIONS:
        return GitSource(url, submodules=True)
    ref = GitRef(GitRefKind.ANY, revision, get_text(body, "tagPrefix"))
    return GitSource(url, ref, submodules=True)


def _is_complete(body: JsonObject, context: SourceContext, collector: FindingCollector) -> bool:
    """Return whether the source can be fetched and rendered; reports what Argo CD would reject."""
    if any(not isinstance(body.get(key), str | None) for key in FIXED_FIELDS):
        return False
    path, required = (
        get_text(body, "path"),
        ("path", "chart", *(["ref"] if context.is_in_list else [])),
    )
    if not get_text(body, "repoURL"):
        _report_missing("`repoURL`", "repoURL", context, collector)
        return False
    if not any(get_text(body, key) for key in required):
        _report_missing(" or ".join(f"`{key}`" for key in required), "path", context, collector)
        return False
    if get_text(body, "chart"):
        _report_oci_scheme(body, context, collector)
        if not get_text(body, "targetRevision"):
            _report_missing(
                "`targetRevision`, because it is a chart", "targetRevision", context, collector
            )
    elif path.startswith("/") or normpath(path or ".").split("/")[0] == "..":
        message, fix = (
            "`path` is outside the repository",
            "write it relative to the root of the repository",
        )
        collector.error("argo.path", (*context.path, "path"), message, "Argo CD rejects it", fix)
        return False
    if len(explicit_tools(body)) > 1:
        blocks = [name for name in BLOCKS if body.get(name) is not None]
        message = (
            f"the source sets more than one tool: {' and '.join(f'`{block}`' for block in blocks)}"
        )
        collector.error(
            "argo.tools", context.path, message, "Argo CD rejects it", "keep one of the blocks"
        )
        return False
    return True


def _report_missing(
    missing: str, field: str, context: SourceContext, collector: FindingCollector
) -> None:
    why = "Argo CD marks the Application as invalid and does not sync it"
    message = f"a source of `{context.name}` needs {missing}"
    collector.error("argo.source", (*context.path, field), message, why, f"add `{field}`")


def _report_oci_scheme(
    body: JsonObject, context: SourceContext, collector: FindingCollector
) -> None:
    if get_text(body, "repoURL").startswith(OCI_SCHEME):
        message, fix = f"the URL of a chart registry must not have `{OCI_SCHEME}`", "remove it"
        why = "Argo CD adds the scheme itself, and then finds no chart"
        collector.warn("argo.registry", (*context.path, "repoURL"), message, why, fix)
