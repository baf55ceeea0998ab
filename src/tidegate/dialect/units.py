"""Units in documents: the custom resources of Argo CD and Flux that deploy other objects.

Read before rendering: identity, location, sources, policy, destination and dependencies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import structs

from tidegate.dialect.argo.application import read_application
from tidegate.dialect.argo.appset.reader import read_application_set
from tidegate.dialect.declared import Declarations
from tidegate.dialect.depends_on import with_annotated_dependencies
from tidegate.dialect.flux.artifact_generator import read_artifact_generator
from tidegate.dialect.flux.instance import read_flux_instance
from tidegate.dialect.flux.kustomization import read_kustomization
from tidegate.dialect.flux.release import read_helm_release
from tidegate.dialect.flux.sources import read_flux_source
from tidegate.documents import Document
from tidegate.model.k8s.json_fields import get_text, object_kind
from tidegate.model.k8s.objects import Kind
from tidegate.model.text.lazy_regex import lazy_regex

ARGO_NAMESPACE, FLUX_NAMESPACE = "argocd", "flux-system"
FLUX_GROUP_SUFFIX = ".fluxcd.io"
RESOURCE_HINT = lazy_regex(rb"(?<!argocd\.)argoproj|fluxcd|secret-type|ENC\[AES256_GCM|\\[xuU]")
"""Pattern in every file with a resource of Argo CD or Flux, or with a cluster Secret.

Encrypted or escaped text may contain anything, so it matches, too.
"""
NO_DECLARATIONS = Declarations()
Reader = Callable[[Document, str], Declarations]
READERS: dict[tuple[str, str], Reader] = {
    ("argoproj.io", "Application"): read_application,
    ("argoproj.io", "ApplicationSet"): read_application_set,
    ("kustomize.toolkit.fluxcd.io", "Kustomization"): read_kustomization,
    ("helm.toolkit.fluxcd.io", "HelmRelease"): read_helm_release,
    ("source.extensions.fluxcd.io", "ArtifactGenerator"): read_artifact_generator,
    **{
        ("source.toolkit.fluxcd.io", name): read_flux_source
        for name in (
            "GitRepository",
            "OCIRepository",
            "HelmRepository",
            "HelmChart",
            "Bucket",
            "ExternalArtifact",
        )
    },
}
FLUX_INSTANCE = ("fluxcd.controlplane.io", "FluxInstance")
"""A kind whose operator creates a unit; its objects are deployed like those of any operator."""


def is_dialect_kind(kind: Kind) -> bool:
    """Return whether objects of this kind define units or belong to their definition."""
    return (kind.group, kind.name) in READERS or (kind.group, kind.name) == (
        "argoproj.io",
        "AppProject",
    )


def _read_document(document: Document, namespace: str) -> Declarations:
    kind = object_kind(document.body)
    name = (kind.group, kind.name)
    reader = read_flux_instance if name == FLUX_INSTANCE else READERS.get(name)
    if reader is None or not get_text(document.body, "metadata", "name"):
        return NO_DECLARATIONS
    is_flux = name == FLUX_INSTANCE or kind.group.endswith(FLUX_GROUP_SUFFIX)
    default_namespace = namespace or (FLUX_NAMESPACE if is_flux else ARGO_NAMESPACE)
    return _with_unit_name(
        with_annotated_dependencies(reader(document, default_namespace), document)
    )


def _with_unit_name(declared: Declarations) -> Declarations:
    """Return the declarations with the unit's name in each finding: templates create many units."""
    if not declared.findings or len(declared.units) != 1:
        return declared
    about = (declared.units[0].id.qualified_name,)
    findings = tuple(structs.replace(finding, unit_names=about) for finding in declared.findings)
    return structs.replace(declared, findings=findings)


class UnitFinder:
    """Finder of units that reads each document once, even if it is in a file and a render."""

    def __init__(self) -> None:
        self._cache: dict[tuple[int, str], tuple[Document, Declarations]] = {}

    def find(self, documents: Iterable[Document], namespace: str = "") -> Declarations:
        """Return what the documents declare, in order.

        `namespace` is used for resources without one; if it is empty, the usual one of the
        tool.
        """
        return Declarations.merge(self._read(document, namespace) for document in documents)

    def _read(self, document: Document, namespace: str) -> Declarations:
        if get_text(document.body, "metadata", "namespace"):
            namespace = ""  # unused, so one cache entry is enough
        key = (id(document), namespace)
        if key not in self._cache:
            declared = _read_document(document, namespace)
            if declared is NO_DECLARATIONS:
                return declared
            self._cache[key] = (document, declared)  # the reference keeps id() unique
        return self._cache[key][1]
