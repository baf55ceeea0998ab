"""Malicious chart repositories: each is an error, and prints no control characters."""

from __future__ import annotations

import gzip
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from tests.security.test_printing import EVIL, QUOTED, obeyed
from tests.support.chart_archives import a_chart
from tests.support.tidegate_command import Tidegate
from tests.support.web_server import listening

MIB = 1024 * 1024
INDEX = """apiVersion: v1
entries:
  web:
  - {{name: web, version: 1.0.0, urls: [{url}], digest: {digest}}}
"""
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def text(body: str | bytes) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body if isinstance(body, bytes) else body.encode())

    return answer


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * MIB)


BOMB = gzip.compress(b"\0" * (600 * MIB), 1)
HONEST = INDEX.format(url="web.tgz", digest="''")
REPOSITORIES: dict[str, tuple[Answer, Answer]] = {
    "an index without end": (endless, endless),
    "an index that is no YAML": (text("\x1b[2J: ["), endless),
    "an index of brackets": (text("[" * 100_000), endless),
    "an index with evil names": (text(f"entries: {{{QUOTED}: [{{name: {QUOTED}}}]}}"), endless),
    "a chart without end": (text(HONEST), endless),
    "a chart that swells": (text(HONEST), text(BOMB)),
    "a chart that is none": (text(HONEST), text(EVIL)),
    "a chart at an evil address": (text(INDEX.format(url=QUOTED, digest="''")), endless),
    "a chart in a file": (
        text(INDEX.format(url="'file:///etc/passwd'", digest="''")),
        text(a_chart()),
    ),
    "a chart with another digest": (
        text(INDEX.format(url="web.tgz", digest=json.dumps("0" * 64))),
        text(a_chart()),
    ),
}


@pytest.mark.parametrize("what", REPOSITORIES)
async def test_a_repository_that_means_no_good_is_an_error(what: str, tmp_path: Path) -> None:
    index, chart = REPOSITORIES[what]
    app = web.Application()
    app.router.add_get("/index.yaml", index)
    app.router.add_get("/{rest:.*}", chart)
    async with listening(app) as address:
        ran = await Tidegate(tmp_path / "home").run("render", address, "--chart", "web")

    assert ran.code == 3
    assert "error[source" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert obeyed(ran.stdout + ran.stderr) == []


async def test_a_token_in_the_address_of_a_repository_is_not_repeated(tmp_path: Path) -> None:
    app = web.Application()
    app.router.add_get("/{rest:.*}", text("nothing"))
    async with listening(app) as address:
        there = address.replace("://", "://hunter2hunter2@")
        ran = await Tidegate(tmp_path / "home").run("render", there, "--chart", "web")

    assert ran.code == 3
    assert "hunter2" not in ran.stdout + ran.stderr
