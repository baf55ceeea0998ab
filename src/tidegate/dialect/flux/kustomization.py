"""Flux Kustomizations: overlays that are applied in stages, with health checks.

Objects without a namespace get `targetNamespace`, else none: Flux rejects these.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.dialect.declared import Declarations
from tidegate.dialect.flux.field_reader import FieldReader, FluxResource, open_resource
from tidegate.dialect.flux.fields import (
    read_cluster,
    read_dependencies,
    read_expressions,
    read_identity,
    read_ignore_rules,
    read_images,
    read_patches,
    read_references,
    read_source,
)
from tidegate.dialect.semantics import KSTATUS
from tidegate.documents import Document
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_labels
from tidegate.model.k8s.objects import Kind, Propagation, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.policy import (
    GateScope,
    ObjectOptions,
    Order,
    Permission,
    Policy,
    Tracking,
)
from tidegate.model.units.rendering import (
    FluxDetails,
    FluxOverrides,
    LoadRestriction,
    Overlay,
    Substitution,
)
from tidegate.model.units.semantics import FLUX, UNLIMITED, Retry
from tidegate.model.units.unit import Destination, Unit, UnitId, UnitSource

SOURCES = ("GitRepository", "OCIRepository", "Bucket", "ExternalArtifact")
MIRROR_PRUNE, DELETE, WAIT_FOR_TERMINATION, ORPHAN = (
    "MirrorPrune",
    "Delete",
    "WaitForTermination",
    "Orphan",
)
ALWAYS = "Always"
UNSUPPORTED = {
    "decryption.serviceAccountName": "Tidegate reads keys from `secretRef` and from this machine",
}
MIN_TIMEOUT = Ms(30 * SECOND)


def read_kustomization(document: Document, namespace: str) -> Declarations:
    """Read the unit of a Kustomization; `namespace` is used if the Kustomization has none."""
    resource = open_resource(document, namespace)
    if not resource.name:
        return Declarations(findings=resource.findings)
    spec, unit_id = resource.spec, UnitId("Kustomization", "", resource.namespace, resource.name)
    unit = Unit(
        id=unit_id,
        location=resource.location,
        sources=tuple(_sources(resource)),
        destination=Destination(read_cluster(spec), spec.text("targetNamespace")),
        policy=_policy(spec, unit_id),
        dependencies=tuple(read_dependencies(spec, unit_id)),
        is_suspended=spec.flag("suspend"),
        labels=get_labels(document.body),
    )
    _report_unused_expressions(spec, unit.policy)
    spec.report_unsupported(UNSUPPORTED, {})
    spec.report_ignored(("validation",), "the API server validates every object", "remove it")
    return Declarations(units=(unit,), findings=resource.findings)


def _sources(resource: FluxResource) -> Iterator[UnitSource]:
    spec, source = resource.spec, None
    if spec.has("sourceRef"):
        source = read_source(spec.child("sourceRef"), resource.namespace, SOURCES)
    else:
        spec.report_missing("sourceRef")
    request = Overlay(
        path=spec.tree_path("path"),
        overrides=_overrides(resource),
        restriction=LoadRestriction.NONE,
    )
    details = _details(spec)
    if source is not None:
        yield UnitSource(source=source, request=request, details=details)


def _overrides(resource: FluxResource) -> FluxOverrides:
    spec = resource.spec
    return FluxOverrides(
        target_namespace=spec.text("targetNamespace") or None,
        name_prefix=spec.text("namePrefix") or None,
        name_suffix=spec.text("nameSuffix") or None,
        images=read_images(spec),
        patches=read_patches(spec, is_old=resource.is_old),
        components=spec.string_list("components"),
        ignore_missing_components=spec.flag("ignoreMissingComponents"),
        build_metadata=spec.string_list("buildMetadata"),
    )


def _details(spec: FieldReader) -> FluxDetails:
    metadata, decryption = spec.child("commonMetadata"), spec.child("decryption")
    decrypts = spec.has("decryption")
    if decrypts:
        decryption.text("provider", choices=("sops",), required=True)
    return FluxDetails(
        substitution=_substitution(spec.child("postBuild")) if spec.has("postBuild") else None,
        decrypts=decrypts,
        key_secret=decryption.child("secretRef").text("name"),
        labels=metadata.string_map("labels"),
        annotations=metadata.string_map("annotations"),
    )


def _substitution(build: FieldReader) -> Substitution:
    strategy = build.text("substituteStrategy", choices=("WithVariables", ALWAYS))
    return Substitution(
        inline=build.string_map("substitute"),
        references=read_references(build, "substituteFrom"),
        always=strategy == ALWAYS,
    )


def _policy(spec: FieldReader, unit_id: UnitId) -> Policy:
    gates, listed = _gates(spec, unit_id)
    prunes, ignores = spec.flag("prune", required=True), tuple(read_ignore_rules(spec))
    deletion_policy = spec.text(
        "deletionPolicy",
        choices=(MIRROR_PRUNE, DELETE, WAIT_FOR_TERMINATION, ORPHAN),
        default=MIRROR_PRUNE,
    )
    orphans_objects = deletion_policy == ORPHAN or (deletion_policy == MIRROR_PRUNE and not prunes)
    interval, timeout = spec.duration("interval", required=True), spec.duration("timeout")
    retry_interval = spec.duration("retryInterval") or interval
    if timeout is None and interval is not None:
        timeout = Ms(interval - MIN_TIMEOUT)
    return Policy(
        semantics=FLUX,
        rules=KSTATUS,
        order=Order.STAGES,
        gates=gates,
        gating_refs=listed,
        prune=prunes,
        tracking=Tracking.FLUX,
        manager="kustomize-controller",
        object_options=ObjectOptions(
            force=spec.flag("force"),
            delete=Permission.NO if orphans_objects else Permission.YES,
            propagation=Propagation.BACKGROUND,
        ),
        ignore_differences=ignores,
        respect_ignore_differences=bool(ignores),
        identity=read_identity(spec, unit_id.namespace),
        expressions=read_expressions(spec),
        cascades=not orphans_objects,
        self_heal=True,
        timeout=Ms(0) if timeout is None else max(MIN_TIMEOUT, timeout),
        retry=None if retry_interval is None else _retry_after(retry_interval),
    )


def _retry_after(delay: Ms) -> Retry:
    return Retry(
        limit=UNLIMITED,
        backoff=delay,
        factor=1,
        backoff_limit=delay,
        restarts_unit=True,
        retries_gates=True,
    )


def _gates(spec: FieldReader, unit_id: UnitId) -> tuple[GateScope, tuple[Ref, ...]]:
    """Return what gates the unit; `wait` gates all objects, and `healthChecks` are ignored then."""
    checks = spec.children("healthChecks")
    if spec.flag("wait"):
        if checks:
            why = "`wait` checks all objects of the unit, and no objects of other units"
            spec.report(
                "flux.ignored", "healthChecks", "has no effect", severity=Severity.NOTE, why=why
            )
        return GateScope.ALL, ()
    refs = (
        Ref(
            Kind.of(check.text("apiVersion", default="apps/v1"), check.text("kind", required=True)),
            check.text("namespace"),
            check.text("name", required=True),
        )
        for check in checks
    )
    unit_key = (unit_id.kind, unit_id.namespace, unit_id.name)
    listed = tuple(ref for ref in refs if (ref.kind.name, ref.namespace, ref.name) != unit_key)
    return (GateScope.LISTED if listed else GateScope.NONE), listed


def _report_unused_expressions(spec: FieldReader, policy: Policy) -> None:
    """Report health expressions without health checks."""
    if policy.expressions and policy.gates is GateScope.NONE:
        why = "without `wait` and `healthChecks` Flux checks no object"
        fix = "add `wait: true`, or list the objects in `healthChecks`"
        spec.report_ignored(("healthCheckExprs",), why, fix)
