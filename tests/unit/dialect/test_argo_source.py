"""Sources of Applications: which tree, which tool, every field, and what is wrong with them."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.dialect.applications import CHARTS, GIT, OWNER, WEB, a_source, codes, details
from tidegate.dialect.argo.render_requests import explicit_tools, without_empty_blocks
from tidegate.dialect.argo.source import read_source
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.units.chart_request import ChartRequest, Parameter, ParameterType
from tidegate.model.units.rendering import (
    ArgoBuild,
    ArgoOverrides,
    ArgoPlugin,
    Directory,
    JsonnetOptions,
    JsonnetVariable,
    KustomizePatch,
    LoadRestriction,
    Overlay,
    Tool,
    ToolDetection,
)
from tidegate.model.units.source import (
    ChartSource,
    GitRef,
    GitRefKind,
    GitSource,
    OciSource,
    SourceRef,
)

ARTIFACT = "oci://registry.example/web"
CHART: JsonObject = {"chart": "redis", "path": None, "targetRevision": "1.2.3"}
BUILD = ArgoBuild(name="web", namespace="shop", project="team", repository=GIT, path="web")


def helm(**fields: Json) -> ChartRequest:
    request = a_source(helm={"releaseName": "web", **fields}).request
    assert isinstance(request, ChartRequest)
    return request


@pytest.mark.parametrize(
    ("body", "source"),
    [
        ({}, GitSource(GIT, submodules=True)),
        ({"targetRevision": "HEAD"}, GitSource(GIT, submodules=True)),
        (
            {"targetRevision": "v1.*"},
            GitSource(GIT, GitRef(GitRefKind.ANY, "v1.*"), submodules=True),
        ),
        (
            {"targetRevision": "1.*", "tagPrefix": "web-"},
            GitSource(GIT, GitRef(GitRefKind.ANY, "1.*", "web-"), submodules=True),
        ),
        ({**CHART, "repoURL": CHARTS}, ChartSource(CHARTS, "redis", "1.2.3")),
        (
            {**CHART, "repoURL": CHARTS, "helm": {"passCredentials": True}},
            ChartSource(CHARTS, "redis", "1.2.3", shares_credentials=True),
        ),
        (
            {**CHART, "repoURL": "registry.example/charts/"},
            ChartSource("oci://registry.example/charts", "redis", "1.2.3"),
        ),
        (
            {**CHART, "repoURL": "localhost:5000/charts"},
            ChartSource("oci://localhost:5000/charts", "redis", "1.2.3"),
        ),
        ({"repoURL": ARTIFACT}, OciSource(ARTIFACT)),
        ({"repoURL": ARTIFACT, "targetRevision": "v1"}, OciSource(ARTIFACT, tag="v1")),
        ({"repoURL": ARTIFACT, "targetRevision": "1.x"}, OciSource(ARTIFACT, range="1.x")),
        ({"repoURL": ARTIFACT, "targetRevision": ">=1, <2"}, OciSource(ARTIFACT, range=">=1, <2")),
        (
            {"repoURL": ARTIFACT, "targetRevision": "sha256:ab"},
            OciSource(ARTIFACT, digest="sha256:ab"),
        ),
    ],
)
def test_the_url_determines_the_kind_of_source(body: JsonObject, source: SourceRef) -> None:
    assert a_source(**body).source == source


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"repoURL": ""}, "error argo.source at spec.source.repoURL"),
        ({"path": ""}, "error argo.source at spec.source.path"),
        ({"path": None, "ref": "a"}, "error argo.source at spec.source.path"),
        ({"path": None, "repoURL": ARTIFACT}, "error argo.source at spec.source.path"),
        ({"path": "/web"}, "error argo.path at spec.source.path"),
        ({"path": "a/../../web"}, "error argo.path at spec.source.path"),
        ({"helm": {}, "kustomize": {}}, "error argo.tools at spec.source"),
    ],
)
def test_unsupported_sources_are_errors(body: JsonObject, expected: str) -> None:
    source, findings = read_source({**WEB, **body}, OWNER)

    assert source is None
    assert codes(findings) == [expected]


def test_a_chart_needs_a_version() -> None:
    source, findings = read_source({**WEB, "chart": "redis"}, OWNER)

    assert source is not None
    assert codes(findings) == ["error argo.source at spec.source.targetRevision"]


def test_a_chart_in_a_registry_is_found_and_its_scheme_is_reported() -> None:
    source, findings = read_source({**WEB, **CHART, "repoURL": ARTIFACT}, OWNER)

    assert source is not None
    assert source.source == ChartSource(ARTIFACT, "redis", "1.2.3")
    assert codes(findings) == ["warning argo.registry at spec.source.repoURL"]


def test_one_of_several_sources_may_have_only_a_ref() -> None:
    among = msgspec.structs.replace(OWNER, path=("spec", "sources", 0))

    source, findings = read_source({"repoURL": GIT, "ref": "values"}, among)

    assert findings == ()
    assert source is not None
    assert source.request is None
    assert source.path == ""


def test_without_a_tool_block_the_files_determine_the_tool() -> None:
    request = a_source(path="./web/").request

    assert isinstance(request, ToolDetection)
    assert request.path == request.chart.chart == request.overlay.path == "web"
    assert request.chart.name == "web"
    assert request.directory.path == "web"
    assert request.directory.jsonnet == JsonnetOptions(
        variables=msgspec.structs.replace(BUILD, path="./web/").variables()
    )


@pytest.mark.parametrize(
    ("source", "tools"),
    [
        ({"kustomize": {"namePrefix": "a-"}}, [Tool.KUSTOMIZE]),
        ({"kustomize": {"commonLabels": {"team": ""}}}, [Tool.KUSTOMIZE]),
        ({"kustomize": {"forceCommonLabels": True}}, []),
        ({"helm": {"releaseName": "web"}}, [Tool.HELM]),
        ({"helm": {"valuesObject": {}}}, [Tool.HELM]),
        ({"helm": {"valuesObject": None, "values": ""}}, []),
        ({"directory": {"recurse": True}}, [Tool.DIRECTORY]),
        ({"directory": {"jsonnet": {"libs": ["vendor"]}}}, [Tool.DIRECTORY]),
        ({"directory": {"recurse": False, "jsonnet": {"extVars": []}}}, []),
        ({"directory": {"include": "*.yaml"}}, [Tool.DIRECTORY]),
        ({"plugin": {}}, [Tool.PLUGIN]),
        ({"chart": "web"}, [Tool.HELM]),
        ({"helm": {"values": "a: 1"}, "kustomize": {}, "directory": {}}, [Tool.HELM]),
        (
            {"helm": {"values": "a: 1"}, "kustomize": {"namePrefix": "a-"}},
            [Tool.KUSTOMIZE, Tool.HELM],
        ),
    ],
)
def test_a_non_empty_tool_block_determines_the_tool(source: JsonObject, tools: list[Tool]) -> None:
    assert explicit_tools(without_empty_blocks(source)) == tools


@pytest.mark.parametrize(
    ("block", "tool"),
    [
        ("helm", ChartRequest),
        ("kustomize", Overlay),
        ("directory", Directory),
        ("plugin", ArgoPlugin),
    ],
)
def test_a_block_that_was_kept_decides_even_if_it_is_empty(block: str, tool: type[object]) -> None:
    assert isinstance(a_source(**{block: {}}).request, tool)


def test_a_chart_has_its_directory_to_itself() -> None:
    request = a_source(**{**CHART, "repoURL": CHARTS}, helm={"values": "a: 1"}).request

    assert isinstance(request, ChartRequest)
    assert request.chart == "."


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({}, "chart", "web"),
        ({"releaseName": "other"}, "name", "other"),
        ({}, "namespace", "shop"),
        ({"namespace": "other"}, "namespace", "other"),
        ({"valuesObject": {"a": 1}}, "values", {"a": 1}),
        ({}, "include_crds", True),
        ({"skipCrds": True}, "include_crds", False),
        ({}, "skip_schema", False),
        ({"skipSchemaValidation": True}, "skip_schema", True),
        ({}, "kube_version", ""),
        ({"kubeVersion": "1.30"}, "kube_version", "1.30"),
        ({"apiVersions": ["v1/Pod"]}, "api_versions", ("v1/Pod",)),
        ({}, "checks_lock", True),
    ],
)
def test_the_helm_block_becomes_options_of_helm(
    fields: JsonObject, name: str, value: object
) -> None:
    assert getattr(helm(**fields), name) == value


def test_a_release_has_the_name_of_its_application_and_a_namespace() -> None:
    owner = msgspec.structs.replace(OWNER, namespace="")

    source, _ = read_source({**WEB, "helm": {"values": "a: 1"}}, owner)

    assert source is not None
    assert isinstance(source.request, ChartRequest)
    assert (source.request.name, source.request.namespace) == ("web", "default")


def test_values_files_are_resolved_with_the_source() -> None:
    result = details(
        helm={
            "valueFiles": ["a.yaml", "$values/b.yaml"],
            "ignoreMissingValueFiles": True,
            "values": "a: 1",
            "parameters": [
                {"name": "a", "value": "1"},
                {"name": "b", "value": "2", "forceString": True},
            ],
            "fileParameters": [{"name": "c", "path": "c.txt"}],
        },
        ref="web",
    )

    assert result.build == BUILD
    assert result.ref == "web"
    assert result.value_files == ("a.yaml", "$values/b.yaml")
    assert result.ignore_missing
    assert result.values_text == "a: 1"
    assert result.parameters == (Parameter("a", "1"), Parameter("b", "2", ParameterType.STRING))
    assert result.file_parameters == (("c", "c.txt"),)
    assert msgspec.json.decode(result.source_json)["ref"] == "web"


@pytest.mark.parametrize(("values", "text"), [({}, ""), ({"b": 2}, ""), (None, "a: 1")])
def test_values_as_an_object_take_the_place_of_the_text(values: Json, text: str) -> None:
    assert details(helm={"values": "a: 1", "valuesObject": values}).values_text == text


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"namePrefix": "a-"}, "name_prefix", "a-"),
        ({"nameSuffix": "-a"}, "name_suffix", "-a"),
        ({"namespace": "other"}, "namespace", "other"),
        ({"images": ["web=web:2"]}, "images", ("web=web:2",)),
        (
            {"replicas": [{"name": "a", "count": 2}, {"name": "b", "count": "3"}]},
            "replicas",
            {"a": 2, "b": 3},
        ),
        ({"commonLabels": {"a": "b"}}, "common_labels", {"a": "b"}),
        ({"forceCommonLabels": True}, "force_common_labels", True),
        ({"labelWithoutSelector": True}, "label_without_selector", True),
        ({"labelIncludeTemplates": True}, "label_include_templates", True),
        ({"commonAnnotations": {"a": "b"}}, "common_annotations", {"a": "b"}),
        ({"forceCommonAnnotations": True}, "force_common_annotations", True),
        ({"commonAnnotationsEnvsubst": True}, "annotation_variables", True),
        (
            {
                "patches": [
                    {
                        "path": "a.yaml",
                        "patch": "b",
                        "target": {"kind": "Pod"},
                        "options": {"allowNameChange": True},
                    }
                ]
            },
            "patches",
            (
                KustomizePatch(
                    path="a.yaml",
                    patch="b",
                    target={"kind": "Pod"},
                    options={"allowNameChange": True},
                ),
            ),
        ),
        ({"components": ["../a"]}, "components", ("../a",)),
        ({"ignoreMissingComponents": True}, "ignore_missing_components", True),
        ({}, "variables", BUILD.variables()),
    ],
)
def test_the_kustomize_block_becomes_options_of_kustomize(
    fields: JsonObject, name: str, value: object
) -> None:
    request = a_source(kustomize=fields).request

    assert isinstance(request, Overlay)
    assert isinstance(request.overrides, ArgoOverrides)
    assert getattr(request.overrides, name) == value
    assert request.restriction is LoadRestriction.ROOT_ONLY


def test_the_directory_block_becomes_options_of_the_directory() -> None:
    jsonnet: JsonObject = {
        "extVars": [{"name": "a", "value": "1"}],
        "tlas": [{"name": "b", "value": "2", "code": True}],
        "libs": ["vendor"],
    }
    block: JsonObject = {"recurse": True, "include": "*.yaml", "exclude": "x*", "jsonnet": jsonnet}

    assert a_source(directory=block).request == Directory(
        path="web",
        recurse=True,
        include="*.yaml",
        exclude="x*",
        jsonnet=JsonnetOptions(
            external=(JsonnetVariable("a", "1"),),
            arguments=(JsonnetVariable("b", "2", code=True),),
            libraries=("vendor",),
            variables=BUILD.variables(),
        ),
    )


def test_a_plugin_is_identified_by_its_name() -> None:
    assert a_source(plugin={"name": "cue"}).request == ArgoPlugin(path="web", name="cue")


@pytest.mark.parametrize(
    ("block", "field", "value"),
    [
        ("helm", "skipTests", True),
        ("helm", "version", "v3"),
        ("kustomize", "version", "v5"),
    ],
)
def test_unsupported_fields_are_reported(block: str, field: str, value: Json) -> None:
    source, findings = read_source({**WEB, block: {field: value}}, OWNER)

    assert source is not None
    assert codes(findings) == [f"note argo.unsupported at spec.source.{block}.{field}"]


def test_replicas_that_are_no_number_are_reported() -> None:
    replicas: Json = [{"name": "a", "count": "many"}]

    _, findings = read_source({**WEB, "kustomize": {"replicas": replicas}}, OWNER)

    assert codes(findings) == ["error argo.replicas at spec.source.kustomize.replicas[0].count"]
