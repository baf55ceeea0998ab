"""Schemas of charts read no file of this machine and call no server, loopback included."""

from __future__ import annotations

import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.helm_charts import write_chart
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.objects import JsonObject

VALUE = "canary-4711"


class RequestLog:
    """A server on loopback, and the paths that were requested."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        log = self.paths

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                log.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"const": "never"}')

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def request_log() -> Iterator[RequestLog]:
    log = RequestLog()
    yield log
    log.close()


def chart_with_schema(path: Path, schema: JsonObject, *, packed: bool) -> Path:
    """A chart whose schema, or that of its packed subchart, is this one."""
    chart = write_chart(path / "web", values="word: blue\n")
    owner = write_chart(path / "part", values="word: blue\n") if packed else chart
    (owner / "values.schema.json").write_text(json.dumps(schema))
    if packed:
        (chart / "charts").mkdir()
        with tarfile.open(chart / "charts" / "part-0.1.0.tgz", "w:gz") as archive:
            archive.add(owner, "part")
    return chart


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("args", [(), ("--offline",)])
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$schema"])
def test_a_schema_calls_no_server(
    tmp_path: Path, request_log: RequestLog, keyword: str, args: tuple[str, ...], *, packed: bool
) -> None:
    word: JsonObject = {keyword: f"{request_log.url}/word.json"}
    chart = chart_with_schema(tmp_path, {"properties": {"word": word}}, packed=packed)

    ran = tidegate("render", chart, *args)

    assert request_log.paths == []
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("location", ["absolute", "relative", "below an id"])
def test_a_schema_that_refers_to_a_file_is_refused(
    tmp_path: Path, location: str, *, packed: bool
) -> None:
    secret = tmp_path / "outside.json"
    secret.write_text(json.dumps({"const": VALUE}))
    references: dict[str, JsonObject] = {
        "absolute": {"properties": {"word": {"$ref": secret.as_uri()}}},
        "relative": {"properties": {"word": {"$ref": str(secret).lstrip("/")}}},
        "below an id": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {
                "word": {"$id": "https://example.org/", "$ref": str(secret).lstrip("/")}
            },
        },
    }
    chart = chart_with_schema(tmp_path, references[location], packed=packed)

    ran = tidegate("render", chart, "--offline")

    assert ran.returncode == 3
    assert "error[render.helm.schema]" in ran.stderr
    assert VALUE not in ran.stdout + ran.stderr


@pytest.mark.parametrize("packed", [False, True])
def test_references_within_a_schema_are_checked(tmp_path: Path, *, packed: bool) -> None:
    schema: JsonObject = {
        "$id": "https://example.org/values.json",
        "$defs": {"word": {"const": "red"}},
        "properties": {
            "word": {"$ref": "https://example.org/values.json#/$defs/word"},
            "other": {"$ref": "https://example.org/other.json"},
        },
    }
    chart = chart_with_schema(tmp_path, schema, packed=packed)

    ran = tidegate("render", chart, "--offline")

    assert ran.returncode == 3
    assert "error[render.helm.schema]" in ran.stderr
    assert "word" in ran.stderr
