"""Objects of buckets that speak as S3 does."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.bucket_server import BucketServer
from tests.support.source_access import an_access
from tests.support.web_server import listening
from tidegate.errors import SourceError
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.units.source import BucketSource, Credentials, Snapshot
from tidegate.source.bucket.signature import AccessKey, sign
from tidegate.source.credentials import CredentialProvider, OriginCredentials
from tidegate.source.fetch import fetch
from tidegate.source.options import Checkout
from tidegate.source.tree import TreeLimits

OBJECTS = {
    "apps/": b"",
    "apps/a b.yaml": b"a: 1\n",
    "apps/deep/ü.yaml": b"b: 2\n",
    "infra/c.yaml": b"c: 3\n",
    "notes.png": b"no text",
}
KEY = AccessKey("AKIAIOSFODNN7EXAMPLE", SecretValue("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"))


@pytest.mark.parametrize(
    ("path", "signature"),
    [
        (
            "?max-keys=2&prefix=J",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
        ("?lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    ],
)
def test_requests_are_signed_as_amazon_documents_it(path: str, signature: str) -> None:
    made = sign(
        f"https://examplebucket.s3.amazonaws.com/{path}",
        KEY,
        "us-east-1",
        datetime(2013, 5, 24, tzinfo=UTC),
    )

    assert made.authorization.endswith(f",Signature={signature}")
    assert dict(made.headers)["x-amz-date"] == "20130524T000000Z"
    assert KEY.secret.reveal() not in repr(made)


def a_source(url: str, **more: str | bool) -> BucketSource:
    options = {"prefix": "", "ignore": "", "region": "", "provider": "", **more}
    return BucketSource(
        url.removeprefix("http://"),
        str(options.pop("name", "platform")),
        plain_http=True,
        **{name: str(item) for name, item in options.items()},
    )


async def had(
    server: BucketServer, place: Path, keyring: CredentialProvider | None = None, **more: str
) -> Snapshot:
    async with listening(server.app()) as url:
        return await fetch(a_source(url, **more), an_access(place, keyring=keyring))


async def test_all_objects_are_fetched_page_by_page_and_the_revision_is_that_of_flux(
    tmp_path: Path,
) -> None:
    server = BucketServer(objects={**OBJECTS})

    snapshot = await had(server, tmp_path)

    names = [name for name in OBJECTS if not name.endswith("/")]
    assert snapshot.files == tuple(sorted(names))
    assert (snapshot.root / "apps/a b.yaml").read_bytes() == b"a: 1\n"
    assert str(snapshot.revision) == server.revision(*names)


async def test_files_are_ignored_by_the_bucket_and_by_the_source(tmp_path: Path) -> None:
    rules = {".sourceignore": b"*.png\n", "infra/.sourceignore": b"*\n"}
    server = BucketServer(objects={**OBJECTS, **rules})

    snapshot = await had(server, tmp_path, ignore="deep/")

    assert snapshot.files == ("apps/a b.yaml", "infra/.sourceignore", "infra/c.yaml")
    assert str(snapshot.revision) == server.revision(*snapshot.files)
    assert "notes.png" not in server.requests


async def test_a_prefix_selects_objects_and_keeps_their_paths(tmp_path: Path) -> None:
    server = BucketServer(objects={**OBJECTS, ".sourceignore": b"deep/\n"})

    assert (await had(server, tmp_path, prefix="apps/")).files == ("apps/a b.yaml",)


async def test_nothing_is_fetched_again_where_nothing_has_changed(tmp_path: Path) -> None:
    server = BucketServer(objects={**OBJECTS})
    async with listening(server.app()) as url:
        source, access = a_source(url), an_access(tmp_path)
        first = await fetch(source, access)
        request = len(server.requests)
        second = await fetch(source, access)
        assert (second, len(server.requests)) == (first, request)

        server.objects["infra/c.yaml"] = b"c: 4\n"
        third = await fetch(source, access)
    assert third.revision != first.revision
    offline = await fetch(source, an_access(tmp_path, offline=True))
    assert (offline.revision, offline.files) == (third.revision, third.files)


async def test_requests_are_signed_for_the_region_of_the_bucket(tmp_path: Path) -> None:
    server = BucketServer(objects={**OBJECTS}, key="ann", region="eu-west-1")
    key = Credentials(username="ann", password=SecretValue("sesame"))
    async with listening(server.app()) as url:
        opened = await fetch(
            a_source(url), an_access(tmp_path, keyring=OriginCredentials(url, key))
        )
        with pytest.raises(SourceError) as caught:
            await fetch(a_source(url), an_access(tmp_path / "other"))

    assert "infra/c.yaml" in opened.files
    assert caught.value.code == "source.bucket.credentials"
    assert "Access Denied." in caught.value.problem
    assert "accesskey" in caught.value.hint


async def test_a_directory_can_replace_any_bucket(tmp_path: Path) -> None:
    here = tmp_path / "here"
    for name, content in {".sourceignore": b"*.png\n", "a.yaml": b"a: 1\n", "b.png": b""}.items():
        here.mkdir(exist_ok=True)
        (here / name).write_bytes(content)
    source = BucketSource("https://acme.blob.core.windows.net", "platform", provider="azure")
    mapped = Checkout("https://acme.blob.core.windows.net/platform", here, is_override=True)

    with pytest.raises(SourceError) as caught:
        await fetch(source, an_access(tmp_path))
    snapshot = await fetch(source, an_access(tmp_path, checkouts=(mapped,)))

    assert caught.value.code == "source.bucket.cloud"
    assert "--repo-map https://acme.blob.core.windows.net/platform=PATH" in caught.value.hint
    assert snapshot.files == ("a.yaml",)


BAD = {
    "source.bucket.missing": ({}, {"name": "nowhere"}, None),
    "source.bucket.object": ({"../out.yaml": b""}, {}, None),
    "source.bucket.size": ({**OBJECTS}, {}, TreeLimits(files=3)),
}


@pytest.mark.parametrize("code", BAD)
async def test_a_failed_download_is_reported_with_its_code(tmp_path: Path, code: str) -> None:
    objects, options, limits = BAD[code]
    server = BucketServer(objects=objects)
    async with listening(server.app()) as url:
        with pytest.raises(SourceError) as caught:
            await fetch(a_source(url, **options), an_access(tmp_path, limits=limits))

    assert caught.value.code == code


async def test_an_object_with_the_name_of_a_directory_is_reported(tmp_path: Path) -> None:
    server = BucketServer(objects={"a": b"1", "a/b.yaml": b"2"}, page=10)

    with pytest.raises(SourceError) as caught:
        await had(server, tmp_path)

    assert caught.value.code == "source.bucket.object"


@pytest.mark.parametrize("body", ["no list", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'])
async def test_an_answer_that_is_not_a_list_is_reported(tmp_path: Path, body: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=body)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with listening(app) as url:
        with pytest.raises(SourceError) as caught:
            await fetch(a_source(url), an_access(tmp_path))

    assert caught.value.code == "source.bucket.answer"
