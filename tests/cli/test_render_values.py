"""`tidegate render -f`: values of a chart from files and from web servers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.helm_charts import write_chart
from tests.support.tidegate_command import Tidegate
from tests.support.web_files import Files
from tests.support.web_server import listening
from tidegate.model.units.chart_request import ValuesFile, ValuesText
from tidegate.render.helm import ValueFiles
from tidegate.source import Cache
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.resolve import find_values

TEMPLATE = """apiVersion: v1
kind: ConfigMap
metadata:
  name: web
data:
  motto: {{ .Values.motto }}
  size: {{ .Values.size }}
"""


@pytest.fixture
def tidegate(tmp_path: Path) -> Tidegate:
    return Tidegate(tmp_path / "home")


def a_chart(place: Path) -> Path:
    return write_chart(place / "web", template=TEMPLATE, values="motto: own\nsize: small\n")


def data_in(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.startswith("  motto:") or "size:" in line]


async def test_remote_values_are_merged_in_order_and_cached(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    chart = a_chart(tmp_path)
    (tmp_path / "last.yaml").write_text("size: large\n")
    files = Files({"/prod.yaml": b"motto: far\n---\nsize: middle\n---\nmotto: farther\n"})
    async with listening(files.app()) as url:
        given = ("-f", f"{url}/prod.yaml?token=canary", "-f", tmp_path / "last.yaml")
        first = await tidegate.run("render", chart, *given)

    offline = await tidegate.run("render", chart, *given, "--offline")

    assert data_in(first.lines) == ["motto: farther", "size: large"]
    assert offline.stdout == first.stdout
    assert (offline.code, offline.stderr) == (0, "")


@pytest.mark.parametrize("options", [(), ("--offline",)])
async def test_a_chart_with_unavailable_values_is_incomplete(
    tidegate: Tidegate, tmp_path: Path, options: tuple[str, ...]
) -> None:
    async with listening(Files().app()) as url:
        gone = ("-f", f"{url}/a.yaml?token=canary", "-f", f"{url}/b.yaml")
        ran = await tidegate.run("render", a_chart(tmp_path), *gone, *options)

    code = "source.offline" if options else "source.http.missing"
    assert (ran.code, ran.stdout) == (3, "")
    assert ran.stderr.count(f"error[{code}]") == 2
    assert "canary" not in ran.stderr


async def test_an_error_in_fetched_values_is_reported_without_the_token_of_the_url(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    async with listening(Files({"/a.yaml": b"- a list\n"}).app()) as url:
        ran = await tidegate.run("render", a_chart(tmp_path), "-f", f"{url}/a.yaml?token=canary")

    assert ran.code == 3
    assert "error[render.helm.values]" in ran.stderr
    assert f"{url}/a.yaml" in ran.stderr
    assert "canary" not in ran.stderr


async def test_a_linked_values_file_is_read(tidegate: Tidegate, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "real.yaml").write_text("motto: linked\n")
    (tmp_path / "values.yaml").symlink_to("far/real.yaml")

    ran = await tidegate.run("render", a_chart(tmp_path), "-f", tmp_path / "values.yaml")

    assert data_in(ran.lines) == ["motto: linked", "size: small"]


async def test_values_that_are_a_device_are_refused(tidegate: Tidegate, tmp_path: Path) -> None:
    ran = await tidegate.run("render", a_chart(tmp_path), "-f", "/dev/zero")

    assert (ran.code, ran.stdout) == (3, "")
    assert "error[render.helm.irregular]" in ran.stderr


async def test_a_missing_values_file_is_reported_at_once(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    ran = await tidegate.run("render", a_chart(tmp_path), "-f", "absent.yaml")

    assert ran.code == 2
    assert "absent.yaml" in ran.stderr


async def test_value_files_of_an_application_are_fetched_where_they_are_addresses(
    tmp_path: Path,
) -> None:
    chart = await asyncio.to_thread(a_chart, tmp_path)
    setting = RenderSettings(cache=Cache(tmp_path / "cache"))
    files = Files({"/prod.yaml": b"motto: far\n"})
    async with listening(files.app()) as url, RenderContext(setting) as workshop:
        among = ValueFiles(root=chart)
        values = await find_values(["values.yaml", f"{url}/prod.yaml"], among, workshop)

    assert values == (
        ValuesFile("/values.yaml"),
        ValuesText("motto: far\n", f"{url}/prod.yaml", is_file=True),
    )


async def test_helm_fetches_no_schema_through_a_proxy(tidegate: Tidegate, tmp_path: Path) -> None:
    chart = a_chart(tmp_path)
    schema = '{"properties": {"size": {"$ref": "http://schemas.example.com/size.json"}}}'
    (chart / "values.schema.json").write_text(schema)
    files = Files({"/size.json": b'{"type": "string"}'})
    async with listening(files.app()) as proxy:
        offline = await tidegate.run("render", chart, "--offline", HTTP_PROXY=proxy)
        online = await tidegate.run("render", chart, HTTP_PROXY=proxy)

    assert (offline.code, online.code, files.requests) == (0, 0, [])
