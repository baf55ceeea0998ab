"""ApplicationSets in files, and the units of the Applications that they generate."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

import msgspec

from tidegate.dialect.argo.application import read_application
from tidegate.dialect.argo.appset.applications import (
    GeneratedApplication,
    GenerationResult,
    selects_clusters,
)
from tidegate.dialect.argo.appset.path_patterns import literal_prefix
from tidegate.dialect.argo.appset.policies import (
    ApplicationSetPolicy,
    ignored_fields,
    report_ignored_fields,
    report_policy,
)
from tidegate.dialect.argo.appset.rolling_sync import has_steps, rollout_steps, without_auto_sync
from tidegate.dialect.argo.finding_collector import FindingCollector
from tidegate.dialect.declared import ApplicationSet, Declarations
from tidegate.documents import Document
from tidegate.errors import sanitize
from tidegate.model.finding import Finding
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json
from tidegate.model.units.policy import Order, Policy
from tidegate.model.units.semantics import ARGOCD
from tidegate.model.units.unit import RollingSyncStep, Unit, UnitId

KIND = "ApplicationSet"
MANAGER = "argocd-applicationset-controller"


def read_application_set(document: Document, namespace: str) -> Declarations:
    """Read an ApplicationSet, without its Applications."""
    collector, body = FindingCollector(document.location), document.body
    appset_namespace = get_text(body, "metadata", "namespace", default=namespace)
    name = get_text(body, "metadata", "name")
    if not get_list(body, "spec", "generators"):
        message = f"ApplicationSet `{appset_namespace}/{sanitize(name)}` has no generators"
        why, fix = "it generates no Applications", "add `spec.generators`"
        collector.error("appset.generator", ("spec",), message, why, fix)
    appset = ApplicationSet(
        namespace=appset_namespace, name=name, location=document.location, body=body
    )
    return Declarations(application_sets=(appset,), findings=collector.findings)


def application_set_unit(
    appset: ApplicationSet, policy: ApplicationSetPolicy, *, is_complete: bool
) -> Unit:
    """Return the unit of an ApplicationSet; its objects are Applications, without an order.

    If the generated Applications are not complete, nothing is pruned.
    """
    unit_policy = Policy(
        semantics=ARGOCD,
        manager=MANAGER,
        order=Order.NONE,
        prune=policy.can_delete and is_complete,
        cascades=policy.can_delete,
        ignore_differences=ignored_fields(appset, policy),
        respect_ignore_differences=True,
        regenerates_during_rollout=uses_clusters(appset),
    )
    return Unit(
        id=UnitId(KIND, "", appset.namespace, appset.name),
        policy=unit_policy,
        location=appset.location,
    )


def application_documents(
    appset: ApplicationSet, generated: GenerationResult, *, rolling_sync: bool
) -> tuple[Document, ...]:
    """Return the Applications as the ApplicationSet writes them; RollingSync disables auto-sync."""
    has_rollout_steps = rolling_sync and has_steps(appset)
    return tuple(
        Document(
            without_auto_sync(application.body) if has_rollout_steps else application.body,
            appset.location.with_field(application.origin),
        )
        for application in generated.applications
    )


def application_units(
    appset: ApplicationSet, generated: GenerationResult, settings: Mapping[str, str]
) -> Declarations:
    """Return the units of the generated Applications. The same finding about many is reported once.

    Units of a rollout step are sorted by name.
    """
    collector = FindingCollector(appset.location)
    report_policy(appset, settings, collector)
    report_ignored_fields(appset, collector)
    steps, step_findings = rollout_steps(appset, generated.applications)
    applications = generated.applications
    ordered = (
        sorted(applications, key=lambda application: application.name) if steps else applications
    )
    declarations = [
        _read_application(application, appset, steps.get(application.name))
        for application in ordered
    ]
    names_by_finding: dict[Finding, list[str]] = {}
    for declared in declarations:
        for finding in declared.findings:
            names_by_finding.setdefault(finding, []).extend(
                unit.id.qualified_name for unit in declared.units
            )
    named_findings = (
        msgspec.structs.replace(template_finding, unit_names=tuple(names))
        for template_finding, names in names_by_finding.items()
    )
    return Declarations(
        units=tuple(unit for declared in declarations for unit in declared.units),
        findings=(*collector.findings, *generated.findings, *step_findings, *named_findings),
    )


def _read_application(
    application: GeneratedApplication, appset: ApplicationSet, step: RollingSyncStep | None
) -> Declarations:
    location = appset.location.with_field(application.origin)
    declared = read_application(Document(application.body, location), appset.namespace)
    group = f"{appset.tracking_id} step {step.number}" if step else ""
    units = tuple(
        msgspec.structs.replace(
            unit, generated_by=appset.tracking_id, concurrency_group=group, rolling_sync_step=step
        )
        for unit in declared.units
    )
    return Declarations(units=units, findings=tuple(map(relocate_to_template, declared.findings)))


def relocate_to_template(finding: Finding) -> Finding:
    """Relocate a finding about a generated Application to the template."""
    location = finding.location
    if location is None or not location.field.startswith(("metadata", "spec")):
        return finding
    return msgspec.structs.replace(
        finding, location=location.with_field(f"spec.template.{location.field}")
    )


def uses_clusters(appset: ApplicationSet) -> bool:
    """Return whether a generator, at any depth, depends on the clusters registered in Argo CD."""
    return any(map(selects_clusters, get_list(appset.body, "spec", "generators")))


def referenced_paths(appset: ApplicationSet) -> list[tuple[str, str]]:
    """Return the repositories in the generators and the template, each with a directory."""
    paths = [
        pair
        for entry in get_list(appset.body, "spec", "generators")
        for pair in _generator_paths(entry)
    ]
    spec = get_mapping(appset.body, "spec", "template", "spec")
    for source in (get_mapping(spec, "source"), *get_mappings(spec, "sources")):
        url, path = get_text(source, "repoURL"), get_text(source, "path").partition("{{")[0]
        directory = posixpath.dirname(path) if path != get_text(source, "path") else path
        if directory and "{{" not in url:
            paths.append((url, directory))
    return paths


def _generator_paths(entry: Json) -> list[tuple[str, str]]:
    git, url = get_mapping(entry, "git"), get_text(entry, "git", "repoURL")
    items = (
        [*get_mappings(git, "directories"), *get_mappings(git, "files")] if "{{" not in url else []
    )
    paths = [
        (url, literal_prefix(get_text(item, "path"))) for item in items if "{{" not in str(item)
    ]
    for kind in ("matrix", "merge"):
        for inner in get_list(entry, kind, "generators"):
            paths += _generator_paths(inner)
    return paths
