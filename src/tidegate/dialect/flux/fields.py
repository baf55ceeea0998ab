"""Fields that Kustomizations, HelmReleases and HelmCharts share, read in one way."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Collection, Iterator

from tidegate.dialect.flux.part import Part
from tidegate.model.expressions import HealthExpressions
from tidegate.model.identity import Identity
from tidegate.model.ignoring import Ignored
from tidegate.model.objects import Kind
from tidegate.model.patterns import late
from tidegate.model.release import ValuesFile
from tidegate.model.rendering import DataReference, Image, Patch
from tidegate.model.source import SourceObject
from tidegate.model.unit import Dependency, UnitId

REPOSITORY = "HelmRepository"
CHART_SOURCES = (REPOSITORY, "GitRepository", "Bucket")
OLD_PATCHES = ("patchesStrategicMerge", "patchesJson6902")
DATA_KINDS = ("ConfigMap", "Secret")
_PLAIN = late(r"[A-Za-z0-9.:_-]+")
"""A text that means itself, where Flux reads a regular expression."""
_TARGETS = frozenset({"group", "kind", "name", "namespace"})


def read_cluster(spec: Part) -> str:
    """The cluster of a unit, by the name of what holds its kubeconfig; empty is its own."""
    if not spec.has("kubeConfig"):
        return ""
    config = spec.part("kubeConfig")
    names = ("secretRef", "configMapRef")
    if config.has(names[0]) == config.has(names[1]):
        what = "needs one of `secretRef` and `configMapRef`"
        config.tell("flux.exclusive", "", what, fix="have one")
    chosen = next((name for name in names if config.has(name)), "")
    return config.part(chosen).text("name", needed=True) if chosen else ""


def read_identity(spec: Part, home: str) -> Identity | None:
    """Flux names the account alone. The API server knows the groups of accounts by itself."""
    account = spec.text("serviceAccountName")
    return Identity(user=f"system:serviceaccount:{home}:{account}") if account else None


def read_dependencies(spec: Part, own: UnitId) -> Iterator[Dependency]:
    """Units of the same kind, in the same namespace if none is said."""
    for one in spec.parts("dependsOn"):
        name = one.text("name", needed=True)
        unit = UnitId(own.kind, "", one.text("namespace", default=own.namespace), name)
        if unit == own:
            why = "it waits until it is ready itself, which never happens"
            one.tell("flux.itself", "", "is the unit itself", why=why, fix="remove the entry")
        elif name:
            yield Dependency(unit=unit, where=one.at(), ready_when=one.text("readyExpr"))


def read_expressions(spec: Part) -> tuple[HealthExpressions, ...]:
    """How objects of some kinds are judged. Of two for the same kind the first is taken."""
    found: dict[tuple[str, str], HealthExpressions] = {}
    for one in spec.parts("healthCheckExprs"):
        version, current = one.text("apiVersion", needed=True), one.text("current", needed=True)
        expressions = HealthExpressions(
            group=Kind.of(version, "").group,
            kind=one.text("kind"),
            current=current,
            in_progress=one.text("inProgress"),
            failed=one.text("failed"),
            where=one.at(),
        )
        kind = (expressions.group, expressions.kind)
        if kind in found:
            why = "Flux stops at that, and tries again when the text is another"
            fix = "keep one entry for each kind"
            one.tell("flux.twice", "", "is for a kind that has an entry already", why=why, fix=fix)
        elif version and current:
            found[kind] = expressions
    return tuple(found.values())


def read_source(ref: Part, home: str, kinds: Collection[str]) -> SourceObject | None:
    """The object that holds a tree; None where it is not said well enough to be found."""
    kind = ref.text("kind", among=kinds, needed=True)
    name = ref.text("name", needed=True)
    inside = ref.text("namespace", default=home)
    return SourceObject(kind, inside, name) if kind and name else None


def read_chart(
    chart: Part, home: str, *, is_old: bool
) -> tuple[SourceObject | None, tuple[ValuesFile, ...]]:
    """Where a chart lies, and the files that take the place of its values.

    In a Helm repository it has a name and a version, and the files are the chart's. In other trees
    it has a path, and paths of the files start at the root.
    """
    named = read_source(chart.part("sourceRef"), home, CHART_SOURCES)
    told = chart.text("chart", needed=True)
    chart.text("reconcileStrategy", among=("ChartVersion", "Revision"))
    files = chart.words("valuesFiles")
    if is_old and (first := chart.text("valuesFile")):
        files = (first, *files)
    elif not is_old:
        tell_dropped(chart, ("valuesFile",), "valuesFiles")
    optional = chart.flag("ignoreMissingValuesFiles")
    if named is None:
        return None, ()
    version = chart.text("version")
    if named.kind != REPOSITORY:
        told, version = chart.tree_path("chart"), ""
        files = tuple(posixpath.normpath(f"/{one.lstrip('/')}") for one in files)
    layers = tuple(ValuesFile(one, optional=optional) for one in files)
    return SourceObject(named.kind, named.namespace, named.name, told, version), layers


def read_images(part: Part) -> tuple[Image, ...]:
    return tuple(
        Image(
            name=one.text("name", needed=True),
            new_name=one.text("newName"),
            new_tag=one.text("newTag"),
            digest=one.text("digest"),
        )
        for one in part.parts("images")
    )


def read_patches(part: Part, *, is_old: bool) -> tuple[Patch, ...]:
    """Patches; behind them, in versions that had these, those that are written as objects."""
    patches = [
        Patch(patch=one.text("patch", needed=True), target=one.texts("target"))
        for one in part.parts("patches")
    ]
    if not is_old:
        tell_dropped(part, OLD_PATCHES, "patches")
        return tuple(patches)
    patches += [Patch(patch=json.dumps(one.body)) for one in part.parts(OLD_PATCHES[0])]
    patches += [
        Patch(patch=json.dumps(one.value("patch")), target=one.texts("target"))
        for one in part.parts(OLD_PATCHES[1])
    ]
    return tuple(patches)


def tell_dropped(part: Part, names: Collection[str], better: str) -> None:
    why = "this version of the kind has no such field, and the API server drops it"
    part.tell_ignored(names, why, f"use `{better}`")


def read_references(part: Part, name: str, key: str = "") -> tuple[DataReference, ...]:
    """ConfigMaps and Secrets in the unit's own namespace, as far as they are named."""
    found = (
        DataReference(
            kind=one.text("kind", among=DATA_KINDS, needed=True),
            name=one.text("name", needed=True),
            key=one.text("valuesKey", default=key),
            target_path=one.text("targetPath"),
            optional=one.flag("optional"),
            literal=one.flag("literal"),
        )
        for one in part.parts(name)
    )
    return tuple(one for one in found if one.kind and one.name)


def read_ignores(spec: Part) -> Iterator[Ignored]:
    """Fields that others may change, of objects that are named outright or by nothing."""
    for rule in spec.parts("ignore"):
        target = rule.texts("target")
        if not _TARGETS.issuperset(target) or not all(map(_PLAIN.fullmatch, target.values())):
            rule.tell_difference("target", "objects are found by plain names alone")
            continue
        yield Ignored(
            kind=target.get("kind", "*"),
            group=target.get("group", "*"),
            name=target.get("name", ""),
            namespace=target.get("namespace", ""),
            pointers=rule.words("paths"),
        )
