"""Missing dependencies of units: required objects that neither the repository nor the cluster has.

The graph of the units shows what they require and do not provide; then the cluster is queried.
Secrets, ConfigMaps, service accounts and claims belong to the application, keys and tokens are
trust roots. Everything else belongs to the platform: operators with their CRDs, namespaces,
classes, issuers, stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import structs

from tidegate.clusters.sandboxes import load_knowledge
from tidegate.clusters.session import Session
from tidegate.dialect.units import is_dialect_kind
from tidegate.errors import Location
from tidegate.graph.build import build_graph
from tidegate.graph.missing import find_unmet_dependencies
from tidegate.knowledge.catalog import KindCatalog
from tidegate.knowledge.distributions import Distribution
from tidegate.model.k8s.kinds import CLAIM, CONFIG_MAP, NAMESPACE, SECRET, SERVICE_ACCOUNT
from tidegate.model.k8s.objects import JsonObject, Kind, Ref, ServedKind, versionless_key
from tidegate.model.operators.rows import Effect, Operator
from tidegate.model.plans.graph import Dependent, UnmetDependency, UnmetDependencyType
from tidegate.model.plans.missing_dependency import DependencyType, MissingDependency
from tidegate.model.plans.plan import Plan
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.planning.graph import graph_inputs, repository_distributions
from tidegate.planning.manifests import UnitManifests
from tidegate.planning.preparation import read_valid_manifests
from tidegate.planning.provided import WORKLOADS, GroupKind, ProvidedObjects, operator_products
from tidegate.planning.requirements import metrics_requirements, resolve_served
from tidegate.schema.custom_kinds import DNS_NAME, can_be_custom
from tidegate.workspace.discovery.unit_tree import root_bodies
from tidegate.workspace.workspace import Workspace
from tidegate.world.messages import ApiResources
from tidegate.world.requests import Selection

SERVICE = ("", "Service")
PART_TYPES = frozenset(
    {UnmetDependencyType.KEY, UnmetDependencyType.PORT, UnmetDependencyType.PODS}
)
SEPARATE_TYPES = frozenset(
    {UnmetDependencyType.DEFINITION, UnmetDependencyType.OPERATOR, UnmetDependencyType.UNIT}
)
"""Types that are not looked up by name.

Kinds and operators are checked separately; units are reported where they are referenced.
"""
SECRET_STORE_KINDS = frozenset(
    {"SecretStore", "ClusterSecretStore", "VaultAuth", "VaultConnection"}
)
"""Kinds that read other Secrets with the help of a manually created Secret."""
KEY_SECRET_PREFIXES = ("sops-", "sealed-secrets-key", "age-key", "vault-unseal")
"""Name prefixes of Secrets that decrypt others."""
DECRYPTION = "decryption"
APPLICATION_KINDS = frozenset(
    {(item.group, item.name) for item in (SECRET, CONFIG_MAP, SERVICE_ACCOUNT, CLAIM)}
)
CLUSTER_SCOPED_NAME = lazy_regex(r"^Cluster[A-Z]|Cluster(Issuer|Policy|Role|Store)$")
"""Names of kinds that are assumed to be cluster-scoped if their scope is unknown."""
NO_KIND = Kind("", "", "")
MAX_WORKLOADS = 500


async def find_missing(workspace: Workspace, session: Session) -> tuple[MissingDependency, ...]:
    """Return all missing dependencies of the units, each once, in order."""
    return await find_missing_for(
        workspace, await read_valid_manifests(workspace.members, session), session
    )


async def find_missing_for(
    workspace: Workspace, unit_manifests: Iterable[UnitManifests], session: Session
) -> tuple[MissingDependency, ...]:
    """Return the missing dependencies of units whose manifests are already read."""
    unit_manifests, simulation = tuple(unit_manifests), session.targets.simulation
    knowledge = load_knowledge(simulation)
    catalog = KindCatalog.from_rows(knowledge.rows)
    all_manifests = (rendered.manifests for rendered in unit_manifests)
    graph = build_graph(
        all_manifests,
        Plan(digest=""),
        graph_inputs(simulation),
        unit_resources=root_bodies(workspace.unit_trees),
    )
    unmet: dict[str, list[UnmetDependency]] = {}
    for unmet_dependency in find_unmet_dependencies(graph):
        unmet.setdefault(unmet_dependency.cluster, []).append(unmet_dependency)
    by_cluster: dict[str, list[UnitManifests]] = {cluster: [] for cluster in unmet}
    for rendered in unit_manifests:
        by_cluster.setdefault(rendered.manifests.unit.destination.cluster, []).append(rendered)
    result: list[MissingDependency] = []
    for cluster, in_cluster in by_cluster.items():
        manifests = (
            manifest for rendered in in_cluster for manifest in rendered.manifests.manifests
        )
        bodies = (
            document.body for rendered in in_cluster for document in rendered.rendered.documents
        )
        provided = ProvidedObjects.from_manifests(manifests, catalog, bodies)
        operators = {operator.name: operator for operator in knowledge.operators}
        finder = _MissingFinder(
            cluster,
            catalog,
            operators,
            provided,
            tuple(unmet.get(cluster, ())),
            repository_distributions(in_cluster),
        )
        result += await finder.find(session)
    return tuple(sorted(result, key=_sort_key))


def _sort_key(dependency: MissingDependency) -> tuple[str, int, str, str, str, str, str]:
    ref = dependency.ref
    order = list(DependencyType).index(dependency.type)
    return (
        dependency.cluster,
        order,
        ref.kind.group,
        ref.kind.name,
        ref.namespace,
        ref.name,
        dependency.missing_part,
    )


class _MissingFinder(msgspec.Struct):
    """Search for missing dependencies in one cluster."""

    cluster: str
    catalog: KindCatalog
    operators: dict[str, Operator]
    provided: ProvidedObjects
    unmet: tuple[UnmetDependency, ...]
    distributions: tuple[Distribution, ...] = ()
    """The distributions of Kubernetes that the repository is for."""
    _locations: dict[Ref, Location | None] = msgspec.field(default_factory=dict)
    _served: dict[GroupKind, tuple[ServedKind, ...]] = msgspec.field(default_factory=dict)
    _workloads: list[JsonObject] = msgspec.field(default_factory=list)
    _bodies: dict[Ref, JsonObject] = msgspec.field(default_factory=dict)

    async def find(self, session: Session) -> list[MissingDependency]:
        for served_kind in await session.kinds(self.cluster):
            name = (served_kind.kind.group, served_kind.kind.name)
            self._served[name] = (*self._served.get(name, ()), served_kind)
        self._bodies = dict(self.provided.objects)
        required = self._required_objects()
        absent = await self._absent_from_cluster(session, required)
        custom_kinds: dict[Kind, dict[Ref, None]] = {}
        for ref, _ in self.provided.objects:
            if can_be_custom(ref.kind):
                custom_kinds.setdefault(ref.kind, {})[self._in_scope(ref)] = None
        for ref in absent:
            if can_be_custom(ref.kind):
                kind = self._with_version(ref.kind)
                dependents = map(self._in_scope, required[ref])
                custom_kinds.setdefault(kind, {}).update(dict.fromkeys(dependents))
        self._workloads = [
            *self.provided.workloads,
            *await self._list_workloads(session, custom_kinds),
        ]
        result = [
            *self._missing_kinds_and_operators(custom_kinds),
            *(self._missing_object(ref, tuple(required[ref])) for ref in absent),
            *self._missing_parts(),
        ]
        return [
            structs.replace(dependency, location=self._location_for(dependency))
            for dependency in result
        ]

    def _location_for(self, dependency: MissingDependency) -> Location | None:
        """Return the first location that requires the dependency."""
        locations = (self._locations.get(ref) for ref in (dependency.ref, *dependency.needed_by))
        return dependency.location or next(
            (location for location in locations if location is not None), None
        )

    def _missing_parts(self) -> Iterator[MissingDependency]:
        """Yield missing keys, ports and pods of existing objects, and missing default classes."""
        for unmet_dependency in self.unmet:
            dependents = [*_dependents(unmet_dependency)]
            is_part = unmet_dependency.type in PART_TYPES or not _has_valid_name(unmet_dependency)
            if dependents and is_part and unmet_dependency.type not in SEPARATE_TYPES:
                yield MissingDependency(
                    cluster=self.cluster,
                    type=DependencyType.PART,
                    ref=unmet_dependency.ref or Ref(NO_KIND, "", ""),
                    needed_by=tuple(
                        dict.fromkeys(dependent.ref for dependent in dependents if dependent.ref)
                    ),
                    missing_part=unmet_dependency.name,
                    location=dependents[0].location,
                )

    def _in_scope(self, ref: Ref) -> Ref:
        """Return the reference, without namespace if its kind is cluster-scoped."""
        return Ref(ref.kind, "", ref.name) if self._is_cluster_scoped(ref.kind) else ref

    def _required_objects(self) -> dict[Ref, dict[Ref, None]]:
        """Return the required objects that no unit provides, with their dependents."""
        required: dict[Ref, dict[Ref, None]] = {}
        for unmet_dependency in self.unmet:
            is_object = (
                unmet_dependency.type not in SEPARATE_TYPES | PART_TYPES
                and _has_valid_name(unmet_dependency)
            )
            for dependent in _dependents(unmet_dependency) if is_object else ():
                if unmet_dependency.ref is not None and dependent.ref is not None:
                    required.setdefault(unmet_dependency.ref, {})[dependent.ref] = None
                    self._locations.setdefault(unmet_dependency.ref, dependent.location)
        for ref, body in self.provided.objects:
            metric_refs = (
                metric_ref
                for metric_ref in metrics_requirements(ref, body)
                if not self._is_provided(metric_ref)
            )
            for metric_ref in metric_refs:
                required.setdefault(metric_ref, {})[ref] = None
        return required

    def _is_provided(self, ref: Ref) -> bool:
        """Return whether a unit provides the object, in its namespace or cluster-scoped."""
        group, kind, namespace, name = versionless_key(ref)
        provided_ids = self.provided.identities
        return any(
            (group, kind, candidate_namespace, name) in provided_ids
            for candidate_namespace in (namespace, "")
        )

    async def _absent_from_cluster(self, session: Session, required: Iterable[Ref]) -> list[Ref]:
        """Return the objects that the cluster does not have."""
        refs = list(required)
        served = ApiResources(
            tuple(served_kind for versions in self._served.values() for served_kind in versions)
        )
        requested = list(resolve_served(refs, served))
        absent = {*await session.reader(self.cluster).find_absent(requested)}
        return [ref for ref, read_ref in zip(refs, requested, strict=True) if read_ref in absent]

    async def _list_workloads(
        self, session: Session, custom_kinds: Iterable[Kind]
    ) -> list[JsonObject]:
        """Return the workloads of the cluster, if custom kinds need an operator."""
        if not [*custom_kinds]:
            return []
        listing = await session.reader(self.cluster).list_each(
            map(Selection, WORKLOADS), limit=MAX_WORKLOADS
        )
        return [msgspec.json.decode(live.body) for live in listing.items]

    def _missing_object(self, ref: Ref, needed_by: tuple[Ref, ...]) -> MissingDependency:
        kind = (ref.kind.group, ref.kind.name)
        dependency_type = (
            DependencyType.SETTING if kind in APPLICATION_KINDS else DependencyType.OBJECT
        )
        if any(item.has(*kind, ref.namespace, ref.name) for item in self.distributions):
            dependency_type = DependencyType.OBJECT
        if any(
            (defined_kind.group, defined_kind.name) == kind
            for defined_kind in (*self.provided.defined_kinds, *WORKLOADS)
        ):
            # Objects of a kind from the plan cannot exist before it.
            dependency_type = DependencyType.SETTING
        if self._is_trust_root(ref):
            dependency_type = DependencyType.TRUST_ROOT
        if kind == SERVICE and not any(can_be_custom(dependent.kind) for dependent in needed_by):
            dependency_type = DependencyType.SERVICE
        if kind == (NAMESPACE.group, NAMESPACE.name):
            return MissingDependency(
                cluster=self.cluster,
                type=DependencyType.NAMESPACE,
                ref=Ref(NAMESPACE, "", ref.name),
                needed_by=needed_by,
                location=self._locations.get(ref),
            )
        bodies = self._bodies
        produced_refs = (
            produced
            for dependent in needed_by
            if dependent in bodies
            for produced in operator_products(dependent, bodies[dependent], self.catalog)
        )
        return MissingDependency(
            cluster=self.cluster,
            type=dependency_type,
            ref=self._in_scope(ref),
            needed_by=tuple(map(self._in_scope, needed_by)),
            produced_secrets=tuple(
                dict.fromkeys(produced for produced in produced_refs if produced.kind == SECRET)
            ),
        )

    def _is_trust_root(self, ref: Ref) -> bool:
        """Return whether a Secret decrypts others, so that nothing in the plan can create it."""
        if (ref.kind.group, ref.kind.name) != (SECRET.group, SECRET.name):
            return False
        dependents = [
            dependent
            for unmet_dependency in self.unmet
            if unmet_dependency.ref == ref
            for dependent in unmet_dependency.dependents
        ]
        by_stores = any(
            dependent.ref is not None and dependent.ref.kind.name in SECRET_STORE_KINDS
            for dependent in dependents
        )
        return (
            by_stores
            or ref.name.startswith(KEY_SECRET_PREFIXES)
            or any(DECRYPTION in dependent.field for dependent in dependents)
        )

    def _missing_kinds_and_operators(
        self, custom_kinds: dict[Kind, dict[Ref, None]]
    ) -> Iterator[MissingDependency]:
        """Yield undefined kinds and kinds without a running operator; by operator if one is known.

        An operator that installs its CRDs is reported once, with its kinds. An operator that
        creates objects of a kind from another object serves that kind, and is reported with
        that object.
        """
        groups: dict[str, list[Kind]] = {}
        for kind in sorted(custom_kinds.keys() - self.provided.operator_defined):
            groups.setdefault(self._operator_name(kind), []).append(kind)
        for operator, kinds in groups.items():
            unserved = [kind for kind in kinds if not self._has_operator(kind)]
            undefined = [kind for kind in kinds if not self._is_defined_in_any_version(kind)]
            if operator and unserved:
                yield self._missing_operator(operator, kinds, custom_kinds)
                undefined = [
                    undefined_kind
                    for undefined_kind in undefined
                    if not self._is_installed_by(operator, undefined_kind)
                ]
            yield from (self._missing_kind(kind, tuple(custom_kinds[kind])) for kind in undefined)
            if not operator:
                without_controller = (kind for kind in unserved if self._is_defined(kind))
                yield from (
                    self._missing_controller(kind, tuple(custom_kinds[kind]))
                    for kind in without_controller
                )

    def _missing_operator(
        self, name: str, kinds: list[Kind], custom_kinds: dict[Kind, dict[Ref, None]]
    ) -> MissingDependency:
        return MissingDependency(
            cluster=self.cluster,
            type=DependencyType.OPERATOR,
            ref=Ref(NO_KIND, "", name),
            kinds=tuple(kinds),
            has_crds=any(kind in self.provided.defined_kinds for kind in kinds),
            needed_by=tuple(dict.fromkeys(ref for kind in kinds for ref in custom_kinds[kind])),
        )

    def _missing_kind(self, kind: Kind, needed_by: tuple[Ref, ...]) -> MissingDependency:
        return MissingDependency(
            cluster=self.cluster,
            type=DependencyType.KIND,
            ref=Ref(kind, "", ""),
            kinds=(kind,),
            cluster_wide=self._is_cluster_scoped(kind),
            is_served=self._has_workload_for(kind),
            has_unknown_health=self.catalog.find_row(kind) is None,
            needed_by=needed_by,
        )

    def _missing_controller(self, kind: Kind, needed_by: tuple[Ref, ...]) -> MissingDependency:
        return MissingDependency(
            cluster=self.cluster,
            type=DependencyType.OPERATOR,
            ref=Ref(kind, "", ""),
            kinds=(kind,),
            cluster_wide=self._is_cluster_scoped(kind),
            has_crds=True,
            has_unknown_health=self.catalog.find_row(kind) is None,
            needed_by=needed_by,
        )

    def _operator_name(self, kind: Kind) -> str:
        """Return the name of the operator of a kind, or of the other kinds of its group, or "".

        Argo CD and Flux are left out: their work is simulated and they are not installed.
        """
        row = self.catalog.find_row(kind)
        rows = (
            [row]
            if row
            else [
                known_row
                for known_row in self.catalog.rows.values()
                if known_row.group == kind.group
            ]
        )
        names = {known_row.operator for known_row in rows if not known_row.foreign}
        operator = names.pop() if len(names) == 1 else ""
        return "" if operator and self._is_replaced_by_plan(self.operators[operator]) else operator

    def _is_replaced_by_plan(self, operator: Operator) -> bool:
        """Return whether the plan deploys one of the workloads of the operator itself."""
        workload_ids = (
            ("apps", str(workload.kind), operator.namespace, workload.name)
            for workload in operator.workloads
        )
        return any(workload_id in self.provided.identities for workload_id in workload_ids)

    def _is_installed_by(self, operator: str, kind: Kind) -> bool:
        row = self.catalog.find_row(kind)
        is_of_operator = (
            row is not None and row.operator == operator and kind.version in row.versions
        )
        return is_of_operator and not any(
            defined_kind.group == kind.group and defined_kind.name == kind.name
            for defined_kind in self.provided.defined_kinds
        )

    def _is_defined(self, kind: Kind) -> bool:
        served = self._served.get((kind.group, kind.name), ())
        return kind in self.provided.defined_kinds or any(
            served_kind.kind == kind for served_kind in served
        )

    def _is_defined_in_any_version(self, kind: Kind) -> bool:
        """Return whether the kind is defined in any version; a wrong version is another error."""
        group_kind = (kind.group, kind.name)
        defined_kinds = {
            (defined_kind.group, defined_kind.name) for defined_kind in self.provided.defined_kinds
        }
        return self._is_defined(kind) or group_kind in defined_kinds or group_kind in self._served

    def _has_operator(self, kind: Kind) -> bool:
        row = self.catalog.find_row(kind)
        return (row is not None and row.served_by.outside) or self._has_workload_for(kind)

    def _has_workload_for(self, kind: Kind) -> bool:
        return any(self.catalog.is_operator(workload, kind) for workload in self._workloads)

    def _is_cluster_scoped(self, kind: Kind) -> bool:
        """Return whether the kind is cluster-scoped, as far as it is known."""
        served = self._served.get((kind.group, kind.name), ())
        if served:
            return not served[0].namespaced
        row = self.catalog.find_row(kind)
        if row is not None:
            return kind.name in row.cluster_wide
        is_namespaced = (kind.group, kind.name) in self.provided.namespaced_kinds
        return not is_namespaced and CLUSTER_SCOPED_NAME.search(kind.name) is not None

    def _with_version(self, kind: Kind) -> Kind:
        """Return a kind without version in a version that is defined, used, served or known."""
        group_kind = (kind.group, kind.name)
        used = (ref.kind for ref, _ in self.provided.objects)
        served = (served_kind.kind for served_kind in self._served.get(group_kind, ()))
        defined = sorted(
            defined_kind
            for defined_kind in self.provided.defined_kinds
            if (defined_kind.group, defined_kind.name) == group_kind
        )
        row = self.catalog.find_row(kind)
        catalog_kinds = (
            Kind(*group_kind[:1], version, kind.name) for version in (row.versions if row else ())
        )
        candidates = (*defined, *used, *served, *catalog_kinds, Kind(kind.group, "v1", kind.name))
        return next(
            candidate for candidate in candidates if (candidate.group, candidate.name) == group_kind
        )


def _dependents(unmet_dependency: UnmetDependency) -> Iterator[Dependent]:
    """Yield the dependents that cannot work without the missing object.

    Dependencies of Argo CD and Flux themselves count only if they are decryption keys. A
    dependency on an operator counts even if its dependents become healthy without it.
    """
    is_custom = unmet_dependency.ref is not None and can_be_custom(unmet_dependency.ref.kind)
    for dependent in unmet_dependency.dependents:
        is_unit_resource = dependent.is_unit or (
            dependent.ref is not None and is_dialect_kind(dependent.ref.kind)
        )
        is_required = dependent.effect is not Effect.NONE or is_custom
        if DECRYPTION in dependent.field or (is_required and not is_unit_resource):
            yield dependent


def _has_valid_name(unmet_dependency: UnmetDependency) -> bool:
    """Return whether the name, namespace and kind are valid; a reference may be a typo."""
    ref = unmet_dependency.ref
    if ref is None:
        return False
    names = (ref.name, ref.namespace or "default", ref.kind.name.lower(), ref.kind.group or "core")
    return all(DNS_NAME.fullmatch(name) for name in names)
