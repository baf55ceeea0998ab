"""Sources as nouns: where a tree of files comes from, which revision it is, and the tree."""

from __future__ import annotations

import posixpath
from enum import StrEnum
from itertools import takewhile
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.errors import Place, without_user
from tidegate.model.secret import Secret

MAGIC = frozenset("*?[]")
"""What makes a path a pattern."""


class RefKind(StrEnum):
    """How a Git ref is meant."""

    HEAD = "head"
    BRANCH = "branch"
    TAG = "tag"
    COMMIT = "commit"
    NAME = "name"
    RANGE = "range"
    ANY = "any"


class GitRef(msgspec.Struct, frozen=True, order=True):
    """Which commit: by branch, by tag, by commit, by full name, or the highest tag in a range.

    `ANY` leaves open which of these the text is. With a `prefix`, only tags that begin with it are
    looked at, and what follows it is the version.
    """

    kind: RefKind = RefKind.HEAD
    text: str = ""
    prefix: str = ""

    def __str__(self) -> str:
        return self.text or "HEAD"


class LocalSource(msgspec.Struct, frozen=True, order=True, tag="local"):
    """A directory or an archive on this machine."""

    path: str

    def __str__(self) -> str:
        return self.path


class GitSource(msgspec.Struct, frozen=True, order=True, tag="git"):
    """A commit of a Git repository."""

    url: str
    at: GitRef = GitRef()
    submodules: bool = False

    def __str__(self) -> str:
        return without_user(f"{self.url} at {self.at}")


class ChartSource(msgspec.Struct, frozen=True, order=True, tag="chart"):
    """A chart in a Helm repository, over HTTP or, with an `oci://` address, in a registry.

    An empty version is the latest that is no prerelease. With `shares_credentials` they are also
    sent to other hosts which the repository's index names.
    """

    repository: str
    chart: str
    version: str = ""
    shares_credentials: bool = False
    plain: bool = False

    def __str__(self) -> str:
        return without_user(f"{self.chart} {self.version or '*'} from {self.repository}")


class OciSource(msgspec.Struct, frozen=True, order=True, tag="oci"):
    """An artifact in an OCI registry: by digest, else by range, else by tag (`latest`).

    `media_type` chooses a layer, the first one if empty. With `copies` the layer is kept as one
    file and not unpacked. `plain` speaks HTTP without TLS.
    """

    url: str
    tag: str = ""
    range: str = ""
    filter: str = ""
    digest: str = ""
    media_type: str = ""
    copies: bool = False
    plain: bool = False

    def __str__(self) -> str:
        return without_user(f"{self.url} at {self.digest or self.range or self.tag or 'latest'}")


class BucketSource(msgspec.Struct, frozen=True, order=True, tag="bucket"):
    """The objects of a bucket whose names begin with `prefix`, each a file.

    `endpoint`: a host, or an address. `ignore`: patterns of what is no part of the tree, behind
    those of its `.sourceignore`. `cloud`: whose it is, where it does not speak as S3 does. `plain`
    speaks HTTP without TLS.
    """

    endpoint: str
    name: str
    prefix: str = ""
    region: str = ""
    ignore: str = ""
    cloud: str = ""
    plain: bool = False

    @property
    def url(self) -> str:
        scheme = "http" if self.plain else "https"
        endpoint = self.endpoint if "://" in self.endpoint else f"{scheme}://{self.endpoint}"
        return f"{endpoint.rstrip('/')}/{self.name}"

    def __str__(self) -> str:
        return without_user(self.url)


SourceRef: TypeAlias = LocalSource | GitSource | ChartSource | OciSource | BucketSource


class SourceObject(msgspec.Struct, frozen=True, order=True, tag="object"):
    """A source that an object of a cluster stands for: Flux's GitRepository and its like.

    `chart` and `version` say what is meant of a Helm repository.
    """

    kind: str
    namespace: str
    name: str
    chart: str = ""
    version: str = ""

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


class Putting(StrEnum):
    """How files of one tree are put into another."""

    WHOLE = "whole"
    """A directory as it is, at a place where nothing is yet."""
    COPY = "copy"
    """What a pattern finds, over what is there."""
    MERGE = "merge"
    """The same, but files that are there already are merged as YAML."""
    EXTRACT = "extract"
    """What is in the archives that a pattern finds."""


class Portion(msgspec.Struct, frozen=True, kw_only=True):
    """Files of another source's tree, and where they go. `declared`: that source, once found."""

    source: SourceObject
    pattern: str
    into: str
    excludes: tuple[str, ...] = ()
    how: Putting = Putting.COPY
    where: Place | None = None
    declared: DeclaredSource | None = None

    @property
    def folder(self) -> str:
        """The directory that the pattern names before it begins to choose."""
        plain = takewhile(MAGIC.isdisjoint, self.pattern.split("/"))
        return posixpath.normpath("/".join(plain) or ".")


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """Directories of a tree, each of which makes an artifact.

    In `pattern` a name in braces stands for any one part of a path; in the `name` of the artifact,
    and in its portions, for what was found there. `declared`: that source, once found.
    """

    source: SourceObject
    pattern: str
    name: str
    where: Place | None = None
    declared: DeclaredSource | None = None


class DeclaredSource(msgspec.Struct, frozen=True, kw_only=True):
    """What such an object says: where the tree is, or why it is nowhere to be had.

    Of a Helm repository the `source` has the address alone. A HelmChart stands for a part of
    another object. `ignore`: patterns of what is no part of the tree. `secret`: what opens it, in
    its namespace.
    `optional_values`: the values files need not be there. `sparse`: the only directories that are
    taken of a repository. `portions` of other trees are put into it, or are all there is, where it
    has no `source`; `named_after`: whose revision it goes by then. With a `discovery` it is one for
    each directory that is found, and its `id` has a name with braces until one of them is meant;
    `others` may be meant instead. Where nobody declares it, `near` is a name that may be meant.
    """

    id: SourceObject
    source: SourceRef | SourceObject | None = None
    problem: str = ""
    near: str = ""
    where: Place | None = None
    ignore: str = ""
    secret: str = ""
    values_files: tuple[str, ...] = ()
    optional_values: bool = False
    suspended: bool = False
    sparse: tuple[str, ...] = ()
    portions: tuple[Portion, ...] = ()
    named_after: SourceObject | None = None
    discovery: Discovery | None = None
    others: tuple[DeclaredSource, ...] = ()


class Revision(msgspec.Struct, frozen=True, order=True):
    """What was found: the name it goes by now, and the digest it will always have.

    Printed as `main@sha1:0a1b…`, as a tag and digest, or as a chart's version alone.
    """

    name: str = ""
    digest: str = ""

    @property
    def hex(self) -> str:
        """The digest without its algorithm: for Git, the commit."""
        return self.digest.rpartition(":")[2]

    def __str__(self) -> str:
        return "@".join(part for part in (self.name, self.digest) if part)


class Snapshot(msgspec.Struct, frozen=True):
    """A tree of files at one revision. Nobody writes below `root`.

    `files` are sorted paths from the root, with slashes: regular files, and links to such inside
    the tree. `escaping` are links that lead out of it, which only a working tree may have.
    `digest` covers paths, contents, links and executable bits; it is empty for a working tree until
    someone asks for it. `taken_from`: the directory of which it is a part.
    """

    source: SourceRef
    revision: Revision
    root: Path
    files: tuple[str, ...]
    escaping: tuple[str, ...] = ()
    digest: str = ""
    taken_from: Path | None = None


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What opens a source. What is not needed is left out."""

    username: str = ""
    password: Secret | None = None
    token: Secret | None = None
    authority: str = ""
    certificate: str = ""
    key: Secret | None = None
    identity: Secret | None = None
    known_hosts: str = ""
