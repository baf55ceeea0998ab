"""Units among documents: the custom resources by which Argo CD and Flux deploy other objects.

Read before anything of them is rendered: who they are, where they stand, where their objects go,
and what they wait for. How their sources are rendered is not read yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.documents import Document
from tidegate.model.objects import Json, Kind
from tidegate.model.policy import Order, Policy, Tracking
from tidegate.model.reading import mapping, mappings, part, text
from tidegate.model.semantics import ARGOCD, FLUX
from tidegate.model.unit import Dependency, Destination, Unit, UnitId

ARGO = Policy(semantics=ARGOCD, manager="argocd-controller", tracking=Tracking.ARGO)
KINDS = {
    ("argoproj.io", "Application"): ARGO,
    ("kustomize.toolkit.fluxcd.io", "Kustomization"): Policy(
        semantics=FLUX,
        rules="kstatus",
        order=Order.STAGES,
        manager="kustomize-controller",
        tracking=Tracking.FLUX,
    ),
    ("helm.toolkit.fluxcd.io", "HelmRelease"): Policy(
        semantics=FLUX, rules="kstatus", manager="helm-controller", tracking=Tracking.FLUX
    ),
}
"""The kinds of units, each with how it is run by its own controller."""


def find_units(documents: Iterable[Document], namespace: str) -> list[Unit]:
    """The units among these, in their order; those that name no namespace are in this one."""
    return [unit for document in documents for unit in _units(document, namespace)]


def _units(document: Document, namespace: str) -> Iterator[Unit]:
    body = document.body
    kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
    policy, name = KINDS.get((kind.group, kind.name)), text(body, "metadata", "name")
    if policy is None or not name:
        return
    home = text(body, "metadata", "namespace", default=namespace)
    spec = mapping(body, "spec")
    yield Unit(
        id=UnitId(kind.name, "", home, name),
        where=document.place,
        destination=_destination(spec, home, is_argo=policy is ARGO),
        policy=policy,
        dependencies=tuple(_dependencies(kind.name, spec, home, document)),
        suspended=part(spec, "suspend") is True,
    )


def _destination(spec: dict[str, Json], home: str, *, is_argo: bool) -> Destination:
    """Argo CD names a cluster or its server; what Flux applies stays at home unless it says so."""
    if is_argo:
        where = mapping(spec, "destination")
        cluster = text(where, "name") or text(where, "server")
        return Destination(cluster, text(where, "namespace"))
    return Destination("", text(spec, "targetNamespace", default=home))


def _dependencies(
    kind: str, spec: dict[str, Json], home: str, document: Document
) -> Iterator[Dependency]:
    """Flux's `dependsOn`: units of the same kind, in the same namespace if none is said."""
    for one in mappings(spec, "dependsOn"):
        unit = UnitId(kind, "", text(one, "namespace", default=home), text(one, "name"))
        yield Dependency(unit=unit, where=document.place, ready_when=text(one, "readyExpr"))
