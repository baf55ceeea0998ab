"""Charts and artifacts of OCI registries: tags, manifests and one layer, all checked by digest."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from tidegate.errors import Location, SourceError, sanitize
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.source import ChartSource, OciSource, Revision, Snapshot
from tidegate.source.archive import unpack
from tidegate.source.cache import CacheEntryKind
from tidegate.source.oci.registry import Registry, filter_tags
from tidegate.source.options import FetchOptions, offline_error
from tidegate.source.semver import pick_highest, require_range
from tidegate.source.tree import CHART_LAYER, MIB, check_chart, check_digest
from tidegate.source.web import DownloadRequest, open_http_client

MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)
MAX_MANIFEST_SIZE = 4 * MIB
DOCKER_HUB, DOCKER_HUB_API = "docker.io", "registry-1.docker.io"
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_ADDRESS = lazy_regex(
    r"oci://(?P<host>(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::[0-9]{1,5})?)"
    r"/(?P<name>[a-z0-9]+(?:(?:[./]|__?|-+)[a-z0-9]+)*)/?"
)
_TAG = lazy_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = lazy_regex(r"sha256:[0-9a-f]{64}")


class ArtifactLayer(msgspec.Struct, frozen=True, rename="camel"):
    """One layer of an artifact: a file."""

    digest: str
    """The digest of the layer."""
    size: int = 0
    """The size in bytes."""
    media_type: str = ""
    """The media type."""


class ArtifactManifest(msgspec.Struct, frozen=True, rename="camel"):
    """The manifest of an artifact."""

    layers: tuple[ArtifactLayer, ...] = ()
    """The layers."""
    annotations: dict[str, str] = {}
    """The annotations."""


async def fetch_oci(source: OciSource, options: FetchOptions) -> Snapshot:
    """Return the tree of an artifact; with `copies_layer`, the layer itself as one file.

    Like `getRevision` and `selectLayer` in `internal/controller/ocirepository_controller.go` of
    source-controller 1.9.6.
    """
    async with (
        options.cache.lock(f"oci {source}"),
        _open_registry(source.url, options, plain_http=source.plain_http) as registry,
    ):
        tag = await _choose_tag(source, registry, options)
        digest = source.digest or await _resolve_tag(tag, registry, options)
        return await _fetch_artifact(source, Revision(tag, digest), registry, options)


async def fetch_oci_chart(source: ChartSource, options: FetchOptions) -> Snapshot:
    """Fetch a chart from a registry. Its tags are its versions, with `_` in place of `+`.

    Like `GetChartVersion` and `DownloadChart` in `internal/helm/repository/oci_chart_repository.go`
    of source-controller 1.9.6.
    """
    url = f"{source.repository.rstrip('/')}/{source.chart}"
    version = source.version
    is_exact = bool(version) and require_range(version).is_exact
    artifact = OciSource(
        url,
        tag=version.replace("+", "_") if is_exact else "",
        range="" if is_exact else version or "*",
        media_type=CHART_LAYER,
        plain_http=source.plain_http,
    )
    snapshot = await fetch_oci(artifact, options)
    check_chart(snapshot.root, url)
    revision = Revision(snapshot.revision.name.replace("_", "+"), snapshot.revision.digest)
    return msgspec.structs.replace(snapshot, source=source, revision=revision)


@asynccontextmanager
async def _open_registry(
    url: str, options: FetchOptions, *, plain_http: bool
) -> AsyncIterator[Registry]:
    match = _ADDRESS.fullmatch(url)
    if match is None:
        raise SourceError(
            "source.url",
            f"`{sanitize(url)}` is not an OCI registry URL",
            hint="write it as `oci://host/path`, in lower case and without a tag",
        )
    host = DOCKER_HUB_API if match["host"] == DOCKER_HUB else match["host"]
    uses_http = plain_http or host.rpartition(":")[0] in LOOPBACK_HOSTS or host in LOOPBACK_HOSTS
    origin = f"{'http' if uses_http else 'https'}://{host}"
    credentials = options.credentials.find(origin)
    async with open_http_client(options, credentials) as client:
        yield Registry(client, origin, match["name"], credentials)


async def _choose_tag(source: OciSource, registry: Registry, options: FetchOptions) -> str:
    if source.digest:
        return ""
    if not source.range:
        return _require_match(source.tag or "latest", _TAG, "is not a tag")
    version_range = require_range(source.range)
    tags = await _list_tags(registry, options)
    if source.filter:
        tags = await filter_tags(source.filter, tags)
    versions = {tag.replace("_", "+"): tag for tag in tags}
    highest = pick_highest(version_range, versions)
    if highest is None:
        problem = f"no tag matches the version range `{sanitize(source.range)}`"
        raise SourceError("source.oci.tag", problem, location=Location(registry.display_url))
    return versions[highest.text]


async def _list_tags(registry: Registry, options: FetchOptions) -> list[str]:
    cache_name = f"tags {registry.display_url}"
    cached = options.read_cached_text(cache_name, registry.display_url)
    if cached is not None:
        return msgspec.json.decode(cached, type=list[str])
    tags = await registry.list_tags()
    options.cache.write_text(cache_name, msgspec.json.encode(tags))
    return tags


async def _resolve_tag(tag: str, registry: Registry, options: FetchOptions) -> str:
    cache_name = f"tag {registry.display_url} {tag}"
    cached = options.read_cached_text(cache_name, f"{registry.display_url} at {tag}")
    if cached is not None:
        return cached.decode()
    download = await registry.get(f"manifests/{tag}", accept=MANIFESTS, limit=MAX_MANIFEST_SIZE)
    digest = f"sha256:{hashlib.sha256(download.body).hexdigest()}"
    options.cache.write_text(cache_name, digest.encode())
    options.cache.write_text(f"manifest {digest}", download.body)
    return digest


async def _fetch_artifact(
    source: OciSource, revision: Revision, registry: Registry, options: FetchOptions
) -> Snapshot:
    _require_match(revision.digest, _DIGEST, "is not a digest")
    name = f"oci {registry.display_url} {revision.digest} {source.media_type} {source.copies_layer}"
    tree = options.cache.find(name)
    if tree is None and options.offline:
        raise offline_error(f"{registry.display_url} at {revision}")
    if tree is None:
        layer = _choose_layer(
            source, await _fetch_manifest(revision.digest, registry, options), registry
        )

        async def fill(directory: Path) -> None:
            await _download_layer(source, layer, registry, directory, options)

        kind = CacheEntryKind.CHARTS if layer.media_type == CHART_LAYER else CacheEntryKind.SOURCES
        tree = await options.cache.store(name, fill, source_name=registry.display_url, kind=kind)
    return Snapshot(source, revision, tree.root, tree.files, digest=tree.digest)


async def _fetch_manifest(
    digest: str, registry: Registry, options: FetchOptions
) -> ArtifactManifest:
    body = options.cache.read_text(f"manifest {digest}")
    if body is None:
        path = f"manifests/{digest}"
        body = (await registry.get(path, accept=MANIFESTS, limit=MAX_MANIFEST_SIZE)).body
    check_digest(f"sha256:{hashlib.sha256(body).hexdigest()}", digest, registry.display_url)
    try:
        return msgspec.json.decode(body, type=ArtifactManifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        problem = "cannot read the manifest"
        raise SourceError(
            "source.oci.manifest", problem, location=Location(registry.display_url)
        ) from error


def _choose_layer(
    source: OciSource, manifest: ArtifactManifest, registry: Registry
) -> ArtifactLayer:
    media_type = source.media_type
    for layer in manifest.layers:
        if not media_type or layer.media_type == media_type:
            _require_match(layer.digest, _DIGEST, "is not a digest")
            return layer
    kind = f"of type `{sanitize(media_type)}`" if media_type else "at all"
    problem = f"the artifact has no layer {kind}"
    raise SourceError("source.oci.layer", problem, location=Location(registry.display_url))


async def _download_layer(
    source: OciSource,
    layer: ArtifactLayer,
    registry: Registry,
    directory: Path,
    options: FetchOptions,
) -> None:
    with tempfile.TemporaryDirectory(prefix="tidegate-") as scratch:
        layer_file = Path(scratch) / "layer"
        request = DownloadRequest(url="", target=layer_file, limit=options.limits.download)
        download = await registry.request(f"blobs/{layer.digest}", request)
        check_digest(download.sha256, layer.digest, registry.display_url)
        if source.copies_layer:
            shutil.copyfile(layer_file, directory / "layer")
            return
        strip = 1 if layer.media_type == CHART_LAYER else 0
        await asyncio.to_thread(
            unpack,
            layer_file,
            directory,
            name=registry.display_url,
            limits=options.limits,
            strip=strip,
        )


def _require_match(text: str, pattern: re.Pattern[str], reason: str) -> str:
    if not pattern.fullmatch(text):
        raise SourceError("source.oci.ref", f"`{sanitize(text)}` {reason}")
    return text
