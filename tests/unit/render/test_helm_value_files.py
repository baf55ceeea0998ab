"""Which files `valueFiles` of an Application mean."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.support.helm_charts import data_of, write_chart
from tidegate.errors import RenderError
from tidegate.external.worker import Workers
from tidegate.model.units.chart_request import (
    ChartRequest,
    FileParameter,
    Parameter,
    ParameterType,
    ValuesFile,
    ValuesText,
)
from tidegate.render.helm import (
    RemoteValuesError,
    ValueFiles,
    argo_layers,
    find_file_parameter,
    find_value_files,
    helm_workers,
    render,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one worker for all of them

FILES = (
    *("web/values.yaml", "web/envs/prod.yaml", "web/envs/dev.yaml", "web/envs/.hidden.yaml"),
    *("web/envs/eu/west.yaml", "web/envs/eu/deep/a.yaml", "web/envs/zone.yaml", "shared.yaml"),
)
VARIABLES = {"ARGOCD_APP_NAME": "prod"}
TEMPLATE = """apiVersion: v1
kind: ConfigMap
metadata: {name: shop}
data: {{ .Values | toJson }}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers() -> AsyncIterator[Workers]:
    async with helm_workers(count=1) as running:
        yield running


@pytest.fixture
def value_files(tmp_path: Path) -> ValueFiles:
    root, other = tmp_path / "source", tmp_path / "other"
    for path in (*(root / name for name in FILES), other / "a" / "v.yaml", other / "b" / "v.yaml"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
    return ValueFiles(root=root, chart="web", refs={"values": other}, variables=VARIABLES)


def paths(value_files: ValueFiles, *entries: str) -> list[str]:
    """What entries mean; files of the other source with its name before them."""
    result = []
    for layer in find_value_files(entries, value_files):
        assert isinstance(layer, ValuesFile)
        assert layer.root in {"", str(value_files.refs["values"])}
        result.append(f"other:{layer.path}" if layer.root else layer.path)
    return result


def refused(value_files: ValueFiles, *entries: str) -> RenderError:
    with pytest.raises(RenderError) as caught:
        find_value_files(entries, value_files)
    return caught.value


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (["values.yaml", "/shared.yaml"], ["/web/values.yaml", "/shared.yaml"]),
        (["../shared.yaml"], ["/shared.yaml"]),
        (["envs/$ARGOCD_APP_NAME.yaml"], ["/web/envs/prod.yaml"]),
        (["$values/a/v.yaml"], ["other:a/v.yaml"]),
        (["$values/*/v.yaml"], ["other:a/v.yaml", "other:b/v.yaml"]),
        (["envs/[dp]*.yaml"], ["/web/envs/dev.yaml", "/web/envs/prod.yaml"]),
        (["envs/[^dp]*.yaml"], ["/web/envs/.hidden.yaml", "/web/envs/zone.yaml"]),
        (["envs/{prod,de?}.yaml"], ["/web/envs/prod.yaml", "/web/envs/dev.yaml"]),
    ],
)
async def test_an_entry_means_the_same_as_in_argo_cd(
    entries: list[str], expected: list[str], value_files: ValueFiles
) -> None:
    assert paths(value_files, *entries) == expected


async def test_files_of_a_directory_precede_those_of_subdirectories(
    value_files: ValueFiles,
) -> None:
    assert paths(value_files, "envs/**/[a-w]*.yaml") == [
        "/web/envs/dev.yaml",
        "/web/envs/prod.yaml",
        "/web/envs/eu/west.yaml",
        "/web/envs/eu/deep/a.yaml",
    ]


async def test_a_file_with_an_entry_of_its_own_is_merged_there(value_files: ValueFiles) -> None:
    result = paths(value_files, "envs/*.yaml", "values.yaml", "envs/dev.yaml", "envs/d*.yaml")

    assert result == [
        "/web/envs/.hidden.yaml",
        "/web/envs/prod.yaml",
        "/web/envs/zone.yaml",
        "/web/values.yaml",
        "/web/envs/dev.yaml",
    ]


async def test_the_first_of_two_entries_for_one_file_counts(value_files: ValueFiles) -> None:
    assert paths(value_files, "values.yaml", "/shared.yaml", "/web/values.yaml") == [
        "/web/values.yaml",
        "/shared.yaml",
    ]


async def test_a_pattern_finds_nothing_through_a_link_out_of_the_source(
    value_files: ValueFiles,
) -> None:
    (value_files.root / "out").symlink_to("../other/a")

    error = refused(value_files, "/out/*.yaml")
    assert error.code == "render.helm.file"
    assert "`/out/*.yaml`" in error.problem


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("envs/*.json", "render.helm.file"),
        ("../../*.yaml", "render.helm.outside"),
        ("$values/../../a/v.yaml", "render.helm.outside"),
        ("/{..,web}/*.yaml", "render.helm.outside"),
        ("envs/[a.yaml", "render.helm.pattern"),
        ("$unknown/v.yaml", "render.helm.reference"),
        ("file:///etc/hostname", "render.helm.file"),
        ("git+ssh://host/values.yaml", "render.helm.file"),
        ("https://far.example/v.yaml", "render.helm.remote-values"),
    ],
)
async def test_an_entry_that_cannot_be_read_is_refused(
    entry: str, code: str, value_files: ValueFiles
) -> None:
    error = refused(value_files, entry)

    assert error.code == code
    assert error.location is not None


async def test_missing_files_and_patterns_can_be_ignored(value_files: ValueFiles) -> None:
    lenient = msgspec.structs.replace(value_files, ignore_missing=True)

    layers = find_value_files(["envs/*.json", "absent.yaml"], lenient)

    assert layers == (ValuesFile("/web/absent.yaml", optional=True),)


async def test_urls_are_listed_all_at_once_and_then_used(value_files: ValueFiles) -> None:
    entries = ("https://far.example/a.yaml", "values.yaml", "http://far.example/$ARGOCD_APP_NAME")

    error = refused(value_files, *entries)
    assert isinstance(error, RemoteValuesError)
    fetched = {url: f"from: {number}\n" for number, url in enumerate(error.urls)}
    layers = find_value_files(entries, msgspec.structs.replace(value_files, fetched=fetched))

    assert error.urls == ("https://far.example/a.yaml", "http://far.example/prod")
    assert layers == (
        ValuesText("from: 0\n", "https://far.example/a.yaml", is_file=True),
        ValuesFile("/web/values.yaml"),
        ValuesText("from: 1\n", "http://far.example/prod", is_file=True),
    )


async def test_a_file_parameter_starts_where_value_files_start(value_files: ValueFiles) -> None:
    other = str(value_files.refs["values"])

    assert find_file_parameter("a", "cert.pem", value_files) == FileParameter("a", "/web/cert.pem")
    assert find_file_parameter("a", "$values/c", value_files) == FileParameter("a", "c", other)
    with pytest.raises(RenderError) as refusal:
        find_file_parameter("a", "https://far.example/c", value_files)
    assert refusal.value.code == "render.helm.file"
    assert "`a`" in refusal.value.problem


async def test_the_last_file_wins_and_parameters_name_variables(
    workers: Workers, tmp_path: Path
) -> None:
    write_chart(tmp_path / "web", template=TEMPLATE, values="who: chart\n")
    for name, who in (("a", "first"), ("b", "second")):
        (tmp_path / f"{name}.yaml").write_text(f"who: {who}\n{name}: 'yes'\n")
    files = find_value_files(["/*.yaml"], ValueFiles(root=tmp_path, chart="web"))
    parameters = [
        Parameter("app", "$ARGOCD_APP_NAME,$$x"),
        Parameter("text", "${ARGOCD_APP_NAME}", ParameterType.STRING),
    ]
    layers = argo_layers(files, parameters=parameters, variables=VARIABLES)
    release = ChartRequest(root=str(tmp_path), chart="web", name="shop", layers=layers)

    documents = await render(release, workers)

    assert data_of(documents) == {
        "who": "second",
        "a": "yes",
        "b": "yes",
        "app": "prod,$x",
        "text": "prod",
    }


async def test_a_match_that_leads_out_of_the_source_is_refused(
    workers: Workers, tmp_path: Path
) -> None:
    write_chart(tmp_path / "source" / "web")
    (tmp_path / "secret.yaml").write_text("a: b\n")
    (tmp_path / "source" / "link.yaml").symlink_to("../secret.yaml")
    files = find_value_files(["/*.yaml"], ValueFiles(root=tmp_path / "source", chart="web"))
    release = ChartRequest(
        root=str(tmp_path / "source"), chart="web", name="shop", layers=argo_layers(files)
    )

    with pytest.raises(RenderError) as caught:
        await render(release, workers)

    assert caught.value.code == "render.helm.outside"
