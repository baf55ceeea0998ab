"""How a source of an Application is rendered: what its blocks say, tool by tool."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.dialect.argo.telling import Telling
from tidegate.documents.document import FieldPath
from tidegate.errors import foreign
from tidegate.model.objects import Json
from tidegate.model.patterns import late
from tidegate.model.reading import listed, mapping, mappings, part, text
from tidegate.model.release import How, Parameter, Release
from tidegate.model.rendering import (
    ArgoBuild,
    ArgoDetails,
    ArgoOverrides,
    ArgoPlugin,
    Detected,
    Directory,
    Helm,
    Jsonnet,
    Overlay,
    Patch,
    Request,
    Tool,
    Variable,
)

Body = dict[str, Json]
BLOCKS = {
    "kustomize": Tool.KUSTOMIZE,
    "helm": Tool.HELM,
    "directory": Tool.DIRECTORY,
    "plugin": Tool.PLUGIN,
}
SILENT = frozenset(
    {
        "commonAnnotationsEnvsubst",
        "forceCommonAnnotations",
        "forceCommonLabels",
        "labelIncludeTemplates",
        "labelWithoutSelector",
    }
)
"""Switches of kustomize's block that say nothing by themselves."""
UNPLAYED = {
    ("helm", "skipTests"): "Argo CD applies no tests of charts, with or without it",
    ("helm", "version"): "charts are rendered by the Helm that is built in",
    ("kustomize", "version"): "overlays are built by the kustomize that is found here",
}
"""Fields that change nothing here, and why."""
COUNT = late(r"[+-]?[0-9]{1,18}")


def without_silent_blocks(source: Body) -> Body:
    """The source as Argo CD keeps it: blocks in which nothing is said are taken out.

    That is done to `spec.source` alone: among `spec.sources` an empty block chooses a tool.
    """
    return {key: one for key, one in source.items() if key not in BLOCKS or _says(key, one)}


def said_tools(source: Body) -> list[Tool]:
    """The tools whose blocks stand in the source. A chart without a block is Helm's."""
    tools = [tool for name, tool in BLOCKS.items() if source.get(name) is not None]
    return tools or ([Tool.HELM] if source.get("chart") else [])


def read_request(
    source: Body, tools: list[Tool], build: ArgoBuild, inside: str
) -> Request | Detected | ArgoPlugin:
    """What is rendered of the directory `inside`; without a tool its files will say which one."""
    match tools:
        case [Tool.HELM]:
            return _release(source, build, inside)
        case [Tool.KUSTOMIZE]:
            overrides = _overrides(mapping(source, "kustomize"), build)
            return Overlay(path=inside, overrides=overrides, helm=_inflation(source))
        case [Tool.DIRECTORY]:
            return _directory(mapping(source, "directory"), build, inside)
        case [Tool.PLUGIN]:
            return ArgoPlugin(path=inside, name=text(source, "plugin", "name"))
        case _:
            return Detected(
                path=inside,
                chart=_release(source, build, inside),
                overlay=Overlay(path=inside, helm=_inflation(source)),
                directory=_directory({}, build, inside),
            )


def read_details(source: Body, build: ArgoBuild, written: bytes) -> ArgoDetails:
    """What the tree settles. `valuesObject` takes the place of `values`, even an empty one."""
    helm = mapping(source, "helm")
    return ArgoDetails(
        build=build,
        ref=text(source, "ref"),
        value_files=texts(helm, "valueFiles"),
        ignore_missing=is_set(helm, "ignoreMissingValueFiles"),
        values_text="" if part(helm, "valuesObject") is not None else text(helm, "values"),
        parameters=tuple(
            Parameter(
                text(one, "name"),
                text(one, "value"),
                How.STRING if is_set(one, "forceString") else How.TYPED,
            )
            for one in mappings(helm, "parameters")
        ),
        file_parameters=tuple(
            (text(one, "name"), text(one, "path")) for one in mappings(helm, "fileParameters")
        ),
        written=written,
    )


def tell_unplayed(source: Body, path: FieldPath, telling: Telling) -> None:
    """What is said of tools and cannot be done."""
    for (block, field), why in UNPLAYED.items():
        if part(source, block, field):
            said = f"`{block}.{field}` is not played"
            telling.note("argo.unplayed", (*path, block, field), said, why)
    for place, one in enumerate(mappings(source, "kustomize", "replicas")):
        if isinstance(one.get("count"), str) and not COUNT.fullmatch(text(one, "count")):
            said = f"the replicas of `{foreign(text(one, 'name'))}` are no number"
            spot = (*path, "kustomize", "replicas", place, "count")
            telling.error("argo.replicas", spot, said, "Argo CD refuses to build it")


def texts(body: Json, *path: str) -> tuple[str, ...]:
    return tuple(one for one in listed(body, *path) if isinstance(one, str))


def text_map(body: Json, *path: str) -> dict[str, str]:
    return {key: one for key, one in mapping(body, *path).items() if isinstance(one, str)}


def is_set(body: Json, *path: str) -> bool:
    return part(body, *path) is True


def _says(name: str, block: Json) -> bool:
    """An empty plugin block counts too: it asks for whichever plugin claims the source."""
    if name == "plugin" or not isinstance(block, dict):
        return block is not None
    return any(_is_said(field, value) for field, value in block.items())


def _is_said(field: str, value: Json) -> bool:
    if field == "jsonnet" and isinstance(value, dict):
        return any(value.values())
    if field == "valuesObject":
        return value is not None
    return bool(value) and field not in SILENT


def _release(source: Body, build: ArgoBuild, inside: str) -> Release:
    helm = mapping(source, "helm")
    return Release(
        chart=inside,
        name=text(helm, "releaseName", default=build.name),
        namespace=text(helm, "namespace") or build.namespace or "default",
        values=mapping(helm, "valuesObject"),
        kube_version=text(helm, "kubeVersion"),
        api_versions=texts(helm, "apiVersions"),
        include_crds=not is_set(helm, "skipCrds"),
        skip_schema=is_set(helm, "skipSchemaValidation"),
    )


def _inflation(source: Body) -> Helm:
    """What charts see that an overlay inflates: most installations allow that."""
    block = mapping(source, "kustomize")
    return Helm(kube_version=text(block, "kubeVersion"), api_versions=texts(block, "apiVersions"))


def _overrides(block: Body, build: ArgoBuild) -> ArgoOverrides:
    return ArgoOverrides(
        name_prefix=text(block, "namePrefix"),
        name_suffix=text(block, "nameSuffix"),
        namespace=text(block, "namespace"),
        images=texts(block, "images"),
        replicas=dict(_replicas(block)),
        common_labels=text_map(block, "commonLabels"),
        force_common_labels=is_set(block, "forceCommonLabels"),
        label_without_selector=is_set(block, "labelWithoutSelector"),
        label_include_templates=is_set(block, "labelIncludeTemplates"),
        common_annotations=text_map(block, "commonAnnotations"),
        force_common_annotations=is_set(block, "forceCommonAnnotations"),
        annotation_variables=is_set(block, "commonAnnotationsEnvsubst"),
        patches=tuple(_patch(one) for one in mappings(block, "patches")),
        components=texts(block, "components"),
        ignore_missing_components=is_set(block, "ignoreMissingComponents"),
        variables=build.variables(),
    )


def _replicas(block: Body) -> Iterator[tuple[str, int]]:
    for one in mappings(block, "replicas"):
        count = one.get("count")
        if isinstance(count, int) or (isinstance(count, str) and COUNT.fullmatch(count)):
            yield text(one, "name"), int(count)


def _patch(body: Body) -> Patch:
    options = mapping(body, "options").items()
    return Patch(
        patch=text(body, "patch"),
        path=text(body, "path"),
        target=text_map(body, "target"),
        options={key: one for key, one in options if isinstance(one, bool)},
    )


def _directory(block: Body, build: ArgoBuild, inside: str) -> Directory:
    jsonnet = Jsonnet(
        external=_variables(block, "extVars"),
        arguments=_variables(block, "tlas"),
        libraries=texts(block, "jsonnet", "libs"),
        variables=build.variables(),
    )
    return Directory(
        path=inside,
        recurse=is_set(block, "recurse"),
        include=text(block, "include"),
        exclude=text(block, "exclude"),
        jsonnet=jsonnet,
    )


def _variables(block: Body, name: str) -> tuple[Variable, ...]:
    return tuple(
        Variable(text(one, "name"), text(one, "value"), is_set(one, "code"))
        for one in mappings(block, "jsonnet", name)
    )
