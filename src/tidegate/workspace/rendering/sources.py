"""Trees of the sources of units, and remote bases of overlays: fetched, or made of several."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qs

import msgspec

from tidegate.dialect.units import FLUX_NAMESPACE
from tidegate.documents import read_documents
from tidegate.errors import DocumentError, Location, SourceError, sanitize
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.rendering import FetchedTree, FluxDetails
from tidegate.model.units.source import (
    ArtifactCopy,
    BucketSource,
    ChartSource,
    DeclaredSource,
    GitRef,
    GitRefKind,
    GitSource,
    LocalSource,
    OciSource,
    Revision,
    Snapshot,
    SourceObject,
    SourceRef,
)
from tidegate.model.units.unit import UnitSource
from tidegate.render.sops.objects import PLACEHOLDER
from tidegate.source import FetchOptions, credentials_from_secret, fetch, fetch_file
from tidegate.source.artifact_directories import fill_artifact_copy, find_artifact_directory
from tidegate.source.cache import CachedTree
from tidegate.source.git.refs import is_range
from tidegate.source.urls import read_git_url
from tidegate.source.web import FILE_NAME, url_origin
from tidegate.workspace.rendering.context import RenderContext

Data: TypeAlias = Mapping[str, bytes]
FindData: TypeAlias = Callable[[str, str, str], Data | None]
"""Returns the entries of a ConfigMap or Secret by kind, namespace and name; None if unknown.

Of an object that no key decrypts the names are known; placeholders replace the values.
"""


def decode_data(body: dict[str, Json]) -> dict[str, bytes]:
    """Return the entries of a ConfigMap or Secret, decoded."""
    decoded = {name: str(value).encode() for name, value in get_mapping(body, "stringData").items()}
    entries = get_mapping(body, "data")
    if get_text(body, "kind") != "Secret":
        return {name: str(value).encode() for name, value in entries.items()}
    for name, value in entries.items():
        try:
            decoded.setdefault(name, base64.b64decode(str(value), validate=True))
        except ValueError:
            continue  # the API server would reject it
    return decoded


def decrypted_data(entries: Data | None) -> Data | None:
    """Return the entries; None if no key decrypted them."""
    placeholder = PLACEHOLDER.encode()
    is_undecrypted = entries is not None and any(placeholder in value for value in entries.values())
    return None if is_undecrypted else entries


async def fetch_tree(
    unit_source: UnitSource, context: RenderContext, find_data: FindData
) -> Snapshot:
    """Return the tree of one source of a unit."""
    details, source = unit_source.details, unit_source.source
    declared = details.declared_source if isinstance(details, FluxDetails) else None
    if isinstance(source, LocalSource):
        return Snapshot(source, Revision(), Path(source.path), ())
    if declared is not None:
        return await _fetch_declared(declared, context, find_data)
    if isinstance(source, SourceObject) and source.name == FLUX_NAMESPACE:
        problem = f"source `{source}`, which `flux bootstrap` or Flux Operator creates, is unknown"
        hint = "map its URL to a directory"
        raise SourceError("source.bootstrap", problem, hint=hint)
    if isinstance(source, SourceObject):
        raise _undeclared_error(f"source `{source}` is not declared in this repository", None)
    return await context.fetch(source)


async def _fetch_declared(
    declared: DeclaredSource, context: RenderContext, find_data: FindData
) -> Snapshot:
    """Return the tree of a declared source; the parts of a composed tree are fetched first."""
    source = declared.source
    if declared.suggestion:
        problem, hint = (
            f"source `{declared.id}` is not declared in this repository",
            f"did you mean `{declared.suggestion}`?",
        )
        raise SourceError("source.undeclared", problem, hint=hint)
    if declared.problem or isinstance(source, SourceObject):
        raise _undeclared_error(declared.problem, declared.location)
    if declared.discovery is not None:
        declared = await _resolve_discovery(declared, context, find_data)
    parts = [(copy, await _fetch_copy(copy, context, find_data)) for copy in declared.copies]
    if source is None:
        return _with_named_revision(declared, await context.compose_tree(None, parts), parts)
    namespace, secret = declared.id.namespace, declared.secret_name
    entries = decrypted_data(find_data("Secret", namespace, secret)) if secret else None
    name = f"Secret {namespace}/{secret}"
    keyring = credentials_from_secret(entries, _origin(source), name=name) if entries else None
    if isinstance(source, BucketSource):
        return await context.fetch(source, None, keyring)  # it applies its ignore rules itself
    if not parts and not declared.sparse_directories:
        return await context.fetch(source, declared.ignore, keyring)
    tree = await context.fetch(source, None, keyring)
    if declared.sparse_directories:
        tree = await context.select_directories(
            tree, declared.sparse_directories, declared.location
        )
    composed = await context.compose_tree(tree, parts) if parts else tree
    return await context.filter_ignored(composed, declared.ignore)


async def _fetch_copy(copy: ArtifactCopy, context: RenderContext, find_data: FindData) -> Snapshot:
    if copy.declared_source is None:
        problem = f"source `{copy.source}` is not declared in this repository"
        raise _undeclared_error(problem, copy.location)
    return await _fetch_declared(copy.declared_source, context, find_data)


async def _resolve_discovery(
    declared: DeclaredSource, context: RenderContext, find_data: FindData
) -> DeclaredSource:
    """Return the artifact of the one directory that the name refers to."""
    for candidate in (declared, *declared.alternatives):
        if (discovery := candidate.discovery) is None:
            continue
        if discovery.declared_source is None:
            raise _undeclared_error(
                f"source `{discovery.source}` is not declared in this repository",
                discovery.location,
            )
        tree = await _fetch_declared(discovery.declared_source, context, find_data)
        values = find_artifact_directory(discovery, tree.files, declared.id.name)
        if values is not None:
            copies = tuple(fill_artifact_copy(copy, values) for copy in candidate.copies)
            return msgspec.structs.replace(
                candidate, copies=copies, discovery=None, alternatives=()
            )
    pattern = declared.discovery.pattern if declared.discovery else ""
    problem = (
        f"no directory that matches `{sanitize(pattern)}` produces the artifact"
        f" `{declared.id.name}`"
    )
    raise _undeclared_error(problem, declared.location)


def _with_named_revision(
    declared: DeclaredSource, tree: Snapshot, parts: list[tuple[ArtifactCopy, Snapshot]]
) -> Snapshot:
    """Return the tree with the revision of the source that it is named after, if any."""
    origins = (origin for copy, origin in parts if copy.source == declared.revision_source)
    first = next(origins, None)
    return msgspec.structs.replace(tree, revision=first.revision) if first else tree


def _undeclared_error(problem: str, location: Location | None) -> SourceError:
    hint = "add the source to the repository, or map its URL to a directory"
    return SourceError("source.object", problem, location=location, hint=hint)


def _origin(source: SourceRef) -> str:
    """Return the server of a source: scheme, host, and port if it is not the default."""
    match source:
        case GitSource(url):
            return read_git_url(url).origin
        case ChartSource(repository=address) | OciSource(url=address):
            return url_origin(
                address.replace("oci://", "http://" if source.plain_http else "https://")
            )
        case BucketSource(url=address):
            return url_origin(address)
        case LocalSource():
            return ""


REPOSITORY_SEGMENTS = 2
"""Segments of a repository's path, `owner/name`, where nothing separates it from the directory."""
FALSE_VALUES = ("false", "0", "f")
MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")
_HOST = lazy_regex(
    r"(?:git::)?(?P<host>"
    r"(?:ssh|https?)://(?:[^/@]+@)?[^/@]+/"
    r"|file://"
    r"|[a-z][a-z0-9-]*@[^/:]+[/:]"
    r"|github\.com[/:])(?P<rest>.+)",
    re.IGNORECASE,
)
_AFTER_GIT_SEGMENT = lazy_regex(r"(?P<repository>.*?_git/[^/]+)(?:/(?P<path>.*))?")
_AFTER_SLASHES = lazy_regex(r"(?P<repository>.+?)//(?P<path>.*)")
_AFTER_GIT_SUFFIX = lazy_regex(r"(?P<repository>.+?\.git)(?:/(?P<path>.*))?")


class RemoteBase(msgspec.Struct, frozen=True):
    """A directory of a repository."""

    source: GitSource
    path: str = "."


def parse_base(reference: str, *, submodules: bool = True) -> RemoteBase | None:
    """Return the repository and the directory of a reference; None if it has none.

    References are parsed like kustomize does, which fetches `submodules` unless the reference
    disables it.
    """
    address, _, query = reference.partition("?")
    match = _HOST.fullmatch(address)
    if match is None:
        return None
    split = _split_repository(match["rest"], is_local=match["host"].lower() == "file://")
    if split is None:
        return None
    repository, path = split
    parameters = parse_qs(query)
    source = GitSource(
        _normalize_host(match["host"]) + repository,
        ref=_git_ref((parameters.get("ref") or parameters.get("version") or [""])[-1]),
        submodules=parameters.get("submodules", [str(submodules)])[-1].lower() not in FALSE_VALUES,
    )
    return RemoteBase(source, path.strip("/") or ".")


async def fetch_base(reference: str, options: FetchOptions) -> FetchedTree:
    """Fetch the target of a reference. A manifest must not read repositories of this machine."""
    options = msgspec.structs.replace(options, schemes=options.schemes - {"file"})
    base = parse_base(reference)
    if reference.lower().startswith(("http:", "https:")) and not _is_repository(reference):
        tree = await _fetch_manifest(reference, options, base=base)
        if tree is not None:
            return FetchedTree(tree.root, FILE_NAME)
    if base is None:
        problem = f"`{sanitize(reference)}` is neither a repository nor a file"
        hint = "write it as `https://host/owner/name//path`"
        raise SourceError("source.url", problem, hint=hint)
    return FetchedTree((await fetch(base.source, options)).root, base.path)


async def _fetch_manifest(
    url: str, options: FetchOptions, *, base: RemoteBase | None
) -> CachedTree | None:
    """Return the file at an address; None if there is none, and it may be a repository."""
    is_file = base is None or url.lower().endswith(MANIFEST_SUFFIXES)
    try:
        tree = await fetch_file(url, options)
        if not is_file:
            read_documents((tree.root / FILE_NAME).read_bytes(), "")  # raises for a web page
    except (SourceError, DocumentError):
        if is_file:
            raise
        return None
    return tree


def _is_repository(reference: str) -> bool:
    address, _, query = reference.partition("?")
    has_separator = any(
        separator in address.partition("://")[2] for separator in ("_git/", "//", ".git/")
    )
    return has_separator or address.endswith(".git") or "ref=" in query or "version=" in query


def _split_repository(path: str, *, is_local: bool) -> tuple[str, str] | None:
    for pattern in (_AFTER_GIT_SEGMENT, _AFTER_SLASHES, _AFTER_GIT_SUFFIX):
        match = pattern.fullmatch(path)
        if match is not None:
            return match["repository"], match["path"] or ""
    if is_local:
        return path, ""
    segments = path.split("/")
    if len(segments) < REPOSITORY_SEGMENTS:
        return None
    return "/".join(segments[:REPOSITORY_SEGMENTS]), "/".join(segments[REPOSITORY_SEGMENTS:])


def _normalize_host(host: str) -> str:
    if "://" in host:
        return host
    if host[:-1].lower() == "github.com":
        return "https://github.com/"
    return f"{host[:-1]}:"


def _git_ref(ref: str) -> GitRef:
    """Return any ref, but no range: `1.x` is a branch here."""
    if not ref:
        return GitRef()
    at = GitRef(GitRefKind.ANY, ref)
    return GitRef(GitRefKind.BRANCH, ref) if is_range(at) else at
