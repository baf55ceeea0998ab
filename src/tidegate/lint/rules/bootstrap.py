"""Rules about bootstrap and recovery: manual keys, backups, and bands."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.lint.context import LintContext
from tidegate.lint.names import object_name
from tidegate.lint.rule import Diagnostic, DiagnosticTarget, FieldRef, rule
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json
from tidegate.model.units.bands import phase_from_labels
from tidegate.model.units.unit import UnitId

CNPG = "postgresql.cnpg.io"


@rule(
    "ORD028",
    "A key has no source in the repository",
    Severity.NOTE,
    why="on an empty cluster nothing can be decrypted before somebody has brought it by hand",
    fix="write down where it is kept, and bring it before the first sync",
)
def manual_key(context: LintContext) -> Iterator[Diagnostic]:
    if not context.empty_cluster:
        return
    deployed_secrets = {
        (lint_object.ref.namespace, lint_object.ref.name)
        for lint_object in context.objects_of_kind("", "Secret")
    }
    reported: set[tuple[str, str]] = set()
    for unit, unit_resource in context.unit_resources.items():
        secret = get_text(unit_resource.body, "spec", "decryption", "secretRef", "name")
        key = (unit.namespace, secret)
        if secret and key not in deployed_secrets | reported:
            reported.add(key)
            yield Diagnostic(
                message=f"somebody brings Secret `{unit.namespace}/{secret}` by hand: `{unit}`"
                " decrypts with it",
                at=FieldRef(unit_resource, ("spec", "decryption", "secretRef")),
            )


@rule(
    "ORD029",
    "A database begins empty where a backup is",
    Severity.NOTE,
    why="on the day of a disaster the repository makes a new, empty database, and the backup is"
    " not read",
    fix="keep a variant with `bootstrap.recovery` ready, and write down when it is used",
)
def empty_database(context: LintContext) -> Iterator[Diagnostic]:
    if not context.empty_cluster:
        return
    for obj in context.objects_of_kind(CNPG, "Cluster"):
        backs_up = get_mapping(obj.body, "spec", "backup") or get_mapping(
            obj.body, "spec", "plugins"
        )
        if backs_up and not get_mapping(obj.body, "spec", "bootstrap", "recovery"):
            yield Diagnostic(
                message=f"{object_name(obj.ref)} is backed up, and begins empty on a new cluster",
                at=FieldRef(obj.document, ("spec", "bootstrap")),
            )


@rule(
    "ORD040",
    "A unit stands in a band that is not its own",
    Severity.WARNING,
    why="the phases of a rollout are parted into bands; what is in the wrong one comes too early or"
    " too late",
    fix="correct the label of the phase, or the bands in `lint.bands` of tidegate.yaml",
)
def wrong_band(context: LintContext) -> Iterator[Diagnostic]:
    """Yield units outside their band, only if `tidegate.yaml` names the label with the phase."""
    bands = context.bands
    if not bands.label:
        return
    for unit_id, unit in context.units.items():
        unit_resource = context.unit_resources.get(unit_id)
        labels: dict[str, Json] = {**dict(unit.labels)}
        phase = phase_from_labels(labels, bands.label)
        at = (
            FieldRef(unit_resource, ("metadata", "labels", bands.label))
            if unit_resource
            else unit.location
        )
        if phase is None:
            continue
        if phase in bands.empty:
            yield Diagnostic(
                message=f"`{unit_id}` is in phase {phase:03}, which is kept empty", at=at
            )
        domain = get_text(labels, bands.domain_label)
        domain_phases = bands.domains.get(domain) or (0, 999)
        first, last = min(domain_phases), max(domain_phases)
        if not first <= phase <= last:
            yield Diagnostic(
                message=f"`{unit_id}` of `{domain}` is in phase {phase:03}, and its own are"
                f" {first:03} to {last:03}",
                at=at,
            )
        yield from _band_mismatches(context, unit_id, phase, at)


def _band_mismatches(
    context: LintContext, unit: UnitId, phase: int, at: DiagnosticTarget
) -> Iterator[Diagnostic]:
    """Yield units in no band, and objects of kinds that their band does not accept."""
    band = context.bands.band_for_phase(phase)
    objects = context.by_unit.get(unit, [])
    if band is None:
        yield Diagnostic(message=f"`{unit}` is in phase {phase:03}, which is in no band", at=at)
        return
    unexpected = [
        lint_object
        for lint_object in objects
        if band.kinds and lint_object.ref.kind.name not in band.kinds
    ]
    if unexpected:
        yield Diagnostic(
            message=f"`{unit}` is in phase {phase:03} for {band.name}, and brings"
            f" {object_name(unexpected[0].ref)}",
            at=at,
            related=(FieldRef(unexpected[0].document),),
        )
