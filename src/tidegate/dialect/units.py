"""Units among documents: the custom resources by which Argo CD and Flux deploy other objects.

Read before anything of them is rendered: who they are, where they stand, how they are rendered and
run, where their objects go, and what they wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import structs

from tidegate.dialect.argo.application import read_application
from tidegate.dialect.argo.sets.reading import read_set
from tidegate.dialect.declared import Declared
from tidegate.dialect.depending import with_own_dependencies
from tidegate.dialect.flux.generator import read_generator
from tidegate.dialect.flux.kustomization import read_kustomization
from tidegate.dialect.flux.release import read_release
from tidegate.dialect.flux.sources import read_flux_source
from tidegate.documents import Document
from tidegate.model.objects import Kind
from tidegate.model.patterns import late
from tidegate.model.reading import text

ARGO_HOME, FLUX_HOME = "argocd", "flux-system"
FLUX = ".fluxcd.io"
MARKS = late(rb"(?<!argocd\.)argoproj|fluxcd|secret-type|ENC\[AES256_GCM|\\[xuU]")
"""One of these stands in every text that comes to an object of a dialect's own group, or to a
cluster that Argo CD comes to know.

What is encrypted or written with escapes could be anything.
"""
NOTHING = Declared()
Reader = Callable[[Document, str], Declared]
READERS: dict[tuple[str, str], Reader] = {
    ("argoproj.io", "Application"): read_application,
    ("argoproj.io", "ApplicationSet"): read_set,
    ("kustomize.toolkit.fluxcd.io", "Kustomization"): read_kustomization,
    ("helm.toolkit.fluxcd.io", "HelmRelease"): read_release,
    ("source.extensions.fluxcd.io", "ArtifactGenerator"): read_generator,
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


def is_own_kind(kind: Kind) -> bool:
    """Whether objects of this kind only say what units are, and what belongs to them."""
    return (kind.group, kind.name) in READERS or (kind.group, kind.name) == (
        "argoproj.io",
        "AppProject",
    )


def _read(document: Document, namespace: str) -> Declared:
    kind = Kind.of(text(document.body, "apiVersion"), text(document.body, "kind"))
    reader = READERS.get((kind.group, kind.name))
    if reader is None or not text(document.body, "metadata", "name"):
        return NOTHING
    home = namespace or (FLUX_HOME if kind.group.endswith(FLUX) else ARGO_HOME)
    return _named(with_own_dependencies(reader(document, home), document))


def _named(declared: Declared) -> Declared:
    """What is said of a unit, with its name: a template makes many at one place."""
    if not declared.findings or len(declared.units) != 1:
        return declared
    about = (declared.units[0].id.called,)
    findings = tuple(structs.replace(one, about=about) for one in declared.findings)
    return structs.replace(declared, findings=findings)


class UnitFinder:
    """Finds units, and reads each document once: that of a file, and the same as it is applied."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[Document, Declared]] = {}

    def find(self, documents: Iterable[Document], namespace: str = "") -> Declared:
        """What these declare, in their order.

        Those that name no namespace are in this one; where none is known, where they usually are.
        """
        return Declared.together(self._read(one, namespace) for one in documents)

    def _read(self, document: Document, namespace: str) -> Declared:
        if text(document.body, "metadata", "namespace"):
            namespace = ""  # it has its own, and nobody asks for another
        key = (id(document), namespace)
        if key not in self._known:
            found = _read(document, namespace)
            if found is NOTHING:
                return found
            self._known[key] = (document, found)  # held, so that nothing else gets its number
        return self._known[key][1]
