"""Sources: where a file tree comes from, its revision, and the tree."""

from __future__ import annotations

import posixpath
from enum import StrEnum
from itertools import takewhile
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.errors import Location, redact_urls
from tidegate.model.k8s.secret import SecretValue

GLOB_CHARACTERS = frozenset("*?[]")
"""The characters that make a path a pattern."""


class GitRefKind(StrEnum):
    """The kind of a Git ref."""

    HEAD = "head"
    BRANCH = "branch"
    TAG = "tag"
    COMMIT = "commit"
    NAME = "name"
    RANGE = "range"
    ANY = "any"


class GitRef(msgspec.Struct, frozen=True, order=True):
    """A commit: by branch, tag, commit, full name, or the highest tag in a range.

    `ANY` leaves the kind of the text open.
    """

    kind: GitRefKind = GitRefKind.HEAD
    text: str = ""
    prefix: str = ""
    """A prefix of tags in a range. The rest of a tag is the version."""

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
    ref: GitRef = GitRef()
    submodules: bool = False

    def __str__(self) -> str:
        return redact_urls(f"{self.url} at {self.ref}")


class ChartSource(msgspec.Struct, frozen=True, order=True, tag="chart"):
    """A chart in a Helm repository, over HTTP or, with an `oci://` URL, in a registry."""

    repository: str
    chart: str
    version: str = ""
    """The version or range. Empty for the latest version that is not a prerelease."""
    shares_credentials: bool = False
    """Whether credentials are also sent to other hosts in the index of the repository."""
    plain_http: bool = False

    def __str__(self) -> str:
        return redact_urls(f"{self.chart} {self.version or '*'} from {self.repository}")


class OciSource(msgspec.Struct, frozen=True, order=True, tag="oci"):
    """An artifact in an OCI registry: by digest, else by range, else by tag (`latest`)."""

    url: str
    tag: str = ""
    range: str = ""
    filter: str = ""
    digest: str = ""
    media_type: str = ""
    """The media type of the layer. Empty for the first layer."""
    copies_layer: bool = False
    """Whether the layer is kept as one file instead of unpacked."""
    plain_http: bool = False
    """Whether to use HTTP without TLS."""

    def __str__(self) -> str:
        return redact_urls(f"{self.url} at {self.digest or self.range or self.tag or 'latest'}")


class BucketSource(msgspec.Struct, frozen=True, order=True, tag="bucket"):
    """The objects of a bucket whose names start with `prefix`, each as a file."""

    endpoint: str
    """A host or a URL."""
    name: str
    prefix: str = ""
    region: str = ""
    ignore: str = ""
    """Exclusion patterns, added after those of its `.sourceignore`."""
    provider: str = ""
    """The cloud provider, if the bucket is not S3 compatible."""
    plain_http: bool = False
    """Whether to use HTTP without TLS."""

    @property
    def url(self) -> str:
        scheme = "http" if self.plain_http else "https"
        endpoint = self.endpoint if "://" in self.endpoint else f"{scheme}://{self.endpoint}"
        return f"{endpoint.rstrip('/')}/{self.name}"

    def __str__(self) -> str:
        return redact_urls(self.url)


SourceRef: TypeAlias = LocalSource | GitSource | ChartSource | OciSource | BucketSource


class SourceObject(msgspec.Struct, frozen=True, order=True, tag="object"):
    """A source object in a cluster, such as Flux's GitRepository."""

    kind: str
    namespace: str
    name: str
    chart: str = ""
    """The chart of a Helm repository."""
    version: str = ""
    """The version of the chart."""

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


class CopyStrategy(StrEnum):
    """How files of one tree are copied into another."""

    DIRECTORY = "whole"
    """Copy a directory to a path that does not exist yet."""
    COPY = "copy"
    """Copy the files that match a pattern, and overwrite existing files."""
    MERGE = "merge"
    """Copy the files that match a pattern, and merge existing files as YAML."""
    EXTRACT = "extract"
    """Extract the archives that match a pattern."""


class ArtifactCopy(msgspec.Struct, frozen=True, kw_only=True):
    """Files that are copied from another source."""

    source: SourceObject
    pattern: str
    destination: str
    excludes: tuple[str, ...] = ()
    strategy: CopyStrategy = CopyStrategy.COPY
    location: Location | None = None
    declared_source: DeclaredSource | None = None
    """The declaration of that source, once it is found."""

    @property
    def base_directory(self) -> str:
        """The directory part of the pattern before the first wildcard."""
        fixed_parts = takewhile(GLOB_CHARACTERS.isdisjoint, self.pattern.split("/"))
        return posixpath.normpath("/".join(fixed_parts) or ".")


class ArtifactDiscovery(msgspec.Struct, frozen=True, kw_only=True):
    """Directories of a tree, each of which becomes an artifact."""

    source: SourceObject
    pattern: str
    """The path of the directories. A name in braces matches one path segment."""
    name: str
    """The name of the artifact. Names in braces are filled, here and in its copies."""
    location: Location | None = None
    declared_source: DeclaredSource | None = None
    """The declaration of the source, once it is found."""


class DeclaredSource(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of a source object: where its tree is, or why it is unavailable."""

    id: SourceObject
    source: SourceRef | SourceObject | None = None
    """The source. Of a Helm repository, only the URL; of a HelmChart, another object."""
    problem: str = ""
    suggestion: str = ""
    """If the source is not declared, a similar name that is."""
    location: Location | None = None
    ignore: str = ""
    """Exclusion patterns."""
    secret_name: str = ""
    """The Secret with its credentials, in its namespace."""
    values_files: tuple[str, ...] = ()
    ignore_missing_values_files: bool = False
    """Whether values files may be missing."""
    is_suspended: bool = False
    sparse_directories: tuple[str, ...] = ()
    """The only directories of the repository that are checked out."""
    copies: tuple[ArtifactCopy, ...] = ()
    """Files of other trees that are copied into it.

    Without a `source`, they are the whole tree.
    """
    revision_source: SourceObject | None = None
    """Without a `source`, the source whose revision it has."""
    discovery: ArtifactDiscovery | None = None
    """The discovery of directories, each of which becomes an artifact.

    The name in `id` has braces until one directory is chosen.
    """
    alternatives: tuple[DeclaredSource, ...] = ()
    """Other declarations that match the same reference."""


class Revision(msgspec.Struct, frozen=True, order=True):
    """A resolved revision: its current name, and its permanent digest.

    Printed as `main@sha1:0a1b…`, as a tag and digest, or as the version of a chart.
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
    """A file tree at one revision. Files below `root` are never written."""

    source: SourceRef
    revision: Revision
    root: Path
    files: tuple[str, ...]
    """Sorted slash-separated paths of regular files, and of links to files inside the tree."""
    escaping_links: tuple[str, ...] = ()
    """Links that leave the tree, which only a working tree may have."""
    digest: str = ""
    """Digest of paths, contents, links and executable bits.

    Empty for a working tree until requested.
    """
    original_root: Path | None = None
    """The directory that the tree was copied from, if it is a part or a copy."""


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Credentials of a source. Unused fields are empty."""

    username: str = ""
    password: SecretValue | None = None
    token: SecretValue | None = None
    ca_certificate: str = ""
    certificate: str = ""
    key: SecretValue | None = None
    identity: SecretValue | None = None
    known_hosts: str = ""
