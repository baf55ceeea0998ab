"""Index of providers: objects of the repository, the objects they create, and operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tidegate.graph.inputs import GraphInputs
from tidegate.knowledge.catalog import MIN_WORD_LENGTH, KindCatalog, list_images
from tidegate.knowledge.named_objects import KindName, PodTemplate
from tidegate.knowledge.settings import get_data, has_open_keys
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, object_kind
from tidegate.model.k8s.objects import JsonObject, Kind
from tidegate.model.operators.rows import WorkloadSelector
from tidegate.model.plans.graph import DEFAULT_CLASS, ObjectKey
from tidegate.model.text.lazy_regex import lazy_regex

WORKLOAD_KINDS = frozenset({("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet")})
SECRET_KIND = ("", "Secret")
KEYED_KINDS = frozenset({SECRET_KIND, ("", "ConfigMap")})
TOKEN_SECRET_TYPE = "kubernetes.io/service-account-token"  # noqa: S105 - it is a type
TOKEN_KEYS = ("token", "ca.crt", "namespace")
"""What `tokens_controller.go` of kube-controller-manager 1.36 adds to a Secret of this type."""
CRD_KIND = ("apiextensions.k8s.io", "CustomResourceDefinition")
SERVICE_KIND, NAMESPACE_KIND = ("", "Service"), ("", "Namespace")
STORAGE_CLASS_KIND = ("storage.k8s.io", "StorageClass")
DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
_WORD = lazy_regex(r"[a-z0-9]+")


class Provider(NamedTuple):
    """A node that provides an object."""

    number: int
    is_indirect: bool
    """Whether the node creates the object, instead of being it."""
    keys: frozenset[str] | None = None
    """The keys of the object, or None if unknown."""


class ProviderIndex:
    """Index of providers. It is filled object by object before the first lookup."""

    def __init__(self, inputs: GraphInputs) -> None:
        self._inputs = inputs
        self._objects: dict[ObjectKey, list[Provider]] = {}
        self._crds: dict[tuple[str, str, str], list[int]] = {}
        self._pods: dict[tuple[str, str, str, str], dict[int, JsonObject]] = {}
        self._workloads: dict[str, list[tuple[int, JsonObject]]] = {}
        self._bodies: dict[ObjectKey, JsonObject] = {}
        self._operators: dict[tuple[str, KindName], tuple[int, ...]] = {}
        self._words: dict[str, dict[str, list[int]]] = {}
        self._selectors: dict[tuple[str, str, str], JsonObject] = {}
        self._groups: dict[str, dict[str, None]] = {}

    def add_object(
        self, number: int, cluster: str, kind: Kind, body: JsonObject, pods: PodTemplate | None
    ) -> None:
        """Add an object, and all objects that are created from it."""
        kind_key = (kind.group, kind.name)
        metadata = get_mapping(body, "metadata")
        namespace, name = get_text(metadata, "namespace"), get_text(metadata, "name")
        self._add(
            cluster, kind_key, namespace, name, Provider(number, False, _known_keys(kind_key, body))
        )
        self._add_details(number, cluster, kind_key, namespace, name, body)
        if pods is not None and not pods.row.later:
            for key, value in pods.labels.items():
                label_key = (cluster, namespace, key, str(value))
                self._pods.setdefault(label_key, {})[number] = pods.labels
        for product in self._inputs.references.list_products(body, kind):
            self._add_created(number, cluster, product.body)

    def _add_details(
        self,
        number: int,
        cluster: str,
        kind_key: KindName,
        namespace: str,
        name: str,
        body: JsonObject,
    ) -> None:
        """Add the details of an object that its kind requires."""
        if kind_key in KEYED_KINDS:
            self._bodies[cluster, *kind_key, namespace, name] = body
        if kind_key == SERVICE_KIND:
            self._selectors[cluster, namespace, name] = get_mapping(body, "spec", "selector")
        if kind_key == STORAGE_CLASS_KIND and _is_default(body):
            provider = Provider(number, False)
            self._add(cluster, STORAGE_CLASS_KIND, "", DEFAULT_CLASS, provider)
        if kind_key == CRD_KIND:
            self._add_crd(number, cluster, body)
        if kind_key in WORKLOAD_KINDS:
            self._workloads.setdefault(cluster, []).append((number, body))

    def _add_created(self, number: int, cluster: str, body: JsonObject) -> None:
        kind = object_kind(body)
        kind_key = (kind.group, kind.name)
        metadata = get_mapping(body, "metadata")
        namespace, name = get_text(metadata, "namespace"), get_text(metadata, "name")
        provider = Provider(number, True, _known_keys(kind_key, body))
        self._add(cluster, kind_key, namespace, name, provider)
        if kind_key == CRD_KIND:
            self._add_crd(number, cluster, body)

    def add_unit(
        self, number: int, cluster: str, kind_key: KindName, namespace: str, name: str
    ) -> None:
        """Add a unit as the provider of its unit resource, if no unit of the repository has it."""
        object_key = (cluster, *kind_key, namespace, name)
        if object_key not in self._objects:
            self._objects[object_key] = [Provider(number, False)]

    def _add(
        self, cluster: str, kind_key: KindName, namespace: str, name: str, provider: Provider
    ) -> None:
        key_namespace = "" if self._inputs.is_cluster_scoped(*kind_key) else namespace
        self._objects.setdefault((cluster, *kind_key, key_namespace, name), []).append(provider)
        self._groups.setdefault(kind_key[1], {})[kind_key[0]] = None

    def _add_crd(self, number: int, cluster: str, body: JsonObject) -> None:
        group, kind = get_text(body, "spec", "group"), get_text(body, "spec", "names", "kind")
        if group and kind:
            self._crds.setdefault((cluster, group, kind), []).append(number)

    def find(
        self, cluster: str, group: str, kind: str, namespace: str, name: str
    ) -> list[Provider]:
        """Return the providers of an object. The namespace of a cluster-scoped kind is ignored."""
        key_namespace = "" if self._inputs.is_cluster_scoped(group, kind) else namespace
        providers = self._objects.get((cluster, group, kind, key_namespace, name))
        if providers is None and key_namespace:
            providers = self._objects.get((cluster, group, kind, "", name))
        return providers or []

    def find_body(self, cluster: str, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """Return a Secret or ConfigMap of the repository, or None."""
        return self._bodies.get((cluster, kind.group, kind.name, namespace, name))

    def find_crds(self, cluster: str, group: str, kind: str) -> list[int]:
        return self._crds.get((cluster, group, kind), [])

    def find_workloads(
        self, cluster: str, namespace: str, selector: Mapping[str, object]
    ) -> list[int]:
        """Return the workloads whose pods have all these labels."""
        pairs = [(key, str(value)) for key, value in selector.items()]
        if not pairs:
            return []
        candidates = self._pods.get((cluster, namespace, *pairs[0]), {})
        return [
            number
            for number, labels in candidates.items()
            if all(str(labels.get(key)) == value for key, value in pairs)
        ]

    def selects_pods(
        self, cluster: str, service: tuple[str, str], namespace: str, labels: Mapping[str, object]
    ) -> bool:
        """Return whether a Service selects pods with these labels in this namespace."""
        selector = self._selectors.get((cluster, *service), {})
        return (
            bool(selector)
            and service[0] == namespace
            and all(labels.get(key) == value for key, value in selector.items())
        )

    def find_groups(self, kind: str, inputs: GraphInputs) -> list[str]:
        """Return the groups with a kind of this name, those of the repository first."""
        served = (group for group, name in inputs.served_kinds if name == kind)
        return list(dict.fromkeys((*self._groups.get(kind, ()), *served)))

    def find_operators(self, cluster: str, kind: Kind) -> tuple[int, ...]:
        """Return the workloads that are the operator of a kind."""
        key = (cluster, (kind.group, kind.name))
        if key not in self._operators:
            rows = self._inputs.references.rows
            self._operators[key] = tuple(
                number
                for number, body in self._candidate_workloads(cluster, kind, rows)
                if rows.is_operator(body, kind)
            )
        return self._operators[key]

    def _candidate_workloads(
        self, cluster: str, kind: Kind, rows: KindCatalog
    ) -> Iterator[tuple[int, JsonObject]]:
        """Yield the workloads that contain a word of the operator of a kind.

        Each kind is looked up once. Without the index, the cost would be kinds times workloads.
        """
        index = self._words.get(cluster)
        workloads = self._workloads.get(cluster, [])
        if index is None:
            index = self._words[cluster] = {}
            for position, (_, body) in enumerate(workloads):
                for word in _workload_words(body):
                    index.setdefault(word, []).append(position)
        positions = {
            position for word in _matching_words(kind, rows, index) for position in index[word]
        }
        return (workloads[position] for position in sorted(positions))

    def has_service(self, cluster: str, namespace: str, name: str) -> bool:
        return (
            cluster,
            *SERVICE_KIND,
            namespace,
            name,
        ) in self._objects or self._inputs.is_preinstalled(*SERVICE_KIND, namespace, name)

    def has_namespace(self, cluster: str, name: str) -> bool:
        return (
            cluster,
            *NAMESPACE_KIND,
            "",
            name,
        ) in self._objects or self._inputs.is_preinstalled(*NAMESPACE_KIND, "", name)


def _is_default(storage_class: JsonObject) -> bool:
    return (
        get_mapping(storage_class, "metadata", "annotations").get(DEFAULT_CLASS_ANNOTATION)
        == "true"
    )


def _known_keys(kind_key: KindName, body: JsonObject) -> frozenset[str] | None:
    """Return the keys of a Secret or ConfigMap, or the ports of a Service; None if unknown."""
    if kind_key == SERVICE_KIND:
        return _service_ports(body)
    if kind_key not in KEYED_KINDS or has_open_keys(body):
        return None
    is_token = kind_key == SECRET_KIND and body.get("type") == TOKEN_SECRET_TYPE
    return frozenset((*get_data(body), *(TOKEN_KEYS if is_token else ())))


def _service_ports(service: JsonObject) -> frozenset[str] | None:
    """Return the numbers and names of the ports of a Service.

    None if clients can use every port of its pods.
    """
    spec = get_mapping(service, "spec")
    has_open_ports = spec.get("clusterIP") == "None" or spec.get("type") == "ExternalName"
    ports = get_mappings(spec, "ports")
    if has_open_ports or not ports:
        return None
    return frozenset(str(port[key]) for port in ports for key in ("port", "name") if key in port)


def _workload_words(workload: JsonObject) -> set[str]:
    """Return the words in the name, images and labels of a workload."""
    texts = [get_text(workload, "metadata", "name"), *list_images(workload)]
    for path in (("metadata",), ("spec", "template", "metadata")):
        texts += [f"{value}" for value in get_mapping(workload, *path, "labels").values()]
    return {word for source_text in texts for word in _split_words(source_text)}


def _matching_words(kind: Kind, rows: KindCatalog, words: Iterable[str]) -> list[str]:
    """Return the words of which the operator of a kind contains at least one."""
    row = rows.find_row(kind)
    selectors = [row.served_by] if row is not None and row.served_by != WorkloadSelector() else []
    selectors = selectors or [*rows.groups.get(kind.group, ())]
    if selectors:
        operator_words = _selector_words(selectors)
        return [word for word in words if word in operator_words]
    # A guess compares parts of words, like `looks_like_operator`.
    parts = [
        piece
        for piece in _split_words(f"{kind.group} {kind.name}")
        if len(piece) >= MIN_WORD_LENGTH
    ]
    return [word for word in words if any(part in word for part in parts)]


def _selector_words(served_by: Iterable[WorkloadSelector]) -> set[str]:
    words: set[str] = set()
    for selector in served_by:
        for value in (
            *selector.images,
            *selector.names,
            *(label for labels in selector.labels for label in labels.values()),
        ):
            words |= set(_split_words(value))
    return words


def _split_words(value: str) -> list[str]:
    return _WORD.findall(value.lower())
