"""What Flux's controllers do not let a unit have, by what they are told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.errors import foreign, without_user
from tidegate.model.config import Switch
from tidegate.model.finding import Finding, Severity
from tidegate.model.rendering import FluxDetails
from tidegate.model.semantics import FLUX
from tidegate.model.source import SourceObject
from tidegate.model.unit import Unit, UnitSource

OWN_NAMESPACE, OWN_BASES = "no-cross-namespace-refs", "no-remote-bases"
MANAGERS = {"Kustomization": "kustomize-controller", "HelmRelease": "helm-controller"}
EXTERNAL = "ExternalArtifact"
"""A kind of source, and the gate that lets units have it."""


def tell_denied(
    units: Iterable[tuple[Unit, Iterable[str]]], settings: Mapping[str, Switch]
) -> Iterator[Finding]:
    """What is closed to units: sources in other namespaces, remote bases, artifacts of others.

    Each unit comes with the remote bases of its overlays. What it depends on is never closed.
    """
    for unit, bases in units:
        manager = MANAGERS.get(unit.id.kind)
        if manager is None:
            continue
        sources = [one for one in map(_named, unit.sources) if one is not None]
        closed = _switched_on(settings.get(f"{manager}.{OWN_NAMESPACE}"))
        for source in sources if closed else ():
            if source.namespace != unit.id.namespace:
                why = _closed_by("references to other namespaces are", OWN_NAMESPACE, closed)
                yield _denied(unit, str(source), why, "bring it into the namespace of the unit")
        local = _switched_on(settings.get(f"{manager}.{OWN_BASES}"))
        for base in bases if local else ():
            why = _closed_by("remote bases are", OWN_BASES, local)
            yield _denied(unit, foreign(without_user(base)), why, "copy it into the repository")
        gate = settings.get(f"{manager}.feature-gates.{EXTERNAL}")
        if not _switched_on(gate) and any(one.kind == EXTERNAL for one in sources):
            yield _ungated(unit, manager)


def _switched_on(switch: Switch | None) -> Switch | None:
    return switch if switch is not None and str(switch.value).lower() == "true" else None


def _closed_by(what: str, flag: str, switch: Switch | None) -> str:
    where = switch.where if switch else ""
    return f"{what} closed by `{flag}` at {where}, and Flux does not try again"


def _denied(unit: Unit, what: str, why: str, fix: str) -> Finding:
    return Finding(
        code="flux.access",
        severity=Severity.ERROR,
        sentence=f"`{unit.id}` cannot have `{what}`",
        where=unit.where,
        why=why,
        fix=fix,
        semantics=(FLUX.name,),
    )


def _ungated(unit: Unit, manager: str) -> Finding:
    """Its controller may stand elsewhere, so that it is no error."""
    return Finding(
        code="flux.access",
        severity=Severity.WARNING,
        sentence=f"`{unit.id}` is denied its source unless the gate `{EXTERNAL}` is open",
        where=unit.where,
        why=f"{manager} has it closed by default, and nothing here says otherwise",
        fix=f"start {manager} with `--feature-gates={EXTERNAL}=true`",
        semantics=(FLUX.name,),
    )


def _named(one: UnitSource) -> SourceObject | None:
    """The object that stands for a source, also where it has been found."""
    details = one.details
    if isinstance(details, FluxDetails) and details.declared is not None:
        return details.declared.id
    return one.source if isinstance(one.source, SourceObject) else None
