"""What an overlay names that lies elsewhere: a directory of a repository, or a file of a server.

References are read as kustomize reads them.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs

import msgspec

from tidegate.documents import read
from tidegate.errors import DocumentError, SourceError, foreign
from tidegate.model.patterns import late
from tidegate.model.rendering import Fetched
from tidegate.model.source import GitRef, GitSource, RefKind
from tidegate.source import Access, fetch, fetch_file
from tidegate.source.cache import CachedTree
from tidegate.source.git.refs import is_range
from tidegate.source.web import FILE

SEGMENTS = 2
"""A repository is called `owner/name` where nothing says otherwise."""
FALSE = ("false", "0", "f")
MANIFESTS = (".yaml", ".yml", ".json")

_HOST = late(
    r"(?:git::)?(?P<host>"
    r"(?:ssh|https?)://(?:[^/@]+@)?[^/@]+/"
    r"|file://"
    r"|[a-z][a-z0-9-]*@[^/:]+[/:]"
    r"|github\.com[/:])(?P<rest>.+)",
    re.IGNORECASE,
)
_AFTER_MARK = late(r"(?P<repository>.*?_git/[^/]+)(?:/(?P<path>.*))?")
_AFTER_SLASHES = late(r"(?P<repository>.+?)//(?P<path>.*)")
_AFTER_ENDING = late(r"(?P<repository>.+?\.git)(?:/(?P<path>.*))?")


class Base(msgspec.Struct, frozen=True):
    """A directory of a repository."""

    source: GitSource
    path: str = "."


def read_base(reference: str, *, submodules: bool = True) -> Base | None:
    """The repository and the directory that a reference names; nothing if it names none.

    Kustomize takes `submodules` along where the reference does not say otherwise.
    """
    address, _, query = reference.partition("?")
    found = _HOST.fullmatch(address)
    if found is None:
        return None
    split = _split(found["rest"], whole=found["host"].lower() == "file://")
    if split is None:
        return None
    repository, path = split
    asked = parse_qs(query)
    source = GitSource(
        _host(found["host"]) + repository,
        at=_ref((asked.get("ref") or asked.get("version") or [""])[-1]),
        submodules=asked.get("submodules", [str(submodules)])[-1].lower() not in FALSE,
    )
    return Base(source, path.strip("/") or ".")


async def fetch_base(reference: str, access: Access) -> Fetched:
    """Get what a reference names. A manifest must not make us read repositories of this machine."""
    access = msgspec.structs.replace(access, schemes=access.schemes - {"file"})
    base = read_base(reference)
    if reference.lower().startswith(("http:", "https:")) and not _is_surely_a_base(reference):
        tree = await _fetch_manifest(reference, access, or_else=base)
        if tree is not None:
            return Fetched(tree.root, FILE)
    if base is None:
        problem = f"`{foreign(reference)}` names neither a repository nor a file"
        raise SourceError("source.url", problem, hint="write it as `https://host/owner/name//path`")
    return Fetched((await fetch(base.source, access)).root, base.path)


async def _fetch_manifest(url: str, access: Access, *, or_else: Base | None) -> CachedTree | None:
    """The file at an address; nothing if there is none, and it may be a repository."""
    is_file = or_else is None or url.lower().endswith(MANIFESTS)
    try:
        tree = await fetch_file(url, access)
        if not is_file:
            read((tree.root / FILE).read_bytes(), "")  # a page for people is no manifest
    except (SourceError, DocumentError):
        if is_file:
            raise
        return None
    return tree


def _is_surely_a_base(reference: str) -> bool:
    address, _, query = reference.partition("?")
    marked = any(mark in address.partition("://")[2] for mark in ("_git/", "//", ".git/"))
    return marked or address.endswith(".git") or "ref=" in query or "version=" in query


def _split(rest: str, *, whole: bool) -> tuple[str, str] | None:
    for marks in (_AFTER_MARK, _AFTER_SLASHES, _AFTER_ENDING):
        found = marks.fullmatch(rest)
        if found is not None:
            return found["repository"], found["path"] or ""
    if whole:
        return rest, ""
    segments = rest.split("/")
    if len(segments) < SEGMENTS:
        return None
    return "/".join(segments[:SEGMENTS]), "/".join(segments[SEGMENTS:])


def _host(host: str) -> str:
    if "://" in host:
        return host
    if host[:-1].lower() == "github.com":
        return "https://github.com/"
    return f"{host[:-1]}:"


def _ref(text: str) -> GitRef:
    """Any name, but no range: `1.x` is a branch here."""
    if not text:
        return GitRef()
    at = GitRef(RefKind.ANY, text)
    return GitRef(RefKind.BRANCH, text) if is_range(at) else at
