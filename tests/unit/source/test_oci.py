"""Charts and artifacts from OCI registries."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.chart_archives import TarMaker, a_chart
from tests.support.registry import FakeRegistry, digest_of
from tests.support.source_access import an_access
from tests.support.web_server import listening
from tidegate.errors import SourceError
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.units.source import ChartSource, Credentials, OciSource
from tidegate.source.credentials import OriginCredentials
from tidegate.source.oci.artifacts import fetch_oci, fetch_oci_chart
from tidegate.source.tree import CHART_LAYER

TREE = TarMaker().add("app.yaml", b"kind: Service\n").gz()
TREE_LAYER = "application/vnd.cncf.flux.content.v1.tar+gzip"


def address(origin: str, path: str = "/charts/web") -> str:
    return f"oci://{origin.removeprefix('http://')}{path}"


async def test_a_chart_is_found_by_a_range_over_pages_of_tags(tmp_path: Path) -> None:
    registry = FakeRegistry()
    for tag in ("1.0.0", "1.2.0_build.7", "2.0.0", "latest", "0.1.0"):
        registry.push(tag, a_chart(version=tag), CHART_LAYER)
    async with listening(registry.app()) as origin:
        source = ChartSource(address(origin, "/charts"), "web", "~1")
        oci_chart = await fetch_oci_chart(source, an_access(tmp_path))

    assert oci_chart.revision.name == "1.2.0+build.7"
    assert oci_chart.source == source
    assert oci_chart.files == ("Chart.yaml", "templates/service.yaml")


async def test_a_version_in_full_is_a_tag(tmp_path: Path) -> None:
    registry = FakeRegistry()
    digest = registry.push("1.0.0", a_chart(), CHART_LAYER)
    async with listening(registry.app()) as origin:
        source = ChartSource(address(origin, "/charts"), "web", "1.0.0")
        oci_chart = await fetch_oci_chart(source, an_access(tmp_path))

    assert str(oci_chart.revision) == f"1.0.0@{digest}"
    assert not any("tags" in path for path, _ in registry.requests)


async def test_a_token_is_fetched_from_the_realm_of_the_registry(tmp_path: Path) -> None:
    registry = FakeRegistry(password="sesame")
    registry.push("latest", TREE, TREE_LAYER)
    async with listening(registry.app()) as origin:
        keys = OriginCredentials(
            origin, Credentials(username="ann", password=SecretValue("sesame"))
        )
        oci = await fetch_oci(OciSource(address(origin)), an_access(tmp_path, keyring=keys))

    assert oci.files == ("app.yaml",)
    assert any("scope=repository:charts/web:pull" in path for path, _ in registry.requests)


async def test_without_credentials_the_registry_denies_access(tmp_path: Path) -> None:
    registry = FakeRegistry(password="sesame")
    async with listening(registry.app()) as origin:
        with pytest.raises(SourceError) as caught:
            await fetch_oci(OciSource(address(origin)), an_access(tmp_path))

    assert caught.value.code == "source.http.credentials"


async def test_storage_on_another_host_gets_no_token(tmp_path: Path) -> None:
    storage = FakeRegistry()
    storage.blobs[digest_of(TREE)] = TREE
    registry = FakeRegistry(password="sesame")
    registry.push("latest", TREE, TREE_LAYER)
    async with listening(storage.app()) as other, listening(registry.app()) as origin:
        registry.storage = f"{other}/v2/charts/web/blobs"
        keys = OriginCredentials(
            origin, Credentials(username="ann", password=SecretValue("sesame"))
        )
        await fetch_oci(OciSource(address(origin)), an_access(tmp_path, keyring=keys))

    assert [secret for _, secret in storage.requests] == [""]


async def test_a_digest_pins_the_artifact_and_needs_no_network_again(tmp_path: Path) -> None:
    registry = FakeRegistry()
    digest = registry.push("v1", TREE, TREE_LAYER)
    access = an_access(tmp_path)
    async with listening(registry.app()) as origin:
        source = OciSource(address(origin), digest=digest)
        before = await fetch_oci(source, access)

    after = await fetch_oci(source, access)

    assert after == before
    assert str(after.revision) == digest


async def test_a_layer_can_be_chosen_and_kept_as_a_file(tmp_path: Path) -> None:
    registry = FakeRegistry()
    registry.push("latest", b"plain text", "text/plain")
    async with listening(registry.app()) as origin:
        source = OciSource(address(origin), media_type="text/plain", copies_layer=True)
        oci = await fetch_oci(source, an_access(tmp_path))

    assert (oci.root / "layer").read_text() == "plain text"


async def test_tags_can_be_filtered_before_the_range(tmp_path: Path) -> None:
    registry = FakeRegistry()
    registry.push("1.0.0", TREE, TREE_LAYER)
    registry.push("1.1.0-rc.1", TREE, TREE_LAYER)
    async with listening(registry.app()) as origin:
        source = OciSource(address(origin), range=">=1.0.0-0", filter="^[0-9.]+$")
        oci = await fetch_oci(source, an_access(tmp_path))

    assert oci.revision.name == "1.0.0"


async def test_a_layer_with_a_wrong_digest_is_rejected(tmp_path: Path) -> None:
    registry = FakeRegistry()
    registry.push("latest", TREE, TREE_LAYER)
    registry.blobs[digest_of(TREE)] = b"something else"
    async with listening(registry.app()) as origin:
        with pytest.raises(SourceError) as caught:
            await fetch_oci(OciSource(address(origin)), an_access(tmp_path))

    assert caught.value.code == "source.digest"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"tag": "none"}, "source.http.missing"),
        ({"tag": "../../x"}, "source.oci.ref"),
        ({"digest": "sha256:12"}, "source.oci.ref"),
        ({"range": "^9"}, "source.oci.tag"),
        ({"range": "^1", "filter": "("}, "source.oci.filter"),
        ({"media_type": "none"}, "source.oci.layer"),
    ],
)
async def test_a_missing_artifact_is_reported(
    tmp_path: Path, changes: dict[str, str], code: str
) -> None:
    registry = FakeRegistry()
    registry.push("latest", TREE, TREE_LAYER)
    async with listening(registry.app()) as origin:
        source = msgspec.structs.replace(OciSource(address(origin)), **changes)
        with pytest.raises(SourceError) as caught:
            await fetch_oci(source, an_access(tmp_path))

    assert caught.value.code == code


@pytest.mark.parametrize("url", ["oci://-x/y", "oci://host", "https://host/x", "oci://host/a/../b"])
async def test_an_address_that_is_in_no_registry_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(SourceError) as caught:
        await fetch_oci(OciSource(url), an_access(tmp_path))

    assert caught.value.code == "source.url"


async def test_offline_an_artifact_that_is_not_in_the_cache_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        await fetch_oci(OciSource("oci://localhost/x"), an_access(tmp_path, offline=True))

    assert caught.value.code == "source.offline"
