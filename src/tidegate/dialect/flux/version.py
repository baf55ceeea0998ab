"""The version of Flux that a repository deploys, and findings that depend on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec.structs import replace

from tidegate.documents import Document
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_mapping, get_text, object_kind
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.source import DeclaredSource, GitSource, OciSource

FluxVersion: TypeAlias = tuple[int, int]
"""Major and minor version."""
PART_OF, VERSION = "app.kubernetes.io/part-of", "app.kubernetes.io/version"
MANIFESTS, REPOSITORY = "/fluxcd/flux-manifests", "github.com/fluxcd/flux2"
REMOVED_API, UNSET_VARIABLE = "flux.version", "render.substitute.missing"
STRICT_SINCE: FluxVersion = (2, 9)
"""The version from which on an unset variable fails the build: `StrictPostBuildSubstitutions`."""
_VERSION = lazy_regex(r"v?([0-9]+)\.([0-9]+)(?:\.[0-9x]+)?\b")


def find_flux_version(
    documents: Iterable[Document], sources: Iterable[DeclaredSource]
) -> FluxVersion | None:
    """Return the version in the labels of Flux, in a FluxInstance or in a source of manifests."""
    texts = (*map(_declared_version, documents), *map(_source_version, sources))
    versions = (_VERSION.match(text) for text in texts if text)
    return next(((int(match[1]), int(match[2])) for match in versions if match), None)


def _declared_version(document: Document) -> str:
    body = document.body
    labels = get_mapping(body, "metadata", "labels")
    if get_text(labels, PART_OF) == "flux":
        return get_text(labels, VERSION)
    if object_kind(body).name == "FluxInstance":
        return get_text(body, "spec", "distribution", "version")
    return ""


def _source_version(declared: DeclaredSource) -> str:
    match declared.source:
        case OciSource(url=url, tag=tag) if url.endswith(MANIFESTS):
            return tag
        case GitSource(url=url, ref=ref) if REPOSITORY in url:
            return ref.text
        case _:
            return ""


def soften_for_version(
    findings: Iterable[Finding], version: FluxVersion | None
) -> Iterator[Finding]:
    """Yield the findings; what becomes wrong only with a later version is a note."""
    for finding in findings:
        if version is None:
            yield finding
            continue
        name = f"Flux {version[0]}.{version[1]}"
        removed = _VERSION.match(finding.cause) if finding.code == REMOVED_API else None
        if finding.code == UNSET_VARIABLE and version < STRICT_SINCE:
            reason = f"{name} replaces it with an empty text; since 2.9 the build fails"
            yield replace(finding, severity=Severity.NOTE, reason=reason)
        elif removed and version < (int(removed[1]), int(removed[2])):
            reason = f"{name}, which this repository deploys, serves it"
            yield replace(finding, severity=Severity.NOTE, reason=reason)
        else:
            yield finding
