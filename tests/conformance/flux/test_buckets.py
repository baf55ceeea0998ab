"""Buckets as sources: fetched with their credentials, and reported if unavailable."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.conformance.flux.stage import case, lines_with
from tests.conformance.flux.test_trees import reference
from tests.support.bucket_server import BucketServer
from tests.support.flux_repository import UNIT, Layers
from tests.support.repositories import setting
from tests.support.web_server import listening
from tidegate.model.k8s.objects import Json, JsonObject


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    made = Layers(tmp_path / "platform")
    made.put("apps/shop/b.yaml", setting("b"))
    return made


def a_bucket(endpoint: str, **spec: Json) -> JsonObject:
    return {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "Bucket",
        "metadata": {"name": "s3", "namespace": "flux-system"},
        "spec": {"interval": "10m", "bucketName": "platform", "endpoint": endpoint, **spec},
    }


LOGIN: JsonObject = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "login", "namespace": "flux-system"},
    "stringData": {"accesskey": "ann", "secretkey": "sesame-of-the-bucket"},
}


async def test_files_of_a_bucket_are_fetched_with_the_credentials_of_its_secret(
    layers: Layers,
) -> None:
    server = BucketServer(key="ann")
    for name in ("apps/web.yaml", "apps/old/gone.yaml"):
        text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {Path(name).stem}}}\n"
        server.objects[name] = text.encode()
    chart = "apiVersion: v2\nname: shop\nversion: 1.0.0\n"
    server.objects["charts/shop/Chart.yaml"] = chart.encode()
    server.objects["charts/shop/templates/a.yaml"] = server.objects["apps/web.yaml"]
    layers.unit("apps", sourceRef=reference("Bucket", "s3"))
    layers.unit("own", path="./apps/shop")
    release: Json = {
        "interval": "10m",
        "chart": {"spec": {"chart": "./charts/shop", "sourceRef": reference("Bucket", "s3")}},
    }
    async with listening(server.app()) as url:
        bucket = a_bucket(
            url.removeprefix("http://"),
            insecure=True,
            secretRef={"name": "login"},
            ignore="old/",
        )
        layers.more = [bucket, LOGIN, a_release("shop", release)]
        apps = await asyncio.to_thread(layers.rendered, "apps")
        args = ("render", "--unit", "HelmRelease/flux-system/shop", "-o", "json")
        shop = await asyncio.to_thread(layers.run, *args)

    assert set(apps) == {"web"}
    assert shop.returncode == 0, shop.stderr
    assert '"name":"web"' in shop.stdout


@case(3)
async def test_a_failed_download_is_reported_and_repeated(
    layers: Layers,
) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
    server = BucketServer(name="elsewhere", objects={"apps/web.yaml": text})
    layers.unit("apps", sourceRef=reference("Bucket", "s3"))
    layers.unit("own", path="./apps/shop")
    async with listening(server.app()) as url:
        layers.more = [a_bucket(url.removeprefix("http://"), insecure=True)]
        gone = await asyncio.to_thread(layers.run, "plan")
        server.name = "platform"
        back = await asyncio.to_thread(layers.run, "sync", "--sandbox")

    assert gone.returncode == 3
    (line,) = lines_with(gone.stderr, "error[source.bucket.missing]")
    assert f"`{UNIT}apps`" in line
    assert "`platform`" in line
    assert back.returncode == 0, back.stderr


def test_an_unreachable_bucket_is_reported_and_can_be_mapped_to_a_directory(
    layers: Layers,
) -> None:
    elsewhere = Layers(layers.root.parent / "objects")
    elsewhere.put("apps/z.yaml", setting("z"))
    layers.more = [a_bucket("storage.googleapis.com", provider="gcp")]
    layers.unit("apps", sourceRef=reference("Bucket", "s3"))
    layers.unit("own", path="./apps/shop")

    ran = layers.run("sync", "--sandbox", "--empty-cluster")
    address = "https://storage.googleapis.com/platform"
    mapped_here = layers.rendered("apps", "--repo-map", f"{address}={elsewhere.root}")

    assert ran.returncode == 3
    (line,) = lines_with(ran.stderr, "error[source.bucket.cloud]")
    assert f"`{UNIT}apps`" in line
    assert "`gcp`" in line
    assert f"`--repo-map {address}=PATH`" in ran.stderr
    assert "clusters/main/all.yaml:" in ran.stderr
    assert set(mapped_here) == {"z"}


def a_release(name: str, spec: Json) -> JsonObject:
    kind: JsonObject = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease"}
    return {**kind, "metadata": {"name": name, "namespace": "flux-system"}, "spec": spec}
