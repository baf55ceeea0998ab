"""Which kinds a cluster serves: those that Kubernetes brings, and those of its CRDs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tidegate.model.objects import Kind, Served
from tidegate.model.reading import mapping
from tidegate.sandbox.server.store import Body, Resource
from tidegate.schema.builtin import served_kinds, shape_of
from tidegate.schema.shape import ANY, Shape

DEFINITIONS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")

COUNTED = frozenset(
    {
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
        ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("apps", "daemonsets"),
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("batch", "cronjobs"),
        ("batch", "jobs"),
        ("", "pods"),
        ("", "podtemplates"),
        ("", "replicationcontrollers"),
        ("discovery.k8s.io", "endpointslices"),
        ("flowcontrol.apiserver.k8s.io", "flowschemas"),
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
        ("networking.k8s.io", "ingresses"),
        ("networking.k8s.io", "ingressclasses"),
        ("networking.k8s.io", "networkpolicies"),
        ("policy", "poddisruptionbudgets"),
        ("resource.k8s.io", "deviceclasses"),
        ("resource.k8s.io", "resourceslices"),
        ("scheduling.k8s.io", "priorityclasses"),
    }
)
"""Built-in kinds whose specs are counted by `metadata.generation`; custom ones all are."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A kind as the server deals with it."""

    served: Served
    shape: Shape
    resource: Resource
    is_custom: bool = False

    @property
    def kind(self) -> Kind:
        return self.served.kind

    @property
    def is_counted(self) -> bool:
        return self.is_custom or self.resource in COUNTED

    @property
    def has_status(self) -> bool:
        return "status" in self.served.subresources

    @property
    def title(self) -> str:
        """As messages name it: `deployments.apps`."""
        return f"{self.resource.plural}.{self.resource.group}".rstrip(".")


@cache
def _kept_kinds() -> tuple[Served, ...]:
    """Reviews and bindings are questions and deeds, and no objects: nobody answers them here."""
    return tuple(served for served in served_kinds() if "get" in served.verbs)


@cache
def _builtin() -> dict[Kind, Entry]:
    return {
        served.kind: Entry(
            served, shape_of(served.kind) or ANY, Resource(served.kind.group, served.plural)
        )
        for served in reversed(_kept_kinds())
    }


class Register:
    """The kinds of one cluster."""

    def __init__(self) -> None:
        self._builtin = _builtin()
        self._custom: dict[Kind, Entry] = {}

    def find(self, kind: Kind) -> Entry | None:
        return self._builtin.get(kind) or self._custom.get(kind)

    def kinds(self) -> tuple[Served, ...]:
        return (*_kept_kinds(), *(entry.served for entry in self._custom.values()))

    def learn(self, definition: Body, shapes: dict[str, Shape]) -> None:
        """Serve the versions of a CRD."""
        self.unlearn(definition)
        for entry in _entries(definition, shapes):
            self._custom[entry.kind] = entry

    def unlearn(self, definition: Body) -> Resource:
        """Serve a CRD's kinds no longer."""
        resource = resource_of(definition)
        self._custom = {
            kind: entry for kind, entry in self._custom.items() if entry.resource != resource
        }
        return resource


def resource_of(definition: Body) -> Resource:
    spec = mapping(definition.get("spec"))
    return Resource(str(spec.get("group")), str(mapping(spec.get("names")).get("plural")))


def _entries(definition: Body, shapes: dict[str, Shape]) -> Iterator[Entry]:
    spec = mapping(definition.get("spec"))
    names = mapping(spec.get("names"))
    versions = spec.get("versions")
    for version in versions if isinstance(versions, list) else []:
        one = mapping(version)
        if not one.get("served"):
            continue
        subresources = sorted(mapping(one.get("subresources")))
        served = Served(
            kind=Kind(str(spec.get("group")), str(one.get("name")), str(names.get("kind"))),
            plural=str(names.get("plural")),
            namespaced=spec.get("scope") == "Namespaced",
            verbs=(
                "create",
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "update",
                "watch",
            ),
            subresources=tuple(subresources),
        )
        shape = shapes.get(served.kind.version, ANY)
        yield Entry(served, shape, resource_of(definition), is_custom=True)


def is_established(definition: Body) -> bool:
    """Whether a CRD's kinds are served."""
    conditions = mapping(definition.get("status")).get("conditions")
    return any(
        one.get("type") == "Established" and one.get("status") == "True"
        for one in (conditions if isinstance(conditions, list) else [])
        if isinstance(one, dict)
    )
