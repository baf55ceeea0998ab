"""Flux's Kustomization: an overlay of a tree, put up in stages, and healthy if it says what counts.

Objects that name no namespace get `targetNamespace` and else none: Flux refuses these.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.dialect.declared import Declared
from tidegate.dialect.flux.fields import (
    read_cluster,
    read_dependencies,
    read_expressions,
    read_identity,
    read_ignores,
    read_images,
    read_patches,
    read_references,
    read_source,
)
from tidegate.dialect.flux.part import FluxResource, Part, open_resource
from tidegate.dialect.semantics import KSTATUS
from tidegate.documents import Document
from tidegate.model.finding import Severity
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Kind, Propagation, Ref
from tidegate.model.policy import Consent, Gates, Handling, Order, Policy, Tracking
from tidegate.model.reading import labels_of
from tidegate.model.rendering import (
    FluxDetails,
    FluxOverrides,
    Overlay,
    Restriction,
    Substitution,
)
from tidegate.model.semantics import ENDLESS, FLUX, Retry
from tidegate.model.unit import Destination, Unit, UnitId, UnitSource

SOURCES = ("GitRepository", "OCIRepository", "Bucket", "ExternalArtifact")
MIRROR, DELETE, WAIT, ORPHAN = "MirrorPrune", "Delete", "WaitForTermination", "Orphan"
ALWAYS = "Always"
UNPLAYED = {
    "decryption.serviceAccountName": "keys come from `secretRef` and from this machine",
}
LEAST = Ms(30 * SECOND)


def read_kustomization(document: Document, namespace: str) -> Declared:
    """The unit that a Kustomization is; one that names no namespace is in this one."""
    resource = open_resource(document, namespace)
    if not resource.name:
        return Declared(findings=resource.findings)
    spec, own = resource.spec, UnitId("Kustomization", "", resource.home, resource.name)
    unit = Unit(
        id=own,
        where=resource.place,
        sources=tuple(_sources(resource)),
        destination=Destination(read_cluster(spec), spec.text("targetNamespace")),
        policy=_policy(spec, own),
        dependencies=tuple(read_dependencies(spec, own)),
        suspended=spec.flag("suspend"),
        labels=labels_of(document.body),
    )
    _tell_inert(spec, unit.policy)
    spec.tell_unplayed(UNPLAYED, {})
    spec.tell_ignored(("validation",), "every object is checked by the server", "remove it")
    return Declared(units=(unit,), findings=resource.findings)


def _sources(resource: FluxResource) -> Iterator[UnitSource]:
    spec, source = resource.spec, None
    if spec.has("sourceRef"):
        source = read_source(spec.part("sourceRef"), resource.home, SOURCES)
    else:
        spec.miss("sourceRef")
    request = Overlay(
        path=spec.tree_path("path"),
        overrides=_overrides(resource),
        restriction=Restriction.WHOLE_TREE,
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
        components=spec.words("components"),
        ignore_missing_components=spec.flag("ignoreMissingComponents"),
        build_metadata=spec.words("buildMetadata"),
    )


def _details(spec: Part) -> FluxDetails:
    metadata, decryption = spec.part("commonMetadata"), spec.part("decryption")
    decrypts = spec.has("decryption")
    if decrypts:
        decryption.text("provider", among=("sops",), needed=True)
    return FluxDetails(
        substitution=_substitution(spec.part("postBuild")) if spec.has("postBuild") else None,
        decrypts=decrypts,
        keys=decryption.part("secretRef").text("name"),
        labels=metadata.texts("labels"),
        annotations=metadata.texts("annotations"),
    )


def _substitution(build: Part) -> Substitution:
    strategy = build.text("substituteStrategy", among=("WithVariables", ALWAYS))
    return Substitution(
        inline=build.texts("substitute"),
        references=read_references(build, "substituteFrom"),
        always=strategy == ALWAYS,
    )


def _policy(spec: Part, own: UnitId) -> Policy:
    gates, listed = _gates(spec, own)
    prunes, ignores = spec.flag("prune", needed=True), tuple(read_ignores(spec))
    policy = spec.text("deletionPolicy", among=(MIRROR, DELETE, WAIT, ORPHAN), default=MIRROR)
    stays = policy == ORPHAN or (policy == MIRROR and not prunes)
    interval, timeout = spec.span("interval", needed=True), spec.span("timeout")
    pause = spec.span("retryInterval") or interval
    if timeout is None and interval is not None:
        timeout = Ms(interval - LEAST)
    return Policy(
        semantics=FLUX,
        rules=KSTATUS,
        order=Order.STAGES,
        gates=gates,
        listed=listed,
        prunes=prunes,
        tracking=Tracking.FLUX,
        manager="kustomize-controller",
        handling=Handling(
            forces=spec.flag("force"),
            delete=Consent.NO if stays else Consent.YES,
            propagation=Propagation.BACKGROUND,
        ),
        ignores=ignores,
        keeps_ignored=bool(ignores),
        identity=read_identity(spec, own.namespace),
        expressions=read_expressions(spec),
        cascades=not stays,
        heals=True,
        timeout=Ms(0) if timeout is None else max(LEAST, timeout),
        retry=None if pause is None else _again_after(pause),
    )


def _again_after(pause: Ms) -> Retry:
    return Retry(limit=ENDLESS, first=pause, factor=1, cap=pause, whole=True, gates=True)


def _gates(spec: Part, own: UnitId) -> tuple[Gates, tuple[Ref, ...]]:
    """What its health depends on; `wait` makes it everything, and a list is not looked at then."""
    checks = spec.parts("healthChecks")
    if spec.flag("wait"):
        if checks:
            why = "with `wait`, every object counts, and none that others bring"
            spec.tell(
                "flux.ignored", "healthChecks", "has no effect", severity=Severity.NOTE, why=why
            )
        return Gates.ALL, ()
    refs = (
        Ref(
            Kind.of(one.text("apiVersion", default="apps/v1"), one.text("kind", needed=True)),
            one.text("namespace"),
            one.text("name", needed=True),
        )
        for one in checks
    )
    itself = (own.kind, own.namespace, own.name)
    listed = tuple(one for one in refs if (one.kind.name, one.namespace, one.name) != itself)
    return (Gates.LISTED if listed else Gates.NONE), listed


def _tell_inert(spec: Part, policy: Policy) -> None:
    """Expressions judge what is waited for, and nothing else."""
    if policy.expressions and policy.gates is Gates.NONE:
        why = "without `wait` and `healthChecks` no object is judged"
        fix = "add `wait: true`, or list the objects in `healthChecks`"
        spec.tell_ignored(("healthCheckExprs",), why, fix)
