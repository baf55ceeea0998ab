"""Render request of an Application source: its tool and the settings of the tool's block."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.dialect.argo.finding_collector import FindingCollector
from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import FieldPath, Json, JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.chart_request import ChartRequest, Parameter, ParameterType
from tidegate.model.units.rendering import (
    ArgoBuild,
    ArgoDetails,
    ArgoOverrides,
    ArgoPlugin,
    Directory,
    HelmOptions,
    JsonnetOptions,
    JsonnetVariable,
    KustomizePatch,
    Overlay,
    RenderRequest,
    Tool,
    ToolDetection,
)

BLOCKS = {
    "kustomize": Tool.KUSTOMIZE,
    "helm": Tool.HELM,
    "directory": Tool.DIRECTORY,
    "plugin": Tool.PLUGIN,
}
KUSTOMIZE_MODIFIERS = frozenset(
    {
        "commonAnnotationsEnvsubst",
        "forceCommonAnnotations",
        "forceCommonLabels",
        "labelIncludeTemplates",
        "labelWithoutSelector",
    }
)
"""Fields of the kustomize block that have no effect by themselves."""
UNSUPPORTED = {
    ("helm", "skipTests"): "Argo CD never applies chart tests",
    ("helm", "version"): "charts are rendered with the built-in Helm",
    ("kustomize", "version"): "overlays are built with the kustomize found on this machine",
}
"""Fields that have no effect here, and why."""
COUNT_PATTERN = lazy_regex(r"[+-]?[0-9]{1,18}")


def without_empty_blocks(source: JsonObject) -> JsonObject:
    """Return the source without empty tool blocks, like Argo CD stores it.

    Only for `spec.source`: in `spec.sources` an empty block selects its tool.
    """
    return {
        key: block for key, block in source.items() if key not in BLOCKS or _has_content(key, block)
    }


def explicit_tools(source: JsonObject) -> list[Tool]:
    """Return the tools whose blocks the source has. A chart without a block is Helm's."""
    tools = [tool for name, tool in BLOCKS.items() if source.get(name) is not None]
    return tools or ([Tool.HELM] if source.get("chart") else [])


def read_request(
    source: JsonObject, tools: list[Tool], build: ArgoBuild, directory: str
) -> RenderRequest | ToolDetection | ArgoPlugin:
    """Read what to render of a directory; without a tool, it is detected by the files."""
    match tools:
        case [Tool.HELM]:
            return _chart_request(source, build, directory)
        case [Tool.KUSTOMIZE]:
            overrides = _overrides(get_mapping(source, "kustomize"), build)
            return Overlay(path=directory, overrides=overrides, helm=_inflation_options(source))
        case [Tool.DIRECTORY]:
            return _directory(get_mapping(source, "directory"), build, directory)
        case [Tool.PLUGIN]:
            return ArgoPlugin(path=directory, name=get_text(source, "plugin", "name"))
        case _:
            return ToolDetection(
                path=directory,
                chart=_chart_request(source, build, directory),
                overlay=Overlay(path=directory, helm=_inflation_options(source)),
                directory=_directory({}, build, directory),
            )


def read_details(source: JsonObject, build: ArgoBuild, raw_source: bytes) -> ArgoDetails:
    """Read the settings that are resolved with the fetched tree.

    `valuesObject` replaces `values`, even if it is empty.
    """
    helm = get_mapping(source, "helm")
    return ArgoDetails(
        build=build,
        ref=get_text(source, "ref"),
        value_files=string_list(helm, "valueFiles"),
        ignore_missing=is_true(helm, "ignoreMissingValueFiles"),
        values_text="" if get_value(helm, "valuesObject") is not None else get_text(helm, "values"),
        parameters=tuple(
            Parameter(
                get_text(parameter, "name"),
                get_text(parameter, "value"),
                ParameterType.STRING if is_true(parameter, "forceString") else ParameterType.TYPED,
            )
            for parameter in get_mappings(helm, "parameters")
        ),
        file_parameters=tuple(
            (get_text(parameter, "name"), get_text(parameter, "path"))
            for parameter in get_mappings(helm, "fileParameters")
        ),
        source_json=raw_source,
    )


def report_unsupported(source: JsonObject, path: FieldPath, collector: FindingCollector) -> None:
    """Report tool settings that are unsupported or invalid."""
    for (block, field), why in UNSUPPORTED.items():
        if get_value(source, block, field):
            message = f"`{block}.{field}` is not supported"
            collector.note("argo.unsupported", (*path, block, field), message, why)
    for index, replica in enumerate(get_mappings(source, "kustomize", "replicas")):
        if isinstance(replica.get("count"), str) and not COUNT_PATTERN.fullmatch(
            get_text(replica, "count")
        ):
            message = f"replica count of `{sanitize(get_text(replica, 'name'))}` is not a number"
            count_path = (*path, "kustomize", "replicas", index, "count")
            why = "Argo CD rejects the source"
            collector.error("argo.replicas", count_path, message, why)


def string_list(body: Json, *path: str) -> tuple[str, ...]:
    return tuple(value for value in get_list(body, *path) if isinstance(value, str))


def string_map(body: Json, *path: str) -> dict[str, str]:
    return {key: value for key, value in get_mapping(body, *path).items() if isinstance(value, str)}


def is_true(body: Json, *path: str) -> bool:
    return get_value(body, *path) is True


def _has_content(name: str, block: Json) -> bool:
    """Return whether a tool block has content.

    An empty plugin block has: it requests whichever plugin discovers the source.
    """
    if name == "plugin" or not isinstance(block, dict):
        return block is not None
    return any(_is_significant(field, value) for field, value in block.items())


def _is_significant(field: str, value: Json) -> bool:
    if field == "jsonnet" and isinstance(value, dict):
        return any(value.values())
    if field == "valuesObject":
        return value is not None
    return bool(value) and field not in KUSTOMIZE_MODIFIERS


def _chart_request(source: JsonObject, build: ArgoBuild, directory: str) -> ChartRequest:
    helm = get_mapping(source, "helm")
    return ChartRequest(
        chart=directory,
        name=get_text(helm, "releaseName", default=build.name),
        namespace=get_text(helm, "namespace") or build.namespace or "default",
        values=get_mapping(helm, "valuesObject"),
        kube_version=get_text(helm, "kubeVersion"),
        api_versions=string_list(helm, "apiVersions"),
        include_crds=not is_true(helm, "skipCrds"),
        skip_schema=is_true(helm, "skipSchemaValidation"),
    )


def _inflation_options(source: JsonObject) -> HelmOptions:
    """Read the API versions for charts of an overlay; most installations allow inflation."""
    block = get_mapping(source, "kustomize")
    return HelmOptions(
        kube_version=get_text(block, "kubeVersion"), api_versions=string_list(block, "apiVersions")
    )


def _overrides(block: JsonObject, build: ArgoBuild) -> ArgoOverrides:
    return ArgoOverrides(
        name_prefix=get_text(block, "namePrefix"),
        name_suffix=get_text(block, "nameSuffix"),
        namespace=get_text(block, "namespace"),
        images=string_list(block, "images"),
        replicas=dict(_replicas(block)),
        common_labels=string_map(block, "commonLabels"),
        force_common_labels=is_true(block, "forceCommonLabels"),
        label_without_selector=is_true(block, "labelWithoutSelector"),
        label_include_templates=is_true(block, "labelIncludeTemplates"),
        common_annotations=string_map(block, "commonAnnotations"),
        force_common_annotations=is_true(block, "forceCommonAnnotations"),
        annotation_variables=is_true(block, "commonAnnotationsEnvsubst"),
        patches=tuple(_patch(patch) for patch in get_mappings(block, "patches")),
        components=string_list(block, "components"),
        ignore_missing_components=is_true(block, "ignoreMissingComponents"),
        variables=build.variables(),
    )


def _replicas(block: JsonObject) -> Iterator[tuple[str, int]]:
    for replica in get_mappings(block, "replicas"):
        count = replica.get("count")
        if isinstance(count, int) or (isinstance(count, str) and COUNT_PATTERN.fullmatch(count)):
            yield get_text(replica, "name"), int(count)


def _patch(body: JsonObject) -> KustomizePatch:
    options = get_mapping(body, "options").items()
    return KustomizePatch(
        patch=get_text(body, "patch"),
        path=get_text(body, "path"),
        target=string_map(body, "target"),
        options={key: value for key, value in options if isinstance(value, bool)},
    )


def _directory(block: JsonObject, build: ArgoBuild, directory: str) -> Directory:
    jsonnet = JsonnetOptions(
        external=_variables(block, "extVars"),
        arguments=_variables(block, "tlas"),
        libraries=string_list(block, "jsonnet", "libs"),
        variables=build.variables(),
    )
    return Directory(
        path=directory,
        recurse=is_true(block, "recurse"),
        include=get_text(block, "include"),
        exclude=get_text(block, "exclude"),
        jsonnet=jsonnet,
    )


def _variables(block: JsonObject, name: str) -> tuple[JsonnetVariable, ...]:
    return tuple(
        JsonnetVariable(
            get_text(variable, "name"), get_text(variable, "value"), is_true(variable, "code")
        )
        for variable in get_mappings(block, "jsonnet", name)
    )
