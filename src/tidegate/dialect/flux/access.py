"""What Flux's controllers do not let a unit have, by what they are told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.model.config import Switch
from tidegate.model.finding import Finding, Severity
from tidegate.model.rendering import FluxDetails
from tidegate.model.semantics import FLUX
from tidegate.model.source import SourceObject
from tidegate.model.unit import Unit, UnitSource

OWN_NAMESPACE = "no-cross-namespace-refs"
MANAGERS = {"Kustomization": "kustomize-controller", "HelmRelease": "helm-controller"}


def tell_denied(units: Iterable[Unit], settings: Mapping[str, Switch]) -> Iterator[Finding]:
    """Sources in other namespaces, where these are closed; what a unit depends on never is."""
    for unit in units:
        switch = settings.get(f"{MANAGERS.get(unit.id.kind)}.{OWN_NAMESPACE}")
        if switch is None or str(switch.value).lower() != "true":
            continue
        for source in (_named(one) for one in unit.sources):
            if source is not None and source.namespace != unit.id.namespace:
                yield Finding(
                    code="flux.access",
                    severity=Severity.ERROR,
                    sentence=f"`{unit.id}` cannot have `{source}`",
                    where=unit.where,
                    why=f"references to other namespaces are closed by `{OWN_NAMESPACE}` "
                    f"at {switch.where}, and Flux does not try again",
                    fix="bring the source into the namespace of the unit",
                    semantics=(FLUX.name,),
                )


def _named(one: UnitSource) -> SourceObject | None:
    """The object that stands for a source, also where it has been found."""
    details = one.details
    if isinstance(details, FluxDetails) and details.declared is not None:
        return details.declared.id
    return one.source if isinstance(one.source, SourceObject) else None
