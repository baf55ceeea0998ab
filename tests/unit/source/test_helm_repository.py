"""Charts from Helm repositories over HTTP."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from tests.support.chart_archives import TarMaker, a_chart
from tests.support.registry import FakeRegistry
from tests.support.source_access import an_access
from tests.support.web_server import listening
from tidegate.errors import SourceError
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.units.source import ChartSource, Credentials, Revision
from tidegate.source.credentials import OriginCredentials
from tidegate.source.helm_repository import fetch_chart, join_url, read_index
from tidegate.source.tree import CHART_LAYER


@dataclass(slots=True)
class FileServer:
    """A server of files that notes who asked for what."""

    files: dict[str, bytes] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._give)
        return app

    async def _give(self, request: web.Request) -> web.Response:
        self.requests.append((request.path, request.headers.get("Authorization", "")))
        if request.path in self.moved:
            raise web.HTTPFound(self.moved[request.path])
        body = self.files.get(request.path)
        return web.Response(status=404) if body is None else web.Response(body=body)

    def lists(self, *entries: tuple[str, str, str]) -> FileServer:
        """An index of these versions, each with its address and its digest."""
        listed = [{"version": v, "urls": [url], "digest": digest} for v, url, digest in entries]
        index = "apiVersion: v1\nentries:\n  web: " + json.dumps(listed) + "\n"
        self.files["/charts/index.yaml"] = index.encode()
        return self


CHART = a_chart()
DIGEST = hashlib.sha256(CHART).hexdigest()
KEY = Credentials(username="ann", password=SecretValue("sesame"))


async def test_the_highest_version_in_the_range_is_unpacked(tmp_path: Path) -> None:
    archive = a_chart(version="1.4.0")
    shelf = FileServer({"/charts/web-1.4.0.tgz": archive})
    shelf.lists(
        ("2.0.0", "no.tgz", ""),
        ("1.4.0", "web-1.4.0.tgz", hashlib.sha256(archive).hexdigest()),
        ("1.10.0-rc.1", "no.tgz", ""),
        ("1.2.0", "no.tgz", ""),
    )
    async with listening(shelf.app()) as origin:
        chart = await fetch_chart(ChartSource(f"{origin}/charts", "web", "^1"), an_access(tmp_path))

    assert chart.revision == Revision("1.4.0")
    assert chart.files == ("Chart.yaml", "templates/service.yaml")


async def test_a_chart_with_another_digest_is_refused(tmp_path: Path) -> None:
    shelf = FileServer({"/charts/x.tgz": CHART}).lists(("1.0.0", "x.tgz", "ab" * 32))
    async with listening(shelf.app()) as origin:
        with pytest.raises(SourceError) as caught:
            await fetch_chart(ChartSource(f"{origin}/charts/", "web"), an_access(tmp_path))

    assert caught.value.code == "source.digest"


@pytest.mark.parametrize(
    ("chart", "version", "code"),
    [
        ("other", "", "source.chart.missing"),
        ("web", "^9", "source.chart.version"),
        ("web", "new", "source.version.range"),
    ],
)
async def test_a_missing_chart_of_a_repository_is_reported(
    tmp_path: Path, chart: str, version: str, code: str
) -> None:
    shelf = FileServer().lists(("1.0.0", "x.tgz", ""))
    async with listening(shelf.app()) as origin:
        with pytest.raises(SourceError) as caught:
            await fetch_chart(ChartSource(f"{origin}/charts", chart, version), an_access(tmp_path))

    assert caught.value.code == code


@pytest.mark.parametrize(("shares", "sent"), [(False, ""), (True, "Basic YW5uOnNlc2FtZQ==")])
async def test_credentials_go_to_another_host_only_when_they_are_shared(
    tmp_path: Path, *, shares: bool, sent: str
) -> None:
    elsewhere = FileServer({"/x.tgz": CHART})
    shelf = FileServer()
    async with listening(elsewhere.app()) as other, listening(shelf.app()) as origin:
        shelf.lists(("1.0.0", f"{other}/x.tgz", DIGEST))
        source = ChartSource(f"{origin}/charts", "web", shares_credentials=shares)
        await fetch_chart(source, an_access(tmp_path, keyring=OriginCredentials(origin, KEY)))

    assert shelf.requests == [("/charts/index.yaml", "Basic YW5uOnNlc2FtZQ==")]
    assert elsewhere.requests == [("/x.tgz", sent)]


async def test_a_redirect_to_another_host_loses_the_credentials(tmp_path: Path) -> None:
    elsewhere = FileServer({"/x.tgz": CHART})
    shelf = FileServer().lists(("1.0.0", "x.tgz", DIGEST))
    async with listening(elsewhere.app()) as other, listening(shelf.app()) as origin:
        shelf.moved["/charts/x.tgz"] = f"{other}/x.tgz"
        source = ChartSource(f"{origin}/charts", "web")
        await fetch_chart(source, an_access(tmp_path, keyring=OriginCredentials(origin, KEY)))

    assert shelf.requests[-1] == ("/charts/x.tgz", "Basic YW5uOnNlc2FtZQ==")
    assert elsewhere.requests == [("/x.tgz", "")]


async def test_redirects_without_end_are_refused(tmp_path: Path) -> None:
    shelf = FileServer(moved={"/charts/index.yaml": "/charts/index.yaml"})
    async with listening(shelf.app()) as origin:
        with pytest.raises(SourceError) as caught:
            await fetch_chart(ChartSource(f"{origin}/charts", "web"), an_access(tmp_path))

    assert caught.value.code == "source.http.redirect"


async def test_an_index_can_send_on_to_a_registry(tmp_path: Path) -> None:
    registry = FakeRegistry()
    registry.push("1.0.0", CHART, CHART_LAYER)
    shelf = FileServer()
    async with listening(registry.app()) as other, listening(shelf.app()) as origin:
        host = other.removeprefix("http://")
        shelf.lists(("1.0.0", f"oci://{host}/charts/web:1.0.0", ""))
        chart = await fetch_chart(ChartSource(f"{origin}/charts", "web"), an_access(tmp_path))

    assert chart.revision.name == "1.0.0"
    assert "Chart.yaml" in chart.files


async def test_offline_uses_the_index_and_the_chart_of_before(tmp_path: Path) -> None:
    shelf = FileServer({"/charts/x.tgz": CHART})
    shelf.lists(("1.0.0", "x.tgz", DIGEST), ("0.9.0", "y.tgz", ""))
    access = an_access(tmp_path)
    async with listening(shelf.app()) as origin:
        source = ChartSource(f"{origin}/charts", "web")
        before = await fetch_chart(source, access)
    offline = msgspec.structs.replace(access, offline=True)

    after = await fetch_chart(source, offline)
    with pytest.raises(SourceError) as caught:
        await fetch_chart(msgspec.structs.replace(source, version="0.9.0"), offline)

    assert after == before
    assert caught.value.code == "source.offline"


async def test_an_archive_without_a_chart_is_refused(tmp_path: Path) -> None:
    shelf = FileServer({"/charts/x.tgz": TarMaker().add("web/readme", b"x").gz()})
    shelf.lists(("1.0.0", "x.tgz", ""))
    async with listening(shelf.app()) as origin:
        with pytest.raises(SourceError) as caught:
            await fetch_chart(ChartSource(f"{origin}/charts", "web"), an_access(tmp_path))

    assert caught.value.code == "source.chart.archive"


@pytest.mark.parametrize("content", [a_chart("other"), a_chart(version="6.6.6")])
async def test_an_archive_of_another_chart_than_its_index_entry_is_refused(
    tmp_path: Path, content: bytes
) -> None:
    shelf = FileServer({"/charts/x.tgz": content}).lists(("1.0.0", "x.tgz", ""))
    async with listening(shelf.app()) as origin:
        with pytest.raises(SourceError) as caught:
            await fetch_chart(ChartSource(f"{origin}/charts", "web"), an_access(tmp_path))

    assert caught.value.code == "source.chart.archive"
    assert "`web 1.0.0`" in str(caught.value)


async def test_build_metadata_of_an_index_entry_may_differ(tmp_path: Path) -> None:
    shelf = FileServer({"/charts/x.tgz": a_chart()}).lists(("v1.0.0+mirror", "x.tgz", ""))
    async with listening(shelf.app()) as origin:
        chart = await fetch_chart(ChartSource(f"{origin}/charts", "web"), an_access(tmp_path))

    assert chart.revision == Revision("v1.0.0+mirror")


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://127.0.0.1:1/charts", "source.http.unreachable"),
        ("file:///etc", "source.url"),
        ("-x", "source.url"),
        ("https://ann:hunter2@host/charts", "source.url.password"),
    ],
)
async def test_an_unreachable_address_is_reported(tmp_path: Path, url: str, code: str) -> None:
    with pytest.raises(SourceError) as caught:
        await fetch_chart(ChartSource(url, "web"), an_access(tmp_path))

    assert caught.value.code == code
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("text", [b"entries: 3", b"", b"{", b"[]", b"a: *b"])
def test_an_invalid_index_is_reported(text: bytes) -> None:
    with pytest.raises(SourceError) as caught:
        read_index(text, "index.yaml")

    assert caught.value.code == "source.chart.index"


def test_an_index_may_be_json_and_wrong_entries_are_dropped() -> None:
    text = b'{"entries": {"web": [{"version": 3}, {"version": "1.0.0", "urls": ["a"]}], "x": 1}}'

    index = read_index(text, "index.yaml")

    assert [entry.version for entry in index["web"]] == ["1.0.0"]


def test_an_address_in_an_index_is_below_the_repository() -> None:
    assert join_url("https://h/a?k=1", "x.tgz") == "https://h/a/x.tgz?k=1"
    assert join_url("https://h/a/", "x.tgz") == "https://h/a/x.tgz"
    assert join_url("https://h/a", "https://o/x.tgz") == "https://o/x.tgz"
