"""Lineage of objects by Git: object, unit, parent units and source, each with its location.

Where a cluster is chosen, the live status of units and sources is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from tidegate.clusters.reader import get_objects
from tidegate.clusters.session import Session
from tidegate.dialect.controllers.requests import current_revision, source_reference
from tidegate.dialect.ownership.tracking import owning_unit
from tidegate.errors import UsageError, redact_urls, sanitize
from tidegate.model.k8s.json_fields import (
    get_mapping,
    get_mappings,
    get_text,
    get_value,
    object_kind,
)
from tidegate.model.k8s.objects import JsonObject, Kind, LiveObject, Ref, object_body
from tidegate.model.plans.manifest import Manifest, Manifests, Phase
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.names import PHASE_NAMES
from tidegate.model.text.suggest import suggest
from tidegate.model.units.semantics import TIDEGATE
from tidegate.model.units.unit import Unit, UnitId
from tidegate.model.views.tree import TraceBlock, TreeNode
from tidegate.planning.preparation import prepare_plan
from tidegate.workspace.discovery.unit_tree import UnitTree
from tidegate.workspace.selection import SelectedResource, list_resources
from tidegate.workspace.workspace import Workspace
from tidegate.world.requests import Selection

KIND_SHORT_NAMES = {
    "cm": "configmap",
    "crd": "customresourcedefinition",
    "cj": "cronjob",
    "po": "pod",
    "deploy": "deployment",
    "ds": "daemonset",
    "ing": "ingress",
    "ns": "namespace",
    "pvc": "persistentvolumeclaim",
    "sa": "serviceaccount",
    "sts": "statefulset",
    "svc": "service",
    "rs": "replicaset",
    "ks": "kustomization",
    "hr": "helmrelease",
    "app": "application",
    "gitrepo": "gitrepository",
    "ingresses": "ingress",
}
"""Short names of kinds, as in kubectl; plurals are recognized by their ending."""
CONTROLLER_NAMES = {"Application": "Argo CD", "ApplicationSet": "Argo CD", "": "Tidegate"}
MAX_OWNER_DEPTH = 8


class ManagedManifest(msgspec.Struct, frozen=True):
    """A manifest, the unit that manages it, and the cluster it is deployed to."""

    manifest: Manifest
    unit: UnitId
    cluster: str

    @property
    def ref(self) -> Ref:
        return self.manifest.ref

    @property
    def note(self) -> str:
        """Phase and wave of the object in its unit, if they are not the default."""
        event = PHASE_NAMES.get(self.manifest.phase, "")
        parts = [event or "hook"] if self.manifest.hook_policies is not None else []
        parts += [f"wave {self.manifest.wave}"] if self.manifest.wave else []
        return ", ".join(parts)


class Lineage(msgspec.Struct, frozen=True):
    """All units of a repository, and the manifests of each in the order of deployment."""

    plan: Plan
    units: Mapping[UnitId, Unit]
    objects: Mapping[UnitId, Sequence[ManagedManifest]]
    resources: Sequence[SelectedResource] = ()
    """The unit resources and sources of the repository."""
    live_resources: Mapping[UnitId, JsonObject] = msgspec.field(default_factory=dict)
    """Live unit resources and sources, where a cluster is chosen."""

    def unit_for(self, ref: Ref, cluster: str) -> UnitId | None:
        """Return the unit that an object is the unit resource of, or None."""
        name = UnitId(ref.kind.name, cluster, ref.namespace, ref.name)
        return name if name in self.units else None

    def build_tree(self, name: UnitId, *, compact: bool) -> TreeNode:
        """Return the tree of a unit, its objects and its child units.

        `compact`: child units only.
        """
        return self._build_tree(name, compact, frozenset())

    def _build_tree(self, name: UnitId, compact: bool, above: frozenset[UnitId]) -> TreeNode:  # noqa: FBT001 - within
        above = above | {name}
        children = []
        for managed in self.objects.get(name, ()):
            inner = self.unit_for(managed.ref, managed.cluster)
            if inner in above:
                continue
            if inner is not None:
                node = self._build_tree(inner, compact, above)
                note = ", ".join(filter(None, (managed.note, node.note)))
                children.append(TreeNode(node.name, note, node.children))
            elif not compact:
                children.append(TreeNode(flux_tree_name(managed.ref), managed.note))
        state = "suspended" if self.units[name].is_suspended else ""
        return TreeNode(str(name), state, tuple(children))

    def trace(self, managed: ManagedManifest) -> list[TraceBlock]:
        """Trace an object to its unit, parent units and sources."""
        ref, unit = managed.ref, managed.unit
        head = [
            ("Object", f"{ref.kind.name}/{ref.name}"),
            ("Namespace", ref.namespace),
            ("Status", f"Managed by {CONTROLLER_NAMES.get(unit.kind, 'Flux')}"),
            ("Order", managed.note),
            ("File", self._file_path(managed)),
        ]
        return [tuple(head), *self.trace_unit(unit)]

    def _file_path(self, managed: ManagedManifest) -> str:
        """Return the file of a manifest; a template is shown with the path of its chart."""
        sources = self.units[managed.unit].sources
        chart = sources[0].path if len(sources) == 1 else ""
        origin = managed.manifest.origin
        is_template = origin.startswith("templates/") and chart not in {"", "."}
        return f"{chart}/{origin}" if is_template else origin

    def trace_unit(self, name: UnitId) -> Iterator[TraceBlock]:
        """Yield a unit, its parents, and the sources of all of them, each once."""
        chain: dict[UnitId, None] = {}
        above: UnitId | None = name
        while above is not None and above not in chain and above in self.units:
            chain[above] = None
            above = self.units[above].parent
        yield from (self._unit_block(unit_id) for unit_id in chain)
        source_keys = dict.fromkeys(
            source for unit_id in chain if (source := self._source_key(unit_id))
        )
        yield from (self._source_block(source_key) for source_key in source_keys)

    def _unit_resource(self, name: UnitId) -> JsonObject:
        return next((resource.body for resource in self.resources if resource.id == name), {})

    def _source_key(self, name: UnitId) -> tuple[str, str, str] | None:
        return source_reference(self._unit_resource(name))

    def _unit_block(self, name: UnitId) -> TraceBlock:
        unit, unit_resource = self.units[name], self._unit_resource(name)
        live = self.live_resources.get(name, {})
        fields = [
            (label, get_text(source, key))
            for source in _sources(unit_resource)
            for label, key in (("URL", "repoURL"), ("Target", "targetRevision"))
        ]
        return (
            (name.kind or "Directory", name.name),
            ("Namespace", name.namespace),
            *((label, redact_urls(value)) for label, value in fields),
            *(("Path", unit_source.path) for unit_source in unit.sources),
            ("Revision", current_revision(live) or get_text(live, "status", "sync", "revision")),
            ("Status", _status_text(live)),
            ("File", str(unit.location) if unit.location else ""),
        )

    def _source_block(self, source: tuple[str, str, str]) -> TraceBlock:
        kind, namespace, name = source
        source_id = UnitId(kind, "", namespace, name)
        resource = next(
            (candidate for candidate in self.resources if candidate.id == source_id), None
        )
        spec, live = (
            get_mapping(resource.body if resource else {}, "spec"),
            self.live_resources.get(source_id, {}),
        )
        source_ref = get_mapping(spec, "ref")
        return (
            (kind, name),
            ("Namespace", namespace),
            ("URL", redact_urls(get_text(spec, "url"))),
            *((label.capitalize(), get_text(source_ref, label)) for label in source_ref),
            ("Revision", current_revision(live)),
            ("Status", _status_text(live)),
            (
                "File",
                str(resource.location)
                if resource and resource.location
                else "not in this repository",
            ),
        )


async def read_lineages(workspace: Workspace, session: Session) -> list[Lineage]:
    """Return the lineage of each alternative, with live status where a real cluster is chosen."""
    return [
        await _read_lineage(alternative.unit_trees, session)
        for alternative in workspace.split_alternatives()
    ]


async def _read_lineage(unit_trees: Sequence[UnitTree], session: Session) -> Lineage:
    plan_result = await prepare_plan(unit_trees, session, semantics=TIDEGATE)
    objects = {
        unit_manifests.manifests.unit.id: _in_order(unit_manifests.manifests)
        for unit_manifests in plan_result.unit_manifests
    }
    all_units = [member.unit for unit_tree in unit_trees for member in unit_tree.members]
    resources = list_resources(unit_trees)
    live_resources = (
        {} if session.targets.simulation else await _read_live_resources(resources, session)
    )
    units = {unit.id: unit for unit in all_units}
    return Lineage(plan_result.plan, units, objects, resources, live_resources)


def _in_order(manifests: Manifests) -> list[ManagedManifest]:
    """Return manifests by phase and wave; within one wave they stay as written."""
    unit, phases = manifests.unit, [*Phase]
    ordered = sorted(
        manifests.manifests, key=lambda manifest: (phases.index(manifest.phase), manifest.wave)
    )
    return [ManagedManifest(manifest, unit.id, unit.destination.cluster) for manifest in ordered]


async def _read_live_resources(
    resources: Sequence[SelectedResource], session: Session
) -> dict[UnitId, JsonObject]:
    known = [resource for resource in resources if resource.id.cluster in session.targets.contexts]
    live_objects = await get_objects(session.world, (resource.cluster_ref for resource in known))
    return {
        resource.id: object_body(live_objects[resource.cluster_ref])
        for resource in known
        if resource.cluster_ref in live_objects
    }


async def trace_object(
    lineages: Sequence[Lineage], kind: str, name: str, namespace: str, session: Session
) -> list[TraceBlock]:
    """Trace an object by Git, or else by the owner references and tracking of the live object.

    Raises UsageError if no unit is known to manage the object.
    """
    for lineage in lineages:
        if managed := _find_manifest(lineage, kind, name, namespace):
            return lineage.trace(managed)
    if session.targets.simulation is None:
        for live in await _find_live(kind, name, namespace, session):
            if blocks := await _trace_live(live, lineages, session):
                return blocks
            problem = (
                f"object not managed by Flux or Argo CD: `{live.ref.kind.name}/{sanitize(name)}`"
            )
            hint = "neither the object nor its owners have tracking metadata"
            raise UsageError("usage.unmanaged", problem, hint=hint)
    raise _unknown_object_error(lineages, kind, name)


def _find_manifest(
    lineage: Lineage, kind: str, name: str, namespace: str
) -> ManagedManifest | None:
    all_managed = (managed for items in lineage.objects.values() for managed in items)
    matches = [
        managed
        for managed in all_managed
        if matches_kind(managed.ref.kind, kind)
        and managed.ref.name == name
        and namespace in {"", managed.ref.namespace}
    ]
    if len({match.ref for match in matches}) > 1:
        namespaces = ", ".join(f"`{match.ref.namespace}`" for match in matches)
        problem = f"name `{sanitize(name)}` is ambiguous: found in {namespaces}"
        raise UsageError("usage.unit", problem, hint="select one with `-n NAMESPACE`")
    return matches[0] if matches else None


def matches_kind(kind: Kind, kind_name: str) -> bool:
    """Return whether a name means a kind: its name, its plural or its short name."""
    base_name = kind_name.lower().partition(".")[0]
    name = kind.name.lower()
    plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return KIND_SHORT_NAMES.get(base_name, base_name) in {name, plural}


async def _find_live(kind: str, name: str, namespace: str, session: Session) -> list[LiveObject]:
    """Return the live objects of this kind and name in any of the clusters."""
    matches: list[LiveObject] = []
    for cluster in session.targets.contexts:
        served = await session.kinds(cluster)
        kinds = dict.fromkeys(
            served_kind.kind for served_kind in served if matches_kind(served_kind.kind, kind)
        )
        live_objects = await session.reader(cluster).list_all(
            Selection(matching_kind, namespace) for matching_kind in kinds
        )
        matches += [live for live in live_objects if live.ref.name == name]
    return matches


async def _trace_live(
    live: LiveObject, lineages: Sequence[Lineage], session: Session
) -> list[TraceBlock]:
    """Trace a live object by its first owner that is in Git or that has a tracking annotation.

    Returns nothing if there is none.
    """
    body, ref, chain = object_body(live), live.ref, [live.ref]
    for _ in range(MAX_OWNER_DEPTH):
        for lineage in lineages:
            managed = _find_manifest(lineage, ref.kind.name, ref.name, ref.namespace)
            if managed is not None:
                return [*map(_object_block, chain[:-1]), *lineage.trace(managed)]
            marker = owning_unit(body)
            unit = next(
                (unit_id for unit_id in lineage.units if unit_id.tracking_id == marker), None
            )
            if unit is not None:
                return [*map(_object_block, chain), *lineage.trace_unit(unit)]
        owners = get_mappings(body, "metadata", "ownerReferences")
        if not owners:
            return []
        kind = object_kind(owners[0])
        ref = Ref(kind, ref.namespace, get_text(owners[0], "name"))
        live_owner = await session.reader().get(ref)
        body, chain = (object_body(live_owner) if live_owner else {}), [*chain, ref]
    return []


def _object_block(ref: Ref) -> TraceBlock:
    return ("Object", f"{ref.kind.name}/{ref.name}"), ("Namespace", ref.namespace)


def _unknown_object_error(lineages: Iterable[Lineage], kind: str, name: str) -> UsageError:
    all_managed = [
        managed
        for lineage in lineages
        for managed_list in lineage.objects.values()
        for managed in managed_list
    ]
    names = [managed.ref.name for managed in all_managed if matches_kind(managed.ref.kind, kind)]
    kinds = {managed.ref.kind.name for managed in all_managed}
    default_hint = "list objects of units with `tidegate tree`"
    hint = suggest(name, names, default_hint) if names else suggest(kind, kinds, default_hint)
    problem = f"no unit in this repository deploys {sanitize(kind)} `{sanitize(name)}`"
    return UsageError("usage.object", problem, hint=hint)


def _sources(unit_resource: JsonObject) -> list[JsonObject]:
    spec = get_mapping(unit_resource, "spec")
    sources = [get_mapping(spec, "source")] if "source" in spec else get_mappings(spec, "sources")
    return [source for source in sources if get_text(source, "repoURL")]


def _status_text(live: JsonObject) -> str:
    """Return the status that a unit resource reports about itself, or ""."""
    for condition in get_mappings(live, "status", "conditions"):
        if condition.get("type") == "Ready":
            return f"{get_text(condition, 'reason')}: {get_text(condition, 'message')}".strip(": ")
    sync, health = (
        get_text(live, "status", "sync", "status"),
        get_value(live, "status", "health", "status"),
    )
    return f"{sync}, {health}" if sync else ""


def flux_tree_name(ref: Ref) -> str:
    """Return the name of an object as `flux tree` prints it."""
    return "/".join(segment for segment in (ref.kind.name, ref.namespace, ref.name) if segment)
