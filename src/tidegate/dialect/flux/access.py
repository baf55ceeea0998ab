"""Access of units that flags of the Flux controllers deny.

Like `getSource` in `internal/controller/kustomization_controller.go` of kustomize-controller 1.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.errors import redact_urls, sanitize
from tidegate.model.config import ControllerSetting
from tidegate.model.finding import Finding, Severity
from tidegate.model.units.rendering import FluxDetails
from tidegate.model.units.semantics import FLUX
from tidegate.model.units.source import SourceObject
from tidegate.model.units.unit import Unit, UnitSource

NO_CROSS_NAMESPACE_REFS, NO_REMOTE_BASES = "no-cross-namespace-refs", "no-remote-bases"
CONTROLLERS = {"Kustomization": "kustomize-controller", "HelmRelease": "helm-controller"}
EXTERNAL_ARTIFACT = "ExternalArtifact"
"""A kind of source, and the feature gate that enables it."""


def find_denied_access(
    units: Iterable[tuple[Unit, Iterable[str]]], settings: Mapping[str, ControllerSetting]
) -> Iterator[Finding]:
    """Find denied sources in other namespaces, remote bases and external artifacts.

    `units`: each with the remote bases of its overlays. Dependencies are never denied.
    """
    for unit, bases in units:
        controller = CONTROLLERS.get(unit.id.kind)
        if controller is None:
            continue
        sources = [
            source_object
            for source_object in map(_source_object, unit.sources)
            if source_object is not None
        ]
        no_cross_namespace = _enabled_setting(
            settings.get(f"{controller}.{NO_CROSS_NAMESPACE_REFS}")
        )
        for source in sources if no_cross_namespace else ():
            if source.namespace != unit.id.namespace:
                why = _denial_reason(
                    "cross-namespace references are",
                    NO_CROSS_NAMESPACE_REFS,
                    no_cross_namespace,
                )
                yield _denied_finding(
                    unit, str(source), why, "move the source to the namespace of the unit"
                )
        no_remote_bases = _enabled_setting(settings.get(f"{controller}.{NO_REMOTE_BASES}"))
        for base in bases if no_remote_bases else ():
            why = _denial_reason("remote bases are", NO_REMOTE_BASES, no_remote_bases)
            yield _denied_finding(
                unit, sanitize(redact_urls(base)), why, "copy it into the repository"
            )
        gate = settings.get(f"{controller}.feature-gates.{EXTERNAL_ARTIFACT}")
        if not _enabled_setting(gate) and any(
            source_object.kind == EXTERNAL_ARTIFACT for source_object in sources
        ):
            yield _gate_finding(unit, controller)


def _enabled_setting(setting: ControllerSetting | None) -> ControllerSetting | None:
    return setting if setting is not None and str(setting.value).lower() == "true" else None


def _denial_reason(subject: str, flag: str, setting: ControllerSetting | None) -> str:
    location = setting.location if setting else ""
    return f"{subject} disabled by `{flag}` at {location}, and Flux does not retry"


def _denied_finding(unit: Unit, target: str, why: str, fix: str) -> Finding:
    problem = f"cannot access `{target}`"
    return Finding(
        code="flux.access",
        severity=Severity.ERROR,
        message=f"`{unit.id}` {problem}",
        location=unit.location,
        reason=why,
        fix=fix,
        semantics=(FLUX.name,),
        unit=unit.id,
        unit_problem=problem,
    )


def _gate_finding(unit: Unit, controller: str) -> Finding:
    """Return a note: the controller may be installed from elsewhere, with the gate enabled.

    `flux bootstrap --components-extra=source-watcher` and Flux Operator enable it.
    """
    return Finding(
        code="flux.access",
        severity=Severity.NOTE,
        message=f"`{unit.id}` cannot access its source unless the feature gate"
        f" `{EXTERNAL_ARTIFACT}` is enabled",
        location=unit.location,
        reason=f"{controller} disables the gate by default, and the repository does not enable it",
        fix=f"start {controller} with `--feature-gates={EXTERNAL_ARTIFACT}=true`",
        semantics=(FLUX.name,),
    )


def _source_object(unit_source: UnitSource) -> SourceObject | None:
    """Return the Flux object of a source, also if it is already resolved."""
    details = unit_source.details
    if isinstance(details, FluxDetails) and details.declared_source is not None:
        return details.declared_source.id
    return unit_source.source if isinstance(unit_source.source, SourceObject) else None
