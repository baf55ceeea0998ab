"""Get charts and artifacts from OCI registries: tags, manifests, one layer, all by digest."""

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
LARGEST_MANIFEST = 4 * MIB
HUB, HUB_API = "docker.io", "registry-1.docker.io"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_ADDRESS = lazy_regex(
    r"oci://(?P<host>(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::[0-9]{1,5})?)"
    r"/(?P<name>[a-z0-9]+(?:(?:[./]|__?|-+)[a-z0-9]+)*)/?"
)
_TAG = lazy_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = lazy_regex(r"sha256:[0-9a-f]{64}")


class ArtifactLayer(msgspec.Struct, frozen=True, rename="camel"):
    """One file of an artifact."""

    digest: str
    size: int = 0
    media_type: str = ""


class ArtifactManifest(msgspec.Struct, frozen=True, rename="camel"):
    """What an artifact is made of."""

    layers: tuple[ArtifactLayer, ...] = ()
    annotations: dict[str, str] = {}


async def fetch_oci(source: OciSource, access: FetchOptions) -> Snapshot:
    """The tree, or with `copies` the one file, of an artifact."""
    async with (
        access.cache.turn(f"oci {source}"),
        _registry(source.url, access, plain=source.plain_http) as registry,
    ):
        tag = await _choose_tag(source, registry, access)
        digest = source.digest or await _digest_of(tag, registry, access)
        return await _artifact(source, Revision(tag, digest), registry, access)


async def fetch_oci_chart(source: ChartSource, access: FetchOptions) -> Snapshot:
    """A chart in a registry: its tags are its versions, with `_` written for `+`."""
    url = f"{source.repository.rstrip('/')}/{source.chart}"
    wanted = source.version
    exact = bool(wanted) and require_range(wanted).is_one_version
    artifact = OciSource(
        url,
        tag=wanted.replace("+", "_") if exact else "",
        range="" if exact else wanted or "*",
        media_type=CHART_LAYER,
        plain_http=source.plain_http,
    )
    found = await fetch_oci(artifact, access)
    check_chart(found.root, url)
    revision = Revision(found.revision.name.replace("_", "+"), found.revision.digest)
    return msgspec.structs.replace(found, source=source, revision=revision)


@asynccontextmanager
async def _registry(url: str, access: FetchOptions, *, plain: bool) -> AsyncIterator[Registry]:
    found = _ADDRESS.fullmatch(url)
    if found is None:
        raise SourceError(
            "source.url",
            f"`{sanitize(url)}` is not an address in a registry",
            hint="write it as `oci://host/path`, in small letters and without a tag",
        )
    host = HUB_API if found["host"] == HUB else found["host"]
    without_tls = plain or host.rpartition(":")[0] in LOOPBACK or host in LOOPBACK
    origin = f"{'http' if without_tls else 'https'}://{host}"
    credentials = access.keyring.find(origin)
    async with open_http_client(access, credentials) as web:
        yield Registry(web, origin, found["name"], credentials)


async def _choose_tag(source: OciSource, registry: Registry, access: FetchOptions) -> str:
    if source.digest:
        return ""
    if not source.range:
        return _checked(source.tag or "latest", _TAG, "is not a tag")
    wanted = require_range(source.range)
    tags = await _tags(registry, access)
    if source.filter:
        tags = await filter_tags(source.filter, tags)
    versions = {tag.replace("_", "+"): tag for tag in tags}
    found = pick_highest(wanted, versions)
    if found is None:
        problem = f"no tag is a version in `{sanitize(source.range)}`"
        raise SourceError("source.oci.tag", problem, location=Location(registry.shown))
    return versions[found.text]


async def _tags(registry: Registry, access: FetchOptions) -> list[str]:
    note = f"tags {registry.shown}"
    known = access.recall(note, registry.shown)
    if known is not None:
        return msgspec.json.decode(known, type=list[str])
    tags = await registry.tags()
    access.cache.note(note, msgspec.json.encode(tags))
    return tags


async def _digest_of(tag: str, registry: Registry, access: FetchOptions) -> str:
    note = f"tag {registry.shown} {tag}"
    known = access.recall(note, f"{registry.shown} at {tag}")
    if known is not None:
        return known.decode()
    got = await registry.get(f"manifests/{tag}", accept=MANIFESTS, limit=LARGEST_MANIFEST)
    digest = f"sha256:{hashlib.sha256(got.body).hexdigest()}"
    access.cache.note(note, digest.encode())
    access.cache.note(f"manifest {digest}", got.body)
    return digest


async def _artifact(
    source: OciSource, revision: Revision, registry: Registry, access: FetchOptions
) -> Snapshot:
    _checked(revision.digest, _DIGEST, "is not a digest")
    name = f"oci {registry.shown} {revision.digest} {source.media_type} {source.copies_layer}"
    tree = access.cache.find(name)
    if tree is None and access.offline:
        raise offline_error(f"{registry.shown} at {revision}")
    if tree is None:
        layer = _layer(source, await _manifest(revision.digest, registry, access), registry)

        async def fill(place: Path) -> None:
            await _get_layer(source, layer, registry, place, access)

        kind = CacheEntryKind.CHARTS if layer.media_type == CHART_LAYER else CacheEntryKind.SOURCES
        tree = await access.cache.keep(name, fill, shown=registry.shown, kind=kind)
    return Snapshot(source, revision, tree.root, tree.files, digest=tree.digest)


async def _manifest(digest: str, registry: Registry, access: FetchOptions) -> ArtifactManifest:
    body = access.cache.recall(f"manifest {digest}")
    if body is None:
        path = f"manifests/{digest}"
        body = (await registry.get(path, accept=MANIFESTS, limit=LARGEST_MANIFEST)).body
    check_digest(f"sha256:{hashlib.sha256(body).hexdigest()}", digest, registry.shown)
    try:
        return msgspec.json.decode(body, type=ArtifactManifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        problem = "the manifest cannot be read"
        raise SourceError(
            "source.oci.manifest", problem, location=Location(registry.shown)
        ) from error


def _layer(source: OciSource, manifest: ArtifactManifest, registry: Registry) -> ArtifactLayer:
    wanted = source.media_type
    for layer in manifest.layers:
        if not wanted or layer.media_type == wanted:
            _checked(layer.digest, _DIGEST, "is not a digest")
            return layer
    kind = f"of type `{sanitize(wanted)}`" if wanted else "at all"
    problem = f"the artifact has no layer {kind}"
    raise SourceError("source.oci.layer", problem, location=Location(registry.shown))


async def _get_layer(
    source: OciSource, layer: ArtifactLayer, registry: Registry, place: Path, access: FetchOptions
) -> None:
    with tempfile.TemporaryDirectory(prefix="tidegate-") as folder:
        packed = Path(folder) / "layer"
        ask = DownloadRequest(url="", into=packed, limit=access.limits.download)
        got = await registry.send(f"blobs/{layer.digest}", ask)
        check_digest(got.sha256, layer.digest, registry.shown)
        if source.copies_layer:
            shutil.copyfile(packed, place / "layer")
            return
        strip = 1 if layer.media_type == CHART_LAYER else 0
        await asyncio.to_thread(
            unpack, packed, place, name=registry.shown, limits=access.limits, strip=strip
        )


def _checked(text: str, shape: re.Pattern[str], reason: str) -> str:
    if not shape.fullmatch(text):
        raise SourceError("source.oci.ref", f"`{sanitize(text)}` {reason}")
    return text
