"""Fields that Kustomizations, HelmReleases and HelmCharts share."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Collection, Iterator

from tidegate.dialect.flux.field_reader import FieldReader
from tidegate.model.k8s.objects import Kind
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.chart_request import ValuesFile
from tidegate.model.units.expressions import HealthExpressions
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.model.units.ignore_differences import IgnoreDifference
from tidegate.model.units.rendering import DataReference, ImageOverride, KustomizePatch
from tidegate.model.units.source import SourceObject
from tidegate.model.units.unit import Dependency, UnitId

REPOSITORY = "HelmRepository"
CHART_SOURCES = (REPOSITORY, "GitRepository", "Bucket")
OLD_PATCHES = ("patchesStrategicMerge", "patchesJson6902")
DATA_KINDS = ("ConfigMap", "Secret")
_PLAIN_NAME = lazy_regex(r"[A-Za-z0-9.:_-]+")
"""A regular expression of Flux that is a literal name."""
_TARGET_FIELDS = frozenset({"group", "kind", "name", "namespace"})


def read_cluster(spec: FieldReader) -> str:
    """Return the cluster of a unit, named after its kubeconfig object; empty if local."""
    if not spec.has("kubeConfig"):
        return ""
    config = spec.child("kubeConfig")
    names = ("secretRef", "configMapRef")
    if config.has(names[0]) == config.has(names[1]):
        problem = "needs exactly one of `secretRef` and `configMapRef`"
        config.report("flux.exclusive", "", problem, fix="set exactly one")
    chosen = next((name for name in names if config.has(name)), "")
    return config.child(chosen).text("name", required=True) if chosen else ""


def read_identity(spec: FieldReader, namespace: str) -> ImpersonatedUser | None:
    """Return the service account to impersonate; None if there is none.

    Flux sends the user only; the API server adds the groups of service accounts.
    """
    account = spec.text("serviceAccountName")
    return (
        ImpersonatedUser(user=f"system:serviceaccount:{namespace}:{account}") if account else None
    )


def read_dependencies(spec: FieldReader, unit_id: UnitId) -> Iterator[Dependency]:
    """Yield the dependencies on units of the same kind, by default in the same namespace."""
    for entry in spec.children("dependsOn"):
        name = entry.text("name", required=True)
        unit = UnitId(unit_id.kind, "", entry.text("namespace", default=unit_id.namespace), name)
        if unit == unit_id:
            why = "the unit waits for itself and never starts"
            entry.report(
                "flux.itself", "", "refers to the unit itself", why=why, fix="remove the entry"
            )
        elif name:
            yield Dependency(
                unit=unit, location=entry.location(), ready_when=entry.text("readyExpr")
            )


def read_expressions(spec: FieldReader) -> tuple[HealthExpressions, ...]:
    """Return the health expressions by kind. Of two for the same kind the first one counts."""
    by_kind: dict[tuple[str, str], HealthExpressions] = {}
    for entry in spec.children("healthCheckExprs"):
        version, current = (
            entry.text("apiVersion", required=True),
            entry.text("current", required=True),
        )
        expressions = HealthExpressions(
            group=Kind.of(version, "").group,
            kind=entry.text("kind"),
            current=current,
            in_progress=entry.text("inProgress"),
            failed=entry.text("failed"),
            location=entry.location(),
        )
        kind = (expressions.group, expressions.kind)
        if kind in by_kind:
            why = "Flux stalls, and retries only after the spec changes"
            fix = "keep one entry for each kind"
            entry.report(
                "flux.duplicate", "", "repeats a kind that already has an entry", why=why, fix=fix
            )
        elif version and current:
            by_kind[kind] = expressions
    return tuple(by_kind.values())


def read_source(ref: FieldReader, namespace: str, kinds: Collection[str]) -> SourceObject | None:
    """Return the reference to a source object; None if kind or name is missing."""
    kind = ref.text("kind", choices=kinds, required=True)
    name = ref.text("name", required=True)
    source_namespace = ref.text("namespace", default=namespace)
    return SourceObject(kind, source_namespace, name) if kind and name else None


def read_chart(
    chart: FieldReader, namespace: str, *, is_old: bool
) -> tuple[SourceObject | None, tuple[ValuesFile, ...]]:
    """Return the source of a chart, and the files that replace its default values.

    In a Helm repository a chart has a name and a version, and the files are in the chart. In
    other sources it has a path, and the files are relative to the root.
    """
    source = read_source(chart.child("sourceRef"), namespace, CHART_SOURCES)
    chart_name = chart.text("chart", required=True)
    chart.text("reconcileStrategy", choices=("ChartVersion", "Revision"))
    files = chart.string_list("valuesFiles")
    if is_old and (values_file := chart.text("valuesFile")):
        files = (values_file, *files)
    elif not is_old:
        report_removed_fields(chart, ("valuesFile",), "valuesFiles")
    optional = chart.flag("ignoreMissingValuesFiles")
    if source is None:
        return None, ()
    version = chart.text("version")
    if source.kind != REPOSITORY:
        chart_name, version = chart.tree_path("chart"), ""
        files = tuple(posixpath.normpath(f"/{path.lstrip('/')}") for path in files)
    layers = tuple(ValuesFile(path, optional=optional) for path in files)
    return SourceObject(source.kind, source.namespace, source.name, chart_name, version), layers


def read_images(reader: FieldReader) -> tuple[ImageOverride, ...]:
    return tuple(
        ImageOverride(
            name=entry.text("name", required=True),
            new_name=entry.text("newName"),
            new_tag=entry.text("newTag"),
            digest=entry.text("digest"),
        )
        for entry in reader.children("images")
    )


def read_patches(reader: FieldReader, *, is_old: bool) -> tuple[KustomizePatch, ...]:
    """Return the patches; in old versions, those that are written as objects come last."""
    patches = [
        KustomizePatch(patch=entry.text("patch", required=True), target=entry.string_map("target"))
        for entry in reader.children("patches")
    ]
    if not is_old:
        report_removed_fields(reader, OLD_PATCHES, "patches")
        return tuple(patches)
    patches += [
        KustomizePatch(patch=json.dumps(entry.body)) for entry in reader.children(OLD_PATCHES[0])
    ]
    patches += [
        KustomizePatch(patch=json.dumps(entry.value("patch")), target=entry.string_map("target"))
        for entry in reader.children(OLD_PATCHES[1])
    ]
    return tuple(patches)


def report_removed_fields(reader: FieldReader, names: Collection[str], replacement: str) -> None:
    why = "this API version does not have the field, and the API server drops it"
    reader.report_ignored(names, why, f"use `{replacement}`")


def read_references(reader: FieldReader, name: str, key: str = "") -> tuple[DataReference, ...]:
    """Return the named ConfigMaps and Secrets, which are in the namespace of the unit."""
    references = (
        DataReference(
            kind=entry.text("kind", choices=DATA_KINDS, required=True),
            name=entry.text("name", required=True),
            key=entry.text("valuesKey", default=key),
            target_path=entry.text("targetPath"),
            optional=entry.flag("optional"),
            literal=entry.flag("literal"),
        )
        for entry in reader.children(name)
    )
    return tuple(reference for reference in references if reference.kind and reference.name)


def read_ignore_rules(spec: FieldReader) -> Iterator[IgnoreDifference]:
    """Yield the fields that others may change, for targets with literal names."""
    for rule in spec.children("ignore"):
        target = rule.string_map("target")
        if not _TARGET_FIELDS.issuperset(target) or not all(
            map(_PLAIN_NAME.fullmatch, target.values())
        ):
            rule.report_unsupported_field("target", "objects are matched by literal names only")
            continue
        yield IgnoreDifference(
            kind=target.get("kind", "*"),
            group=target.get("group", "*"),
            name=target.get("name", ""),
            namespace=target.get("namespace", ""),
            pointers=rule.string_list("paths"),
        )
