"""Why an object that no unit deploys may exist anyway."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property, lru_cache

from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.dependencies import dependency_index
from tidegate.lint.names import object_name
from tidegate.lint.pods import pod_template
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Ref, versionless_key
from tidegate.model.plans.graph import DEFAULT_CLASS
from tidegate.model.units.source import ChartSource
from tidegate.model.units.unit import Unit, UnitId
from tidegate.schema.builtin import served_kinds

NAMESPACED_KINDS = frozenset(
    {
        *("ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim", "Service"),
        *("Deployment", "StatefulSet"),
    }
)
"""Kinds that a chart usually creates only in the namespace of its release."""
DATA_KINDS = frozenset({"ConfigMap", "Secret"})
"""Kinds that Jobs and operators create while they run."""
RBAC = "rbac.authorization.k8s.io"
CREATING_VERBS = frozenset({"create", "patch", "*"})
DATA_RESOURCES = frozenset({"configmaps", "secrets", "*"})
CSI_GROUP = "secrets-store.csi.x-k8s.io"
COPY_ANNOTATIONS = ("reflector.", "replicator.", "kubed.", "kyverno.io/", "sync-to-")
"""Parts of annotations with which a controller copies an object to other namespaces."""
SECRET_STORE_KINDS = frozenset(
    {"SecretStore", "ClusterSecretStore", "VaultAuth", "VaultConnection"}
)
SYSTEM_NAMESPACES = ("kube-", "openshift")
MIN_MANUAL_SECRETS = 3
"""Minimum number of missing Secrets for which a repository seems to have none on purpose."""


class OutsideSources:
    """Sources of objects outside of what is known about a repository."""

    def __init__(self, context: LintContext) -> None:
        self.context = context

    def reason(self, cluster: str, ref: Ref, units: Collection[Unit]) -> str:
        """Return why an object may exist; empty if the repository is complete enough to know.

        `units`: those that need it.
        """
        return (
            self.context.partial_reason
            or self._other_tree(ref)
            or self._unknown_unit(cluster, ref)
            or self._creator(cluster, ref)
            or self._other_owner(cluster, ref, units)
            or self._convention(ref)
            or self._trust_root(ref, units)
            or self.mention(ref)
        )

    def _other_tree(self, ref: Ref) -> str:
        """Return whether an alternative to the units deploys the object."""
        if versionless_key(ref) in self.context.other_trees.objects:
            return "another root of this repository deploys it"
        return ""

    def _unknown_unit(self, cluster: str, ref: Ref) -> str:
        """Return the units whose objects are not all known, and that may deploy the object."""
        incomplete = (
            *(unit for unit in self._incomplete_units if unit.destination.cluster == cluster),
            *self.context.other_trees.incomplete_units,
        )
        units = [unit for unit in incomplete if _may_deploy(unit, ref)]
        related = [
            unit
            for unit in units
            if unit.destination.namespace == ref.namespace != "" or unit.id.name in ref.name
        ]
        if not units:
            return ""
        example = f"for example of `{(related or units)[0].id}`"
        return f"some objects of this repository are not known, {example}"

    @cached_property
    def _incomplete_units(self) -> list[Unit]:
        context = self.context
        incomplete = sorted(context.units.keys() - context.complete_units)
        return [context.units[unit_id] for unit_id in incomplete]

    def _creator(self, cluster: str, ref: Ref) -> str:
        """Return an object whose controller, pods or copies may create the object."""
        if ref.kind.name not in DATA_KINDS | {"Service", "PersistentVolumeClaim"}:
            return ""
        for obj in self._creators.get((cluster, ref.namespace), ()):
            if ref.kind.name in DATA_KINDS or not obj.is_kind("batch", "Job", "CronJob"):
                return f"{object_name(obj.ref)} may create it"
        for provider_class in self.context.objects_of_kind(CSI_GROUP, "SecretProviderClass"):
            names = {
                get_text(entry, "secretName")
                for entry in get_mappings(provider_class.body, "spec", "secretObjects")
            }
            if ref.name in names and provider_class.ref.namespace == ref.namespace:
                return f"{object_name(provider_class.ref)} creates it when a pod mounts it"
        for original in self._by_name.get((cluster, ref.kind.name, ref.name), ()):
            if _is_copied(original):
                return f"a controller may copy {object_name(original.ref)}"
        return ""

    def is_named_after_owner(self, cluster: str, ref: Ref) -> bool:
        """Return whether the name of an object begins with that of a custom resource beside it.

        Operators name what they create after the custom resource: `web-predictor` for `web`.
        """
        return any(
            ref.name.startswith(f"{obj.ref.name}-") and not obj.is_kind("batch", "Job", "CronJob")
            for obj in self._creators.get((cluster, ref.namespace), ())
        )

    @cached_property
    def _creators(self) -> dict[tuple[str, str], list[LintObject]]:
        """Objects of unknown kinds, and Jobs that may create data, by cluster and namespace."""
        served = {(kind.kind.group, kind.kind.name) for kind in served_kinds()}
        creators: dict[tuple[str, str], list[LintObject]] = {}
        for obj in self.context.objects:
            kind = obj.ref.kind
            is_custom = (kind.group, kind.name) not in served
            is_unknown = is_custom and self.context.catalog.find_row(kind) is None
            if is_unknown or self._may_write(obj):
                namespace_key = (obj.unit.destination.cluster, obj.ref.namespace)
                creators.setdefault(namespace_key, []).append(obj)
        return creators

    def _may_write(self, obj: LintObject) -> bool:
        """Return whether a Job has an account to which a binding gives permission to create data.

        Without a binding an account may create nothing (Kubernetes, RBAC authorizer).
        """
        if not obj.is_kind("batch", "Job", "CronJob"):
            return False
        account = get_text(pod_template(obj), "spec", "serviceAccountName") or "default"
        return (obj.unit.destination.cluster, obj.ref.namespace, account) in self._writers

    @cached_property
    def _writers(self) -> frozenset[tuple[str, str, str]]:
        """The accounts that may create ConfigMaps or Secrets, by cluster and namespace."""
        writers: set[tuple[str, str, str]] = set()
        for binding in self.context.objects_of_kind(RBAC, "RoleBinding", "ClusterRoleBinding"):
            if not self._permits_writing(binding):
                continue
            for subject in get_mappings(binding.body, "subjects"):
                namespace = get_text(subject, "namespace") or binding.ref.namespace
                cluster = binding.unit.destination.cluster
                writers.add((cluster, namespace, get_text(subject, "name")))
        return frozenset(writers)

    def _permits_writing(self, binding: LintObject) -> bool:
        """Return whether the role of a binding permits to create data, or is not known."""
        kind, name = (get_text(binding.body, "roleRef", key) for key in ("kind", "name"))
        namespace = binding.ref.namespace if kind == "Role" else ""
        cluster = binding.unit.destination.cluster
        roles = self.context.by_identity.get((cluster, RBAC, kind, namespace, name), [])
        rules = [rule for role in roles for rule in get_mappings(role.body, "rules")]
        return not rules or any(
            not CREATING_VERBS.isdisjoint(map(str, get_list(rule, "verbs")))
            and not DATA_RESOURCES.isdisjoint(map(str, get_list(rule, "resources")))
            for rule in rules
        )

    @cached_property
    def _by_name(self) -> dict[tuple[str, str, str], list[LintObject]]:
        by_name: dict[tuple[str, str, str], list[LintObject]] = {}
        for obj in self.context.objects:
            if obj.ref.kind.name in DATA_KINDS:
                key = (obj.unit.destination.cluster, obj.ref.kind.name, obj.ref.name)
                by_name.setdefault(key, []).append(obj)
        return by_name

    def _other_owner(self, cluster: str, ref: Ref, units: Collection[Unit]) -> str:
        """Return why others may deploy the object, or other objects into its namespace."""
        namespace, is_plain = ref.namespace, all(not unit.id.kind for unit in units)
        if is_plain and ref.kind.name == "Namespace":
            return "no unit of Argo CD or Flux deploys these files"
        if not namespace or namespace == "default":
            return ""
        if namespace in self._engine_namespaces:
            return f"Argo CD or Flux may deploy it to its namespace `{namespace}`"
        if (cluster, namespace) in self._namespaces:
            return ""
        if namespace.startswith(SYSTEM_NAMESPACES):
            return f"the cluster deploys objects to namespace `{namespace}`"
        if is_plain:
            return ""
        return f"namespace `{namespace}` is not created by this repository"

    @cached_property
    def _engine_namespaces(self) -> frozenset[str]:
        """The namespaces of root units, in which Argo CD or Flux run."""
        units = self.context.units.values()
        return frozenset(
            unit.id.namespace
            for unit in units
            if unit.id.kind and (unit.parent is None or not unit.parent.kind)
        )

    @cached_property
    def _namespaces(self) -> frozenset[tuple[str, str]]:
        """The namespaces that the repository creates, by cluster."""
        declared = (
            (obj.unit.destination.cluster, obj.ref.name)
            for obj in self.context.objects_of_kind("", "Namespace")
        )
        created = (
            (unit.destination.cluster, unit.destination.namespace)
            for unit in self.context.units.values()
            if unit.policy.create_namespace
        )
        return frozenset({*declared, *created})

    def _convention(self, ref: Ref) -> str:
        """Return why a repository without such objects seems to get them from elsewhere."""
        kind = ref.kind
        if ref.name == DEFAULT_CLASS:
            return f"most clusters have a default {kind.name}"
        if kind.name == "Namespace":
            return ""  # Argo CD and Flux do not create namespaces by themselves
        has_kind = any(key[1:3] == (kind.group, kind.name) for key in self.context.provided)
        if kind.name == "Secret" and len(self._missing_secrets) >= MIN_MANUAL_SECRETS:
            provided = {key for key in self.context.provided if key[1:3] == ("", "Secret")}
            if len(provided) < len(self._missing_secrets):
                return "most Secrets of this repository are created elsewhere"
        if has_kind or (kind.group, kind.name) in self._namespaced_kinds:
            return ""
        return f"this repository deploys no {kind.name}"

    def lacks_namespaces(self, ref: Ref) -> bool:
        """Return whether an object is a namespace, and the repository creates none."""
        return ref.kind.name == "Namespace" and not self._namespaces

    def _trust_root(self, ref: Ref, units: Iterable[Unit]) -> str:
        """Return why a Secret is created by hand: it gives access to all other secrets."""
        is_needed = any(unit.id in self._store_units for unit in units)
        if ref.kind.name != "Secret" or not is_needed:
            return ""
        return "the access to a secret store is usually created by hand"

    @cached_property
    def _store_units(self) -> frozenset[UnitId]:
        """The units with secret stores, and with what secret stores need."""
        index = dependency_index(self.context)
        units: set[UnitId] = set()
        for edge in self.context.graph.edges:
            obj, provider = index.objects.get(edge.after), index.objects.get(edge.before)
            if obj is not None and obj.ref.kind.name in SECRET_STORE_KINDS:
                units |= {item.unit.id for item in (obj, provider) if item is not None}
        return frozenset(units)

    @cached_property
    def _namespaced_kinds(self) -> frozenset[tuple[str, str]]:
        """The namespaced kinds of Kubernetes itself, which belong to applications."""
        served = (kind for kind in served_kinds() if kind.namespaced)
        return frozenset((kind.kind.group, kind.kind.name) for kind in served)

    @cached_property
    def _missing_secrets(self) -> set[tuple[str, str, str]]:
        return {
            (unmet.cluster, unmet.ref.namespace, unmet.ref.name)
            for unmet in self.context.missing
            if unmet.ref is not None and unmet.ref.kind.name == "Secret" and not unmet.key
        }

    def mention(self, ref: Ref) -> str:
        """Return the file that creates the object, although no unit deploys it."""
        file = self.context.find_creating_file(ref)
        return f"`{file}` creates it, but no unit deploys this file" if file else ""


def _may_deploy(unit: Unit, ref: Ref) -> bool:
    """Return whether a unit with unknown objects may deploy an object.

    A chart creates objects of the application in the namespace of its release.
    """
    if ref.kind.name == "Namespace" and unit.id.namespace == ref.name:
        return False  # the unit itself needs the namespace
    rendered = (source for source in unit.sources if source.request is not None)
    is_chart = unit.id.kind == "HelmRelease" or all(
        isinstance(source.source, ChartSource) for source in rendered
    )
    namespace = unit.destination.namespace
    if not is_chart or not namespace:
        return True
    if ref.kind.name == "Namespace":
        return namespace == ref.name
    return ref.kind.name not in NAMESPACED_KINDS or namespace == ref.namespace


def _is_copied(obj: LintObject) -> bool:
    annotations = get_mapping(obj.body, "metadata", "annotations")
    labels = get_mapping(obj.body, "metadata", "labels")
    return any(part in key for key in (*annotations, *labels) for part in COPY_ANNOTATIONS)


@lru_cache(maxsize=2)
def outside_sources(context: LintContext) -> OutsideSources:
    """Return the outside sources of a context; consecutive rules share them."""
    return OutsideSources(context)
