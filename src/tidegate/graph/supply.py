"""Who brings what: objects of the repository, what is made of them, who serves a kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tidegate.graph.ground import GraphGround
from tidegate.knowledge.catalogue import SHORTEST, KnownRows, images_of
from tidegate.knowledge.naming import Body, KindName, Pods
from tidegate.knowledge.settings import has_open_keys, keys_of
from tidegate.model.graph import SpotKey
from tidegate.model.objects import Kind
from tidegate.model.operators import ServedBy
from tidegate.model.patterns import late
from tidegate.model.reading import mapping, mappings, text

SERVERS = frozenset({("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet")})
HOLDERS = frozenset({("", "Secret"), ("", "ConfigMap")})
DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
SERVICE, NAMESPACE = ("", "Service"), ("", "Namespace")
STORAGE_CLASS = ("storage.k8s.io", "StorageClass")
DEFAULT_CLASS = "(default)"
"""Stands for the class of those that name none."""
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_WORD = late(r"[a-z0-9]+")


class Supplier(NamedTuple):
    """A node that brings an object: it is it, or it makes it. `keys`: those it has, if known."""

    number: int
    is_made: bool
    keys: frozenset[str] | None = None


class Supply:
    """An index of suppliers. It is filled once, object by object, and then asked."""

    def __init__(self, ground: GraphGround) -> None:
        self._ground = ground
        self._objects: dict[SpotKey, list[Supplier]] = {}
        self._definitions: dict[tuple[str, str, str], list[int]] = {}
        self._pods: dict[tuple[str, str, str, str], dict[int, Body]] = {}
        self._servers: dict[str, list[tuple[int, Body]]] = {}
        self._bodies: dict[SpotKey, Body] = {}
        self._operators: dict[tuple[str, KindName], tuple[int, ...]] = {}
        self._hints: dict[str, dict[str, list[int]]] = {}
        self._selectors: dict[tuple[str, str, str], Body] = {}
        self._groups: dict[str, dict[str, None]] = {}

    def take(self, number: int, cluster: str, kind: Kind, body: Body, pods: Pods | None) -> None:
        """An object as it stands, and all that is made of it."""
        name = (kind.group, kind.name)
        metadata = mapping(body, "metadata")
        inside, called = text(metadata, "namespace"), text(metadata, "name")
        self._add(cluster, name, inside, called, Supplier(number, False, _keys(name, body)))
        self._note(number, cluster, name, inside, called, body)
        if pods is not None and not pods.row.later:
            for key, value in pods.labels.items():
                spot = (cluster, inside, key, str(value))
                self._pods.setdefault(spot, {})[number] = pods.labels
        for made in self._ground.naming.products_of(body, kind):
            self._take_made(number, cluster, made.body)

    def _note(
        self, number: int, cluster: str, name: KindName, inside: str, called: str, body: Body
    ) -> None:
        """What some kinds are asked for besides."""
        if name in HOLDERS:
            self._bodies[cluster, *name, inside, called] = body
        if name == SERVICE:
            self._selectors[cluster, inside, called] = mapping(body, "spec", "selector")
        if name == STORAGE_CLASS and _is_default(body):
            supplier = Supplier(number, False)
            self._add(cluster, STORAGE_CLASS, "", DEFAULT_CLASS, supplier)
        if name == DEFINITION:
            self._define(number, cluster, body)
        if name in SERVERS:
            self._servers.setdefault(cluster, []).append((number, body))

    def _take_made(self, number: int, cluster: str, body: Body) -> None:
        kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
        name = (kind.group, kind.name)
        metadata = mapping(body, "metadata")
        inside, called = text(metadata, "namespace"), text(metadata, "name")
        supplier = Supplier(number, True, _keys(name, body))
        self._add(cluster, name, inside, called, supplier)
        if name == DEFINITION:
            self._define(number, cluster, body)

    def take_unit(self, number: int, cluster: str, name: KindName, inside: str, own: str) -> None:
        """A unit stands for its own object, where nobody in the repository writes that."""
        spot = (cluster, *name, inside, own)
        if spot not in self._objects:
            self._objects[spot] = [Supplier(number, False)]

    def _add(self, cluster: str, name: KindName, inside: str, called: str, one: Supplier) -> None:
        home = "" if self._ground.is_wide(*name) else inside
        self._objects.setdefault((cluster, *name, home, called), []).append(one)
        self._groups.setdefault(name[1], {})[name[0]] = None

    def _define(self, number: int, cluster: str, body: Body) -> None:
        group, kind = text(body, "spec", "group"), text(body, "spec", "names", "kind")
        if group and kind:
            self._definitions.setdefault((cluster, group, kind), []).append(number)

    def find(
        self, cluster: str, group: str, kind: str, namespace: str, name: str
    ) -> list[Supplier]:
        """Those that bring an object; where it is in no namespace, one that is named is ignored."""
        home = "" if self._ground.is_wide(group, kind) else namespace
        found = self._objects.get((cluster, group, kind, home, name))
        if found is None and home:
            found = self._objects.get((cluster, group, kind, "", name))
        return found or []

    def body_of(self, cluster: str, kind: Kind, namespace: str, name: str) -> Body | None:
        """A Secret or a ConfigMap that stands in the repository."""
        return self._bodies.get((cluster, kind.group, kind.name, namespace, name))

    def definers(self, cluster: str, group: str, kind: str) -> list[int]:
        return self._definitions.get((cluster, group, kind), [])

    def behind(self, cluster: str, namespace: str, selector: Mapping[str, object]) -> list[int]:
        """The workloads whose pods have all these labels."""
        pairs = [(key, str(value)) for key, value in selector.items()]
        if not pairs:
            return []
        first = self._pods.get((cluster, namespace, *pairs[0]), {})
        return [
            number
            for number, labels in first.items()
            if all(str(labels.get(key)) == value for key, value in pairs)
        ]

    def is_own(
        self, cluster: str, service: tuple[str, str], namespace: str, labels: Mapping[str, object]
    ) -> bool:
        """Whether a Service leads to pods of these labels in this namespace."""
        selector = self._selectors.get((cluster, *service), {})
        return (
            bool(selector)
            and service[0] == namespace
            and all(labels.get(key) == value for key, value in selector.items())
        )

    def groups_with(self, kind: str, ground: GraphGround) -> list[str]:
        """The groups that have a kind of this name, those of the repository first."""
        served = (group for group, name in ground.served if name == kind)
        return list(dict.fromkeys((*self._groups.get(kind, ()), *served)))

    def servers_of(self, cluster: str, kind: Kind) -> tuple[int, ...]:
        """The workloads that are the operator of a kind."""
        key = (cluster, (kind.group, kind.name))
        if key not in self._operators:
            rows = self._ground.naming.rows
            self._operators[key] = tuple(
                number
                for number, body in self._likely(cluster, kind, rows)
                if rows.is_server(body, kind)
            )
        return self._operators[key]

    def _likely(self, cluster: str, kind: Kind, rows: KnownRows) -> Iterator[tuple[int, Body]]:
        """Workloads that say one of the words by which the operator is known.

        It is asked once for each kind; looking at each workload anew would cost their product.
        """
        index = self._hints.get(cluster)
        workloads = self._servers.get(cluster, [])
        if index is None:
            index = self._hints[cluster] = {}
            for at, (_, body) in enumerate(workloads):
                for word in _words_of(body):
                    index.setdefault(word, []).append(at)
        found = {at for word in _heard(kind, rows, index) for at in index[word]}
        return (workloads[at] for at in sorted(found))

    def has_service(self, cluster: str, namespace: str, name: str) -> bool:
        return (cluster, *SERVICE, namespace, name) in self._objects or self._ground.is_given(
            *SERVICE, namespace, name
        )

    def has_namespace(self, cluster: str, name: str) -> bool:
        return (cluster, *NAMESPACE, "", name) in self._objects or self._ground.is_given(
            *NAMESPACE, "", name
        )


def _is_default(storage_class: Body) -> bool:
    return mapping(storage_class, "metadata", "annotations").get(IS_DEFAULT) == "true"


def _keys(name: KindName, body: Body) -> frozenset[str] | None:
    """The keys of what holds some, and the ports of a Service; None where nobody knows them."""
    if name == SERVICE:
        return _ports(body)
    if name not in HOLDERS or has_open_keys(body):
        return None
    return frozenset(keys_of(body))


def _ports(service: Body) -> frozenset[str] | None:
    """A Service without an address of its own answers at whichever port its pods do."""
    spec = mapping(service, "spec")
    is_bare = spec.get("clusterIP") == "None" or spec.get("type") == "ExternalName"
    ports = mappings(spec, "ports")
    return None if is_bare or not ports else frozenset(str(one.get("port")) for one in ports)


def _words_of(workload: Body) -> set[str]:
    """The words in a workload's name, its images, and its labels."""
    said = [text(workload, "metadata", "name"), *images_of(workload)]
    for path in (("metadata",), ("spec", "template", "metadata")):
        said += [f"{value}" for value in mapping(workload, *path, "labels").values()]
    return {word for one in said for word in _pieces(one)}


def _heard(kind: Kind, rows: KnownRows, words: Iterable[str]) -> list[str]:
    """Those of the words of which the operator of a kind says at least one."""
    row = rows.row_of(kind)
    known = [row.served_by] if row is not None and row.served_by != ServedBy() else []
    known = known or [*rows.groups.get(kind.group, ())]
    if known:
        wanted = _said_of(known)
        return [word for word in words if word in wanted]
    # A guess goes by parts of words, as `speaks_for` does.
    parts = [one for one in _pieces(f"{kind.group} {kind.name}") if len(one) >= SHORTEST]
    return [word for word in words if any(part in word for part in parts)]


def _said_of(served_by: Iterable[ServedBy]) -> set[str]:
    found: set[str] = set()
    for one in served_by:
        for text_ in (*one.images, *one.names, *(v for set_ in one.labels for v in set_.values())):
            found |= set(_pieces(text_))
    return found


def _pieces(said: str) -> list[str]:
    return _WORD.findall(said.lower())
