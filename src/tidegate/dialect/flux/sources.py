"""Flux's sources: objects that say where a tree of files comes from, by which units name it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec.structs import replace

from tidegate.dialect.declared import Declared
from tidegate.dialect.flux.fields import read_chart
from tidegate.dialect.flux.part import FluxResource, Part, open_resource
from tidegate.documents import Document
from tidegate.model.finding import Severity
from tidegate.model.objects import Json
from tidegate.model.source import (
    BucketSource,
    ChartSource,
    DeclaredSource,
    GitRef,
    GitSource,
    OciSource,
    Portion,
    Putting,
    RefKind,
    SourceObject,
    SourceRef,
)

REFS = {
    "commit": RefKind.COMMIT,
    "name": RefKind.NAME,
    "semver": RefKind.RANGE,
    "tag": RefKind.TAG,
    "branch": RefKind.BRANCH,
}
"""The first of these that a GitRepository has counts."""
DEFAULT_BRANCH = GitRef(RefKind.BRANCH, "master")
GIT, BUCKET = "GitRepository", "Bucket"
OTHERS = ("gcp", "azure")
"""Clouds whose buckets do not speak as S3 does."""
OCI = "oci://"
WEB = ("http://", "https://")
SCHEMES = {GIT: (*WEB, "ssh://"), "OCIRepository": (OCI,)}
NOWHERE = {
    "ExternalArtifact": "another controller makes it, and only a cluster has it",
}
UNPLAYED = {
    "sts": "no service is asked for passing credentials",
    "certSecretRef": "certificates come from this machine",
    "provider": "no cloud is asked for credentials",
    "proxySecretRef": "the proxy is that of this machine",
    "serviceAccountName": "no account of the cluster is used",
    "verify": "signatures are not verified",
}
USUAL: dict[str, Json] = {"provider": "generic"}


def read_flux_source(document: Document, namespace: str) -> Declared:
    """The source that an object stands for; one that names no namespace is in this one."""
    resource = open_resource(document, namespace)
    if not resource.name:
        return Declared(findings=resource.findings)
    kind, spec = resource.kind.name, resource.spec
    declared = DeclaredSource(
        id=SourceObject(kind, resource.home, resource.name),
        where=resource.place,
        ignore=spec.text("ignore"),
        secret=spec.part("secretRef").text("name"),
        suspended=spec.flag("suspend"),
        sparse=tuple(_sparse(spec)) if kind == GIT else (),
        portions=tuple(_included(resource)) if kind == GIT else (),
    )
    if kind in NOWHERE:
        declared = replace(declared, problem=NOWHERE[kind])
    elif kind == "HelmChart":
        declared = _chart(declared, resource)
    elif kind == BUCKET:
        declared = _bucket(declared, spec)
    else:
        declared = _fetched(declared, resource)
    if kind not in {"ExternalArtifact", "HelmRepository"}:
        spec.span("interval", needed=True)
    spec.tell_unplayed(UNPLAYED, USUAL)
    spec.tell_ignored(("gitImplementation", "accessFrom"), "Flux does not read it", "remove it")
    return Declared(sources=(declared,), findings=resource.findings)


class Sources(Protocol):
    """Sources by the names of their objects, as a mapping has them."""

    def get(self, named: SourceObject, /) -> DeclaredSource | None: ...


def resolve(
    named: SourceObject, declared: Sources, inside: frozenset[SourceObject] = frozenset()
) -> DeclaredSource | None:
    """What a unit's source is in the end; None where nobody declares it.

    The `id` of what a HelmChart stands for says which chart: its name, or its path in the tree.
    `inside`: what it is a part of.
    """
    own = SourceObject(named.kind, named.namespace, named.name)
    found = declared.get(own)
    if found is None:
        return None
    if own in inside:
        return replace(found, source=None, portions=(), problem=f"`{own}` is a part of itself")
    return _whole(replace(found, id=own), named, declared, inside | {own})


def _whole(
    found: DeclaredSource,
    named: SourceObject,
    declared: Sources,
    inside: frozenset[SourceObject],
) -> DeclaredSource:
    """With all that it is made of found, too."""
    looked_into = found.discovery
    found = replace(
        found,
        portions=tuple(
            replace(one, declared=resolve(one.source, declared, inside)) for one in found.portions
        ),
        discovery=looked_into
        and replace(looked_into, declared=resolve(looked_into.source, declared, inside)),
        others=tuple(
            _whole(replace(one, id=found.id), named, declared, inside) for one in found.others
        ),
    )
    match found.source:
        case ChartSource() as repository:
            whole = replace(repository, chart=named.chart, version=named.version)
            return replace(found, source=whole)
        case SourceObject() as behind:
            return _behind(found, behind, declared)
        case _:
            return found


def _behind(chart: DeclaredSource, behind: SourceObject, declared: Sources) -> DeclaredSource:
    tree = resolve(behind, declared)
    if tree is None:
        return replace(chart, source=None, problem=f"nothing declares {behind}")
    return replace(
        tree,
        id=replace(chart.id, chart=behind.chart, version=behind.version),
        where=chart.where,
        values_files=chart.values_files,
        optional_values=chart.optional_values,
        suspended=chart.suspended or tree.suspended,
    )


def _chart(declared: DeclaredSource, resource: FluxResource) -> DeclaredSource:
    """A HelmChart names its source without a namespace: it is in its own."""
    behind, files = read_chart(resource.spec, resource.home, is_old=resource.is_old)
    if behind is None:
        return replace(declared, problem="it does not say where the chart is")
    return replace(
        declared,
        source=replace(behind, namespace=resource.home),
        values_files=tuple(one.path for one in files),
        optional_values=any(one.optional for one in files),
    )


def _bucket(declared: DeclaredSource, spec: Part) -> DeclaredSource:
    endpoint, name = spec.text("endpoint", needed=True), spec.text("bucketName", needed=True)
    if not endpoint or not name:
        return replace(declared, problem="it does not say which bucket it is")
    cloud = spec.text("provider", among=("generic", "aws", *OTHERS), default="generic")
    source = BucketSource(
        endpoint,
        name,
        prefix=spec.text("prefix"),
        region=spec.text("region"),
        ignore=declared.ignore,
        cloud=cloud if cloud in OTHERS else "",
        plain=spec.flag("insecure"),
    )
    return replace(declared, source=source)


def _fetched(declared: DeclaredSource, resource: FluxResource) -> DeclaredSource:
    spec, kind = resource.spec, resource.kind.name
    url, source = spec.text("url", needed=True), _source(spec, kind)
    schemes = SCHEMES.get(kind) or _repository_schemes(spec)
    if url and not url.startswith(schemes):
        fix = f"begin it with {' or '.join(f'`{one}`' for one in schemes)}"
        if kind == "HelmRepository" and url.startswith(OCI):
            fix = "write `type: oci` beside it"
        spec.tell("flux.address", "url", "is an address of another kind", fix=fix)
    if not url.startswith(schemes):
        return replace(declared, problem="it has no address that Flux would take")
    return replace(declared, source=source)


def _sparse(spec: Part) -> Iterator[str]:
    """Git takes them as beginnings of paths, from the root on."""
    for said in spec.words("sparseCheckout"):
        yield said.removeprefix("./")


def _included(resource: FluxResource) -> Iterator[Portion]:
    """Trees of other repositories of the same namespace, each at a place of its own."""
    for one in resource.spec.parts("include"):
        name = one.part("repository").text("name", needed=True)
        if name:
            yield Portion(
                source=SourceObject(GIT, resource.home, name),
                pattern=one.tree_path("fromPath"),
                into=one.tree_path("toPath") if one.text("toPath") else name,
                how=Putting.WHOLE,
                where=one.at(),
            )


def _repository_schemes(spec: Part) -> tuple[str, ...]:
    return (OCI,) if spec.text("type", among=("default", "oci")) == "oci" else WEB


def _source(spec: Part, kind: str) -> SourceRef | None:
    url, plain = spec.text("url"), spec.flag("insecure")
    match kind:
        case "GitRepository":
            return GitSource(url, _git_ref(spec.part("ref")), spec.flag("recurseSubmodules"))
        case "OCIRepository":
            return _artifact(spec, url, plain=plain)
        case "HelmRepository":
            shares = spec.flag("passCredentials")
            return ChartSource(url, "", shares_credentials=shares, plain=plain)
        case _:
            return None


def _git_ref(ref: Part) -> GitRef:
    said = [name for name in REFS if ref.text(name)]
    if not said:
        return DEFAULT_BRANCH
    for name in said[1:]:
        if (said[0], name) != ("commit", "branch"):
            why = f"`{said[0]}` goes before it"
            ref.tell("flux.ignored", name, "has no effect", severity=Severity.NOTE, why=why)
    return GitRef(REFS[said[0]], ref.text(said[0]))


def _artifact(spec: Part, url: str, *, plain: bool) -> OciSource:
    ref, layer = spec.part("ref"), spec.part("layerSelector")
    return OciSource(
        url,
        tag=ref.text("tag"),
        range=ref.text("semver"),
        filter=ref.text("semverFilter"),
        digest=ref.text("digest"),
        media_type=layer.text("mediaType"),
        copies=layer.text("operation", among=("extract", "copy")) == "copy",
        plain=plain,
    )
