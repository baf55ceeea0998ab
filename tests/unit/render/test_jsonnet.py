"""Jsonnet files in plain directories."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tidegate.documents import Document
from tidegate.errors import RenderError
from tidegate.external.process import Limits
from tidegate.external.worker import Workers
from tidegate.model.times import Ms
from tidegate.model.units.rendering import Directory, JsonnetOptions, JsonnetVariable
from tidegate.render.jsonnet.client import jsonnet_workers, render_directory

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one worker for all of them

OBJECT = "{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: '%s'}, data: %s}"
PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {a: b}\n"


PLAIN_JSONNET = JsonnetOptions()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers() -> AsyncIterator[Workers]:
    async with jsonnet_workers() as running:
        yield running


def put(root: Path, files: dict[str, str], jsonnet: JsonnetOptions = PLAIN_JSONNET) -> Directory:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Directory(root=root, path="app", jsonnet=jsonnet)


def summary(documents: tuple[Document, ...]) -> list[tuple[object, object, str]]:
    """Name, data and location of each."""
    result: list[tuple[object, object, str]] = []
    for document in documents:
        metadata = document.body["metadata"]
        assert isinstance(metadata, dict)
        result.append((metadata["name"], document.body.get("data"), str(document.location)))
    return result


async def refused(directory: Directory, workers: Workers) -> RenderError:
    with pytest.raises(RenderError) as caught:
        await render_directory(directory, workers)
    return caught.value


async def test_objects_and_lists_of_objects_are_in_the_order_of_the_files(
    workers: Workers, tmp_path: Path
) -> None:
    files = {
        "app/a.jsonnet": f"[{OBJECT % ('one', '{n: 1}')}, {OBJECT % ('two', '{n: 1.5}')}]",
        "app/b.yaml": PLAIN,
        "app/c.jsonnet": OBJECT % ("three", "{n: 20000000}"),
    }

    documents = await render_directory(put(tmp_path, files), workers)

    assert summary(documents) == [
        ("one", {"n": 1}, "app/a.jsonnet"),
        ("two", {"n": 1.5}, "app/a.jsonnet"),
        ("plain", {"a": "b"}, "app/b.yaml:1:1"),
        ("three", {"n": 20000000}, "app/c.jsonnet"),
    ]


async def test_a_list_becomes_its_items(workers: Workers, tmp_path: Path) -> None:
    text = f"{{apiVersion: 'v1', kind: 'List', items: [{OBJECT % ('one', '{}')}]}}"

    documents = await render_directory(put(tmp_path, {"app/a.jsonnet": text}), workers)

    assert [name for name, _, _ in summary(documents)] == ["one"]


async def test_variables_are_texts_or_code(workers: Workers, tmp_path: Path) -> None:
    data = "{who: who, n: n + 1, env: std.extVar('env'), list: std.toString(std.extVar('list'))}"
    files = {"app/a.jsonnet": f"function(who, n) {OBJECT % ('one', data)}"}
    jsonnet = JsonnetOptions(
        external=(
            JsonnetVariable("env", "${ARGOCD_APP_NAME}-prod"),
            JsonnetVariable("list", "[1, 2]", code=True),
        ),
        arguments=(JsonnetVariable("who", "ann"), JsonnetVariable("n", "41", code=True)),
        variables={"ARGOCD_APP_NAME": "shop"},
    )

    documents = await render_directory(put(tmp_path, files, jsonnet), workers)

    assert documents[0].body["data"] == {
        "who": "ann",
        "n": 42,
        "env": "shop-prod",
        "list": "[1, 2]",
    }


async def test_imports_are_searched_next_to_the_file_then_in_libraries_then_in_the_directory(
    workers: Workers, tmp_path: Path
) -> None:
    data = "(import 'lib/near.libsonnet') + (import 'both.libsonnet') + (import 'text.libsonnet')"
    files = {
        "app/a.jsonnet": OBJECT % ("one", data),
        "app/lib/near.libsonnet": "{near: importstr 'near.txt'}",
        "app/lib/near.txt": "beside",
        "vendor/both.libsonnet": "{both: 'vendor'}",
        "more/both.libsonnet": "{both: 'more'}",
        "vendor/text.libsonnet": "{text: (import 'deep.libsonnet').a}",
        "app/deep.libsonnet": "{a: 'from the directory'}",
    }
    jsonnet = JsonnetOptions(libraries=("vendor", "more"))

    documents = await render_directory(put(tmp_path, files, jsonnet), workers)

    assert documents[0].body["data"] == {
        "near": "beside",
        "both": "more",
        "text": "from the directory",
    }


@pytest.mark.parametrize(
    ("text", "code", "location"),
    [
        ("{a: error 'boom'}", "render.jsonnet.evaluation", "app/a.jsonnet:1:5"),
        ("{\n  a: \n", "render.jsonnet.evaluation", "app/a.jsonnet:3:1"),
        ("std.extVar('unknown')", "render.jsonnet.evaluation", "app/a.jsonnet"),
        ("{a: (import 'b.libsonnet')}", "render.jsonnet.import", "app"),
        ("{a: importstr '../../../etc/hostname'}", "render.directory.outside", "../../etc"),
        ("{a: importstr '/etc/hostname'}", "render.directory.outside", "/etc/hostname"),
        ("{a: importstr 'link'}", "render.directory.outside", "app/link"),
        ("'text'", "render.directory.manifest", "app/a.jsonnet"),
        ("[{kind: 'A'}, {}]", "render.directory.manifest", "app/a.jsonnet"),
    ],
)
async def test_an_error_of_evaluation_is_reported_with_its_location(
    text: str, code: str, location: str, workers: Workers, tmp_path: Path
) -> None:
    directory = put(tmp_path / "source", {"app/a.jsonnet": text})
    (tmp_path / "source" / "app" / "link").symlink_to("/etc/hostname")

    error = await refused(directory, workers)

    assert error.code == code
    assert str(error.location).startswith(location)


async def test_a_file_that_never_ends_is_ended(tmp_path: Path) -> None:
    endless = "local f(n) = if n == 0 then 0 else f(n - 1) + f(n - 1); {a: f(60)}"
    directory = put(tmp_path, {"app/a.jsonnet": endless})

    async with jsonnet_workers(limits=Limits(time=Ms(300))) as hasty:
        error = await refused(directory, hasty)

    assert (error.code, str(error.location)) == ("render.jsonnet.limit", "app/a.jsonnet")


async def test_disabled_jsonnet_starts_no_worker(workers: Workers, tmp_path: Path) -> None:
    put(tmp_path, {"app/a.jsonnet": "error 'not looked at'", "app/b.yaml": PLAIN})
    directory = Directory(root=tmp_path, path="app", jsonnet=None)

    documents = await render_directory(directory, workers)

    assert [name for name, _, _ in summary(documents)] == ["plain"]


async def test_values_of_variables_are_not_in_a_repr() -> None:
    jsonnet = JsonnetOptions(external=(JsonnetVariable("password", "hunter2"),))

    assert "hunter2" not in repr(jsonnet)
