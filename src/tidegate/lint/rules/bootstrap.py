"""Rules about bootstrap and recovery: decryption keys, backups, and bands."""

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
    "Decryption key is not in the repository",
    Severity.NOTE,
    why="on an empty cluster Flux cannot decrypt anything until the key is created manually",
    fix="document where the key is stored, and create it before the first sync",
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
                message=f"`{unit}` decrypts with Secret `{unit.namespace}/{secret}`, which must be"
                " created manually",
                at=FieldRef(unit_resource, ("spec", "decryption", "secretRef")),
            )


@rule(
    "ORD029",
    "Database starts empty although a backup exists",
    Severity.NOTE,
    why="after a disaster the repository creates a new, empty database and does not restore the"
    " backup",
    fix="prepare a variant with `bootstrap.recovery`, and document when to use it",
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
                message=f"{object_name(obj.ref)} has backups, but starts empty on a new cluster",
                at=FieldRef(obj.document, ("spec", "bootstrap")),
            )


@rule(
    "ORD040",
    "Unit is in the wrong band",
    Severity.WARNING,
    why="bands group the phases of a rollout; a unit in the wrong band is deployed too early or too"
    " late",
    fix="correct the phase label of the unit, or `lint.bands` in tidegate.yaml",
)
def wrong_band(context: LintContext) -> Iterator[Diagnostic]:
    """Yield units outside their band, if `lint.bands.label` of `tidegate.yaml` is set."""
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
                message=f"`{unit_id}` is in phase {phase:03}, which must stay empty", at=at
            )
        domain = get_text(labels, bands.domain_label)
        domain_phases = bands.domains.get(domain) or (0, 999)
        first, last = min(domain_phases), max(domain_phases)
        if not first <= phase <= last:
            yield Diagnostic(
                message=f"`{unit_id}` is in phase {phase:03}; domain `{domain}` has phases"
                f" {first:03} to {last:03}",
                at=at,
            )
        yield from _band_mismatches(context, unit_id, phase, at)


def _band_mismatches(
    context: LintContext, unit: UnitId, phase: int, at: DiagnosticTarget
) -> Iterator[Diagnostic]:
    """Yield units without a band, and objects of kinds that the band does not allow."""
    band = context.bands.band_for_phase(phase)
    objects = context.by_unit.get(unit, [])
    if band is None:
        yield Diagnostic(
            message=f"`{unit}` is in phase {phase:03}, which belongs to no band", at=at
        )
        return
    unexpected = [
        lint_object
        for lint_object in objects
        if band.kinds and lint_object.ref.kind.name not in band.kinds
    ]
    if unexpected:
        yield Diagnostic(
            message=f"`{unit}` is in phase {phase:03}, band {band.name}, but contains"
            f" {object_name(unexpected[0].ref)}",
            at=at,
            related=(FieldRef(unexpected[0].document),),
        )
