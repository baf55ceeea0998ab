"""A chart becomes documents, or one error with the location in the template."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.support.helm_charts import CHARTS, a_release, data_of, names_of, write_chart
from tidegate.errors import Location, RenderError
from tidegate.external.process import Command, run
from tidegate.external.worker import Workers
from tidegate.model.k8s.objects import Json
from tidegate.model.units.chart_request import (
    ChartRequest,
    InlineValues,
    Parameter,
    ValuesFile,
    ValuesText,
)
from tidegate.render.helm import helm_workers, render

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one worker for all of them


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers() -> AsyncIterator[Workers]:
    async with helm_workers(count=1) as running:
        yield running


async def refused(release: ChartRequest, workers: Workers) -> RenderError:
    with pytest.raises(RenderError) as caught:
        await render(release, workers)
    return caught.value


async def test_crds_are_first_then_templates_by_path(workers: Workers) -> None:
    documents = await render(a_release("web"), workers)

    assert names_of(documents) == [
        "CustomResourceDefinition orders.shop.example",
        "CustomResourceDefinition carts.shop.example",
        "ConfigMap shop-web",
        "Service shop-web",
        "Deployment shop-web",
        "Job shop-migrate",
        "ServiceAccount shop-a",
        "ServiceAccount shop-b",
    ]


async def test_a_document_knows_its_template(workers: Workers) -> None:
    documents = await render(a_release("umbrella"), workers)

    assert {document.location for document in documents} == {
        Location("charts/db/crds/backups.yaml"),
        Location("charts/db/templates/secret.yaml"),
        Location("templates/config.yaml"),
    }


async def test_hooks_keep_their_annotations(workers: Workers) -> None:
    documents = await render(a_release("web"), workers)

    job = next(each for each in documents if each.body["kind"] == "Job")
    assert job.body["metadata"] == {
        "name": "shop-migrate",
        "annotations": {
            "helm.sh/hook": "pre-install,pre-upgrade",
            "helm.sh/hook-weight": "-5",
            "helm.sh/hook-delete-policy": "before-hook-creation",
        },
    }


async def test_crds_can_be_left_out(workers: Workers) -> None:
    release = msgspec.structs.replace(a_release("web"), include_crds=False)

    documents = await render(release, workers)

    assert "CustomResourceDefinition" not in {document.body["kind"] for document in documents}


async def test_an_integer_of_a_parameter_stays_an_integer(workers: Workers) -> None:
    release = a_release("typed", Parameter("big", "1234567"), values={"inline": 1234567})

    data = data_of(await render(release, workers))

    assert data["big"] == "1234567 int64"
    assert data["inline"] == "1.234567e+06 float64"
    assert data["fromChart"] == "1.234567e+06 float64"


async def test_the_same_request_gives_the_same_documents(workers: Workers) -> None:
    release = a_release("umbrella", Parameter("global.quota", "2000000"))

    first = await render(release, workers)
    second = await render(release, workers)

    assert [each.body for each in first] == [each.body for each in second]


async def test_a_packed_chart_is_a_chart(workers: Workers, tmp_path: Path) -> None:
    archive = tmp_path / "queue-0.1.0.tgz"
    await run(Command(argv=("tar", "czf", str(archive), "-C", str(CHARTS), "queue")))
    release = a_release(archive.name, Parameter("depth", "2000000"), root=tmp_path)

    data = data_of(await render(release, workers), "shop-queue")

    assert data == {"depth": "2000000"}


async def test_values_files_can_replace_those_of_the_chart(workers: Workers) -> None:
    release = msgspec.structs.replace(
        a_release("queue", root=CHARTS), defaults=(ValuesFile("/schema/values.yaml"),)
    )

    data = data_of(await render(release, workers), "shop-queue")

    assert data == {"depth": None}


@dataclass(frozen=True, slots=True)
class BrokenTemplate:
    how: str
    code: str
    location: Location
    reason: str


@pytest.mark.parametrize(
    "broken",
    [
        BrokenTemplate(
            "fail", "template", Location("broken/templates/config.yaml", 9, 7), "is not ready"
        ),
        BrokenTemplate(
            "required",
            "template",
            Location("broken/templates/config.yaml", 7, 16),
            "set a password",
        ),
        BrokenTemplate(
            "include", "template", Location("broken/templates/_inner.tpl", 3, 11), "nil pointer"
        ),
        BrokenTemplate("yaml", "yaml", Location("broken/templates/config.yaml"), "line 6"),
    ],
    ids=lambda broken: broken.how,
)
async def test_a_broken_template_is_reported_with_its_line(
    workers: Workers, broken: BrokenTemplate
) -> None:
    error = await refused(a_release("broken", values={"how": broken.how}), workers)

    assert (error.code, error.location) == (f"render.helm.{broken.code}", broken.location)
    assert broken.reason in error.problem


async def test_an_error_in_a_partial_names_the_template_that_includes_it(workers: Workers) -> None:
    error = await refused(a_release("broken", values={"how": "include"}), workers)

    assert "broken/templates/config.yaml:11:13" in error.hint


async def test_a_template_that_cannot_be_parsed_is_reported_with_its_line(workers: Workers) -> None:
    error = await refused(a_release("unparsable"), workers)

    assert error.code == "render.helm.template"
    assert error.location == Location("unparsable/templates/config.yaml", 6)


async def test_values_that_violate_the_schema_are_reported_with_their_path(
    workers: Workers,
) -> None:
    values = ValuesText("replicas: many\nserver: {port: 70000}\n", "helm.values")

    error = await refused(a_release("schema", values), workers)

    assert error.code == "render.helm.schema"
    assert error.location is not None
    assert error.location.field == "replicas"
    assert "`replicas`: got string, want integer" in error.problem
    assert "`server.port`: maximum: got 70,000, want 65,535" in error.problem


@pytest.mark.parametrize(
    ("chart", "values"),
    [("schema", {"password": "hunter2"}), ("umbrella", {"db": "hunter2"})],
)
async def test_an_error_about_values_does_not_show_them(
    workers: Workers, chart: str, values: dict[str, Json]
) -> None:
    error = await refused(a_release(chart, values=values), workers)

    assert error.code in {"render.helm.schema", "render.helm.values"}
    assert "hunter2" not in str(error)


async def test_the_schema_can_be_skipped(workers: Workers) -> None:
    release = a_release("schema", values={"replicas": "many"})

    data = data_of(await render(msgspec.structs.replace(release, skip_schema=True), workers))

    assert data == {"replicas": "many"}


async def test_a_kube_version_that_the_chart_does_not_support_is_refused(workers: Workers) -> None:
    error = await refused(a_release("picky"), workers)

    assert error.code == "render.helm.kube-version"
    assert "`>=1.30.0-0 <1.36.0-0`" in error.problem
    assert "`v1.36.0`" in error.problem


REFUSED = {
    "a library": (a_release("library"), "render.helm.type"),
    "no chart": (a_release("none"), "render.helm.chart"),
    "a directory without Chart.yaml": (a_release("web/templates"), "render.helm.chart"),
    "a chart outside": (a_release("../.."), "render.helm.outside"),
    "a bad name": (
        msgspec.structs.replace(a_release("web"), name="Not A Name"),
        "render.helm.name",
    ),
    "values in a list": (a_release("web", ValuesText("- a\n", "it")), "render.helm.values"),
    "values that are not YAML": (
        a_release("web", ValuesText("a: [\n", "it")),
        "render.helm.values",
    ),
    "values outside": (a_release("web", ValuesFile("../../../../x")), "render.helm.outside"),
    "no version": (
        msgspec.structs.replace(a_release("web"), kube_version="new"),
        "render.helm.chart",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_release_that_cannot_be_rendered_is_refused(workers: Workers, name: str) -> None:
    release, code = REFUSED[name]

    error = await refused(release, workers)

    assert error.code == code


async def test_a_chart_sees_nothing_of_our_environment(workers: Workers, tmp_path: Path) -> None:
    write_chart(tmp_path / "web", template='{{ env "HOME" }}')

    error = await refused(a_release("web", root=tmp_path), workers)

    assert error.code == "render.helm.template"
    assert '"env" not defined' in error.problem


async def test_without_the_sdk_the_hint_names_what_to_install() -> None:
    script = (
        "import asyncio, sys, importlib.util as u\n"
        "find_spec = u.find_spec\n"
        "import tidegate.render.helm.chart_renderer as r\n"
        "r.find_spec = lambda name: None if name == 'helm_python' else find_spec(name)\n"
        "async def main():\n"
        "    async with r.helm_workers(): pass\n"
        "try:\n"
        "    asyncio.run(main())\n"
        "except r.RenderError as error:\n"
        "    print(error.code, '`tidegate[helm]`' in error.hint, 'helm_python' in sys.modules)\n"
    )

    result = await run(Command(argv=(sys.executable, "-c", script)))

    assert result.stdout == b"render.helm.missing True False\n"


async def test_inline_values_are_merged_where_they_are_named(workers: Workers) -> None:
    layers = (InlineValues(), ValuesText("depth: 2\n", "later"))
    release = ChartRequest(
        root=str(CHARTS), chart="queue", name="shop", layers=layers, values={"depth": 1}
    )

    data = data_of(await render(release, workers), "shop-queue")

    assert data == {"depth": "2"}
