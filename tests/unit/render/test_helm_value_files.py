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
def among(tmp_path: Path) -> ValueFiles:
    root, other = tmp_path / "source", tmp_path / "other"
    for path in (*(root / name for name in FILES), other / "a" / "v.yaml", other / "b" / "v.yaml"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
    return ValueFiles(root=root, chart="web", refs={"values": other}, variables=VARIABLES)


def paths(among: ValueFiles, *entries: str) -> list[str]:
    """What entries mean; files of the other source with its name before them."""
    result = []
    for layer in find_value_files(entries, among):
        assert isinstance(layer, ValuesFile)
        assert layer.root in {"", str(among.refs["values"])}
        result.append(f"other:{layer.path}" if layer.root else layer.path)
    return result


def refused(among: ValueFiles, *entries: str) -> RenderError:
    with pytest.raises(RenderError) as caught:
        find_value_files(entries, among)
    return caught.value


@pytest.mark.parametrize(
    ("entries", "found"),
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
async def test_an_entry_means_what_it_means_in_argo(
    entries: list[str], found: list[str], among: ValueFiles
) -> None:
    assert paths(among, *entries) == found


async def test_files_of_a_directory_come_before_those_further_down(among: ValueFiles) -> None:
    assert paths(among, "envs/**/[a-w]*.yaml") == [
        "/web/envs/dev.yaml",
        "/web/envs/prod.yaml",
        "/web/envs/eu/west.yaml",
        "/web/envs/eu/deep/a.yaml",
    ]


async def test_a_file_that_is_named_by_itself_stands_where_it_is_named(among: ValueFiles) -> None:
    result = paths(among, "envs/*.yaml", "values.yaml", "envs/dev.yaml", "envs/d*.yaml")

    assert result == [
        "/web/envs/.hidden.yaml",
        "/web/envs/prod.yaml",
        "/web/envs/zone.yaml",
        "/web/values.yaml",
        "/web/envs/dev.yaml",
    ]


async def test_of_what_is_named_twice_the_first_counts(among: ValueFiles) -> None:
    assert paths(among, "values.yaml", "/shared.yaml", "/web/values.yaml") == [
        "/web/values.yaml",
        "/shared.yaml",
    ]


async def test_a_pattern_finds_nothing_behind_a_link_out(among: ValueFiles) -> None:
    (among.root / "out").symlink_to("../other/a")

    assert refused(among, "/out/*.yaml").problem == "no file fits `/out/*.yaml`"


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("envs/*.json", "render.helm.file"),
        ("../../*.yaml", "render.helm.outside"),
        ("$values/../../a/v.yaml", "render.helm.outside"),
        ("/{..,web}/*.yaml", "render.helm.outside"),
        ("envs/[a.yaml", "render.helm.pattern"),
        ("$nobody/v.yaml", "render.helm.reference"),
        ("file:///etc/hostname", "render.helm.file"),
        ("git+ssh://host/values.yaml", "render.helm.file"),
        ("https://far.example/v.yaml", "render.helm.remote-values"),
    ],
)
async def test_what_cannot_be_had_is_refused(entry: str, code: str, among: ValueFiles) -> None:
    error = refused(among, entry)

    assert error.code == code
    assert error.location is not None


async def test_missing_files_and_patterns_can_be_ignored(among: ValueFiles) -> None:
    lenient = msgspec.structs.replace(among, ignore_missing=True)

    value_files = find_value_files(["envs/*.json", "absent.yaml"], lenient)

    assert value_files == (ValuesFile("/web/absent.yaml", optional=True),)


async def test_web_addresses_are_told_all_at_once_and_then_used(among: ValueFiles) -> None:
    entries = ("https://far.example/a.yaml", "values.yaml", "http://far.example/$ARGOCD_APP_NAME")

    error = refused(among, *entries)
    assert isinstance(error, RemoteValuesError)
    fetched = {url: f"from: {number}\n" for number, url in enumerate(error.urls)}
    value_files = find_value_files(entries, msgspec.structs.replace(among, fetched=fetched))

    assert error.urls == ("https://far.example/a.yaml", "http://far.example/prod")
    assert value_files == (
        ValuesText("from: 0\n", "https://far.example/a.yaml", is_file=True),
        ValuesFile("/web/values.yaml"),
        ValuesText("from: 1\n", "http://far.example/prod", is_file=True),
    )


async def test_a_file_parameter_starts_where_value_files_start(among: ValueFiles) -> None:
    other = str(among.refs["values"])

    assert find_file_parameter("a", "cert.pem", among) == FileParameter("a", "/web/cert.pem")
    assert find_file_parameter("a", "$values/c", among) == FileParameter("a", "c", other)
    with pytest.raises(RenderError, match="from a file"):
        find_file_parameter("a", "https://far.example/c", among)


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
