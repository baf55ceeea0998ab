"""Flux sources: objects that define the origin of a tree of files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec.structs import replace

from tidegate.dialect.declared import Declarations
from tidegate.dialect.flux.field_reader import FieldReader, FluxResource, open_resource
from tidegate.dialect.flux.fields import read_chart
from tidegate.documents import Document
from tidegate.model.finding import Severity
from tidegate.model.k8s.objects import Json
from tidegate.model.units.source import (
    ArtifactCopy,
    BucketSource,
    ChartSource,
    CopyStrategy,
    DeclaredSource,
    GitRef,
    GitRefKind,
    GitSource,
    OciSource,
    SourceObject,
    SourceRef,
)

REF_KINDS = {
    "commit": GitRefKind.COMMIT,
    "name": GitRefKind.NAME,
    "semver": GitRefKind.RANGE,
    "tag": GitRefKind.TAG,
    "branch": GitRefKind.BRANCH,
}
"""Kinds of a Git reference; the first one that a GitRepository has counts."""
DEFAULT_BRANCH = GitRef(GitRefKind.BRANCH, "master")
GIT, BUCKET = "GitRepository", "Bucket"
NON_S3_CLOUDS = ("gcp", "azure")
"""Clouds whose buckets do not use the S3 API."""
OCI = "oci://"
WEB = ("http://", "https://")
SCHEMES = {GIT: (*WEB, "ssh://"), "OCIRepository": (OCI,)}
UNFETCHABLE = {
    "ExternalArtifact": "only a controller in a cluster creates this artifact",
}
UNSUPPORTED = {
    "sts": "no STS endpoint is used for temporary credentials",
    "certSecretRef": "certificates come from this machine",
    "provider": "no cloud credentials are used",
    "proxySecretRef": "the proxy settings of this machine are used",
    "serviceAccountName": "no service account of the cluster is used",
    "verify": "signatures are not verified",
}
DEFAULTS: dict[str, Json] = {"provider": "generic"}


def read_flux_source(document: Document, namespace: str) -> Declarations:
    """Read the source that an object defines; `namespace` is used if the object has none."""
    resource = open_resource(document, namespace)
    if not resource.name:
        return Declarations(findings=resource.findings)
    kind, spec = resource.kind.name, resource.spec
    declared = DeclaredSource(
        id=SourceObject(kind, resource.namespace, resource.name),
        location=resource.location,
        ignore=spec.text("ignore"),
        secret_name=spec.child("secretRef").text("name"),
        is_suspended=spec.flag("suspend"),
        sparse_directories=tuple(_sparse(spec)) if kind == GIT else (),
        copies=tuple(_included(resource)) if kind == GIT else (),
    )
    if kind in UNFETCHABLE:
        declared = replace(declared, problem=UNFETCHABLE[kind])
    elif kind == "HelmChart":
        declared = _chart(declared, resource)
    elif kind == BUCKET:
        declared = _bucket(declared, spec)
    else:
        declared = _fetched(declared, resource)
    if kind not in {"ExternalArtifact", "HelmRepository"}:
        spec.duration("interval", required=True)
    spec.report_unsupported(UNSUPPORTED, DEFAULTS)
    spec.report_ignored(("gitImplementation", "accessFrom"), "Flux ignores it", "remove it")
    return Declarations(sources=(declared,), findings=resource.findings)


class SourceLookup(Protocol):
    """Lookup of sources by their objects, such as a mapping."""

    def get(self, source_object: SourceObject, /) -> DeclaredSource | None: ...


def resolve_source(
    source_object: SourceObject,
    declared: SourceLookup,
    parents: frozenset[SourceObject] = frozenset(),
) -> DeclaredSource | None:
    """Resolve the source of a unit; None if it is not declared.

    For a HelmChart, the `id` of the result has the name of the chart, or its path in the tree.
    `parents`: the sources that include this one.
    """
    key = SourceObject(source_object.kind, source_object.namespace, source_object.name)
    declaration = declared.get(key)
    if declaration is None:
        return None
    if key in parents:
        return replace(declaration, source=None, copies=(), problem=f"`{key}` includes itself")
    return _resolve_parts(replace(declaration, id=key), source_object, declared, parents | {key})


def _resolve_parts(
    declaration: DeclaredSource,
    source_object: SourceObject,
    declared: SourceLookup,
    parents: frozenset[SourceObject],
) -> DeclaredSource:
    """Resolve everything that a source is composed of."""
    discovery = declaration.discovery
    declaration = replace(
        declaration,
        copies=tuple(
            replace(copy, declared_source=resolve_source(copy.source, declared, parents))
            for copy in declaration.copies
        ),
        discovery=discovery
        and replace(discovery, declared_source=resolve_source(discovery.source, declared, parents)),
        alternatives=tuple(
            _resolve_parts(replace(other, id=declaration.id), source_object, declared, parents)
            for other in declaration.alternatives
        ),
    )
    match declaration.source:
        case ChartSource() as repository:
            chart_source = replace(
                repository, chart=source_object.chart, version=source_object.version
            )
            return replace(declaration, source=chart_source)
        case SourceObject() as tree_object:
            return _resolve_chart(declaration, tree_object, declared)
        case _:
            return declaration


def _resolve_chart(
    chart: DeclaredSource, tree_object: SourceObject, declared: SourceLookup
) -> DeclaredSource:
    tree = resolve_source(tree_object, declared)
    if tree is None:
        return replace(chart, source=None, problem=f"source {tree_object} is not declared")
    return replace(
        tree,
        id=replace(chart.id, chart=tree_object.chart, version=tree_object.version),
        location=chart.location,
        values_files=chart.values_files,
        ignore_missing_values_files=chart.ignore_missing_values_files,
        is_suspended=chart.is_suspended or tree.is_suspended,
    )


def _chart(declared: DeclaredSource, resource: FluxResource) -> DeclaredSource:
    """Return a HelmChart with its source, which is always in its own namespace."""
    tree_object, files = read_chart(resource.spec, resource.namespace, is_old=resource.is_old)
    if tree_object is None:
        return replace(declared, problem="the HelmChart has no `sourceRef`")
    return replace(
        declared,
        source=replace(tree_object, namespace=resource.namespace),
        values_files=tuple(file.path for file in files),
        ignore_missing_values_files=any(file.optional for file in files),
    )


def _bucket(declared: DeclaredSource, spec: FieldReader) -> DeclaredSource:
    endpoint, name = spec.text("endpoint", required=True), spec.text("bucketName", required=True)
    if not endpoint or not name:
        return replace(declared, problem="the Bucket has no `endpoint` or `bucketName`")
    cloud = spec.text("provider", choices=("generic", "aws", *NON_S3_CLOUDS), default="generic")
    source = BucketSource(
        endpoint,
        name,
        prefix=spec.text("prefix"),
        region=spec.text("region"),
        ignore=declared.ignore,
        provider=cloud if cloud in NON_S3_CLOUDS else "",
        plain_http=spec.flag("insecure"),
    )
    return replace(declared, source=source)


def _fetched(declared: DeclaredSource, resource: FluxResource) -> DeclaredSource:
    spec, kind = resource.spec, resource.kind.name
    url, source = spec.text("url", required=True), _source(spec, kind)
    schemes = SCHEMES.get(kind) or _repository_schemes(spec)
    if url and not url.startswith(schemes):
        fix = f"use {' or '.join(f'`{scheme}`' for scheme in schemes)}"
        if kind == "HelmRepository" and url.startswith(OCI):
            fix = "add `type: oci`"
        spec.report("flux.address", "url", "has an unsupported scheme", fix=fix)
    if not url.startswith(schemes):
        return replace(declared, problem=f"the {kind} has no valid `url`")
    return replace(declared, source=source)


def _sparse(spec: FieldReader) -> Iterator[str]:
    """Yield the path prefixes of a sparse checkout, relative to the root."""
    for path in spec.string_list("sparseCheckout"):
        yield path.removeprefix("./")


def _included(resource: FluxResource) -> Iterator[ArtifactCopy]:
    """Yield the copies of other repositories of the same namespace, each with its target path."""
    for entry in resource.spec.children("include"):
        name = entry.child("repository").text("name", required=True)
        if name:
            yield ArtifactCopy(
                source=SourceObject(GIT, resource.namespace, name),
                pattern=entry.tree_path("fromPath"),
                destination=entry.tree_path("toPath") if entry.text("toPath") else name,
                strategy=CopyStrategy.DIRECTORY,
                location=entry.location(),
            )


def _repository_schemes(spec: FieldReader) -> tuple[str, ...]:
    return (OCI,) if spec.text("type", choices=("default", "oci")) == "oci" else WEB


def _source(spec: FieldReader, kind: str) -> SourceRef | None:
    url, insecure = spec.text("url"), spec.flag("insecure")
    match kind:
        case "GitRepository":
            return GitSource(url, _git_ref(spec.child("ref")), spec.flag("recurseSubmodules"))
        case "OCIRepository":
            return _artifact(spec, url, insecure=insecure)
        case "HelmRepository":
            shares = spec.flag("passCredentials")
            return ChartSource(url, "", shares_credentials=shares, plain_http=insecure)
        case _:
            return None


def _git_ref(ref: FieldReader) -> GitRef:
    names = [name for name in REF_KINDS if ref.text(name)]
    if not names:
        return DEFAULT_BRANCH
    for name in names[1:]:
        if (names[0], name) != ("commit", "branch"):
            why = f"`{names[0]}` takes precedence"
            ref.report("flux.ignored", name, "has no effect", severity=Severity.NOTE, why=why)
    return GitRef(REF_KINDS[names[0]], ref.text(names[0]))


def _artifact(spec: FieldReader, url: str, *, insecure: bool) -> OciSource:
    ref, layer = spec.child("ref"), spec.child("layerSelector")
    return OciSource(
        url,
        tag=ref.text("tag"),
        range=ref.text("semver"),
        filter=ref.text("semverFilter"),
        digest=ref.text("digest"),
        media_type=layer.text("mediaType"),
        copies_layer=layer.text("operation", choices=("extract", "copy")) == "copy",
        plain_http=insecure,
    )
