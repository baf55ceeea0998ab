"""Argo CD Applications as units, with the findings about them.

The checks are those of `ValidateRepo` and `ValidatePermissions` in `util/argo/argo.go` of Argo CD
3.6.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.dialect.argo.finding_collector import FindingCollector
from tidegate.dialect.argo.options import string_annotations
from tidegate.dialect.argo.render_requests import without_empty_blocks
from tidegate.dialect.argo.source import SourceContext, read_source
from tidegate.dialect.argo.sync_policy import read_policy
from tidegate.dialect.declared import Declarations
from tidegate.documents import Document
from tidegate.errors import sanitize
from tidegate.model.finding import Finding
from tidegate.model.k8s.json_fields import get_labels, get_list, get_mapping, get_text, get_value
from tidegate.model.k8s.objects import FieldPath, JsonObject, Propagation
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.project import ProjectRequest
from tidegate.model.units.unit import Destination, Unit, UnitId, UnitSource

KIND = "Application"
IN_CLUSTER_SERVER, IN_CLUSTER_NAME = "https://kubernetes.default.svc", "in-cluster"
SKIP_RECONCILE = "argocd.argoproj.io/skip-reconcile"
CASCADE_FINALIZER = "resources-finalizer.argocd.argoproj.io"
CASCADE_PROPAGATIONS = {
    "": Propagation.FOREGROUND,
    "foreground": Propagation.FOREGROUND,
    "background": Propagation.BACKGROUND,
}
TRUE_VALUES = frozenset({"1", "t", "T", "TRUE", "true", "True"})
REF_PATTERN = lazy_regex(r"[a-zA-Z0-9_-]+")


def read_application(document: Document, namespace: str) -> Declarations:
    """Read the unit of an Application; `namespace` is used if the Application has none.

    What Argo CD would reject is reported as a finding; the readable rest is still in the unit.
    """
    collector, body = FindingCollector(document.location), document.body
    name, spec = get_text(body, "metadata", "name"), get_mapping(body, "spec")
    if not name:
        why = "Argo CD tracks the deployed objects by the name of the Application"
        message, fix = "Application without a name", "set `metadata.name`"
        collector.error("argo.name", ("metadata",), message, why, fix)
        return Declarations(findings=collector.findings)
    if get_value(body, "operation") is not None:
        why = "Argo CD starts one sync as soon as the Application is applied"
        collector.note("argo.operation", ("operation",), "`operation` is not simulated", why)
    destination = _destination(spec, collector)
    policy = read_policy(spec, collector)
    cascade = cascade_propagation(body)
    if cascade is not None:
        policy = msgspec.structs.replace(policy, cascades=True, deletion_propagation=cascade)
    source_bodies = tuple(_source_bodies(spec, collector))
    _check_refs(source_bodies, collector)
    context = SourceContext(
        name=name,
        location=document.location,
        namespace=destination.namespace,
        project=get_text(spec, "project", default="default"),
    )
    sources, findings = _sources(source_bodies, context)
    unit = Unit(
        id=UnitId(KIND, "", get_text(body, "metadata", "namespace", default=namespace), name),
        sources=sources,
        destination=destination,
        policy=policy,
        location=document.location,
        is_suspended=string_annotations(body).get(SKIP_RECONCILE) in TRUE_VALUES,
        project_request=_project_request(spec, source_bodies),
        labels=get_labels(body),
    )
    return Declarations(units=(unit,), findings=(*collector.findings, *findings))


def cascade_propagation(body: JsonObject) -> Propagation | None:
    """Return the propagation policy of the first cascade finalizer; None: objects are kept."""
    for finalizer in map(str, get_list(body, "metadata", "finalizers")):
        name, _, propagation = finalizer.partition("/")
        if name == CASCADE_FINALIZER and propagation in CASCADE_PROPAGATIONS:
            return CASCADE_PROPAGATIONS[propagation]
    return None


def _destination(spec: JsonObject, collector: FindingCollector) -> Destination:
    """Read the destination. The cluster of Argo CD itself has an empty name."""
    server, name = (get_text(spec, "destination", key) for key in ("server", "name"))
    path, why = ("spec", "destination"), "Argo CD cannot determine the destination cluster"
    if server and name:
        message = "the destination sets both `server` and `name`"
        collector.error("argo.destination", path, message, why, "remove one of the two")
    if not server and not name and get_value(spec, "destination") is not None:
        message, fix = (
            "the destination sets neither `server` nor `name`",
            f"add `server: {IN_CLUSTER_SERVER}`",
        )
        collector.error("argo.destination", path, message, why, fix)
    server = server.rstrip("/")
    cluster = name or server
    is_local = cluster in {IN_CLUSTER_SERVER, IN_CLUSTER_NAME}
    return Destination("" if is_local else cluster, get_text(spec, "destination", "namespace"))


def _project_request(
    spec: JsonObject, source_bodies: tuple[tuple[FieldPath, JsonObject], ...]
) -> ProjectRequest:
    """Return the request to the project; sources without `repoURL` are left out."""
    urls = (get_text(body, "repoURL") for _, body in source_bodies)
    return ProjectRequest(
        project=get_text(spec, "project", default="default"),
        repositories=tuple(dict.fromkeys(url for url in urls if url)),
        server=get_text(spec, "destination", "server").rstrip("/"),
        cluster=get_text(spec, "destination", "name"),
        namespace=get_text(spec, "destination", "namespace"),
    )


def _source_bodies(
    spec: JsonObject, collector: FindingCollector
) -> Iterator[tuple[FieldPath, JsonObject]]:
    """Yield the effective sources with their paths: hydrator, else `sources`, else `source`."""
    hydrator, sources, source = (
        get_value(spec, key) for key in ("sourceHydrator", "sources", "source")
    )
    if isinstance(hydrator, dict):
        _report_ignored([key for key in ("sources", "source") if get_value(spec, key)], collector)
        path: FieldPath = ("spec", "sourceHydrator")
        message = "hydration is not supported; the dry source is rendered directly"
        why = "Argo CD commits the rendered manifests and syncs from that branch"
        collector.warn("argo.hydrator", path, message, why)
        dry = hydrator.get("drySource")
        if isinstance(dry, dict):
            yield (*path, "drySource"), dry
    elif isinstance(sources, list) and sources:
        _report_ignored(["source"] if source else [], collector)
        for index, body in enumerate(sources):
            if isinstance(body, dict):
                yield ("spec", "sources", index), body
    elif isinstance(source, dict):
        yield ("spec", "source"), without_empty_blocks(source)
    elif not source:
        why = "Argo CD marks the Application as invalid and does not sync it"
        message, fix = "the Application has no source", "add `spec.source` or `spec.sources`"
        collector.error("argo.source", ("spec",), message, why, fix)


def _report_ignored(fields: list[str], collector: FindingCollector) -> None:
    for field in fields:
        message, why = f"`spec.{field}` is ignored", "another source field takes precedence"
        collector.warn("argo.sources", ("spec", field), message, why, "remove it")


def _sources(
    source_bodies: tuple[tuple[FieldPath, JsonObject], ...], context: SourceContext
) -> tuple[tuple[UnitSource, ...], tuple[Finding, ...]]:
    results = [
        read_source(body, msgspec.structs.replace(context, path=path))
        for path, body in source_bodies
    ]
    findings = tuple(finding for _, source_findings in results for finding in source_findings)
    return tuple(source for source, _ in results if source is not None), findings


def _check_refs(
    source_bodies: tuple[tuple[FieldPath, JsonObject], ...], collector: FindingCollector
) -> None:
    """Check that refs are valid, unique and of Git sources; values files must use known refs."""
    if not source_bodies or "sources" not in source_bodies[0][0]:
        return
    sources_with_ref = [
        (path, body)
        for path, body in source_bodies
        if get_text(body, "ref") and len(source_bodies) > 1
    ]
    uses = [
        (path, ref)
        for source_path, body in source_bodies
        for path, ref in _value_file_refs(source_path, body)
    ]
    used_refs, known_refs = {ref for _, ref in uses}, set[str]()
    for source_path, body in sources_with_ref:
        ref, path = get_text(body, "ref"), (*source_path, "ref")
        if not REF_PATTERN.fullmatch(ref):
            message, fix = (
                f"the ref `{sanitize(ref)}` has invalid characters",
                "use letters, digits, `_` and `-`",
            )
            collector.error("argo.ref", path, message, "Argo CD rejects all sources", fix)
        elif ref in known_refs:
            message, fix = f"two sources use the ref `{ref}`", "rename one of the two refs"
            collector.error("argo.ref", path, message, "Argo CD rejects all sources", fix)
        elif get_text(body, "chart"):
            message = f"the source with ref `{ref}` is a chart and cannot provide values files"
            report = collector.error if ref in used_refs else collector.warn
            why = "Argo CD reads values files of a ref from Git only"
            report("argo.ref", path, message, why, "remove the ref")
        known_refs.add(ref)
    for path, ref in uses:
        if ref not in known_refs:
            names = ", ".join(f"`{sanitize(name)}`" for name in sorted(known_refs))
            fix = f"use one of {names}" if names else "add a `ref` to one of several sources"
            message = f"no source has the ref `{sanitize(ref)}`"
            collector.error("argo.ref", path, message, "Argo CD cannot find the file", fix)


def _value_file_refs(source_path: FieldPath, body: JsonObject) -> Iterator[tuple[FieldPath, str]]:
    """Yield the refs with which paths of values files begin."""
    for index, file in enumerate(get_list(body, "helm", "valueFiles")):
        if isinstance(file, str) and file.startswith("$"):
            yield (*source_path, "helm", "valueFiles", index), file[1:].partition("/")[0]
    for index, parameter in enumerate(get_list(body, "helm", "fileParameters")):
        if get_text(parameter, "path").startswith("$"):
            path = (*source_path, "helm", "fileParameters", index, "path")
            yield path, get_text(parameter, "path")[1:].partition("/")[0]
