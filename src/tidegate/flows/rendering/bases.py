"""Remote bases of overlays: a directory of a repository, or a file of a server."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

import msgspec

from tidegate.documents import read_documents
from tidegate.errors import DocumentError, SourceError, sanitize
from tidegate.model.patterns import lazy_regex
from tidegate.model.rendering import FetchedTree
from tidegate.model.source import GitRef, GitRefKind, GitSource
from tidegate.source import Access, fetch, fetch_file
from tidegate.source.cache import CachedTree
from tidegate.source.git.refs import is_range
from tidegate.source.web import FILE

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
    """Return the repository and the directory that a reference names; None if it names none.

    References are parsed as by kustomize, which fetches `submodules` unless the reference says
    otherwise.
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


async def fetch_base(reference: str, options: Access) -> FetchedTree:
    """Fetch the target of a reference. A manifest must not read repositories of this machine."""
    options = msgspec.structs.replace(options, schemes=options.schemes - {"file"})
    base = parse_base(reference)
    if reference.lower().startswith(("http:", "https:")) and not _is_repository(reference):
        tree = await _fetch_manifest(reference, options, base=base)
        if tree is not None:
            return FetchedTree(tree.root, FILE)
    if base is None:
        problem = f"`{sanitize(reference)}` names neither a repository nor a file"
        raise SourceError("source.url", problem, hint="write it as `https://host/owner/name//path`")
    return FetchedTree((await fetch(base.source, options)).root, base.path)


async def _fetch_manifest(
    url: str, options: Access, *, base: RemoteBase | None
) -> CachedTree | None:
    """Return the file at an address; None if there is none, and it may be a repository."""
    is_file = base is None or url.lower().endswith(MANIFEST_SUFFIXES)
    try:
        tree = await fetch_file(url, options)
        if not is_file:
            read_documents((tree.root / FILE).read_bytes(), "")  # a page for people is no manifest
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
