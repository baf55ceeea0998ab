"""Which kinds a cluster serves: Kubernetes' own and those of its CRDs; and how it refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

import msgspec

from tidegate.model.objects import Kind, Served
from tidegate.model.reading import mapping, mappings, text
from tidegate.sandbox.kinds import COUNTED
from tidegate.sandbox.server.store import Body, Resource
from tidegate.schema.builtin import served_kinds, shape_of
from tidegate.schema.shape import ANY, Shape
from tidegate.world.facts import Cause, Conflict, Invalid, Missing, NotServed, Refusal

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class KindEntry(msgspec.Struct, frozen=True):
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
def _builtin() -> dict[Kind, KindEntry]:
    return {
        served.kind: KindEntry(
            served, shape_of(served.kind) or ANY, Resource(served.kind.group, served.plural)
        )
        for served in reversed(_kept_kinds())
    }


class Register:
    """The kinds of one cluster."""

    def __init__(self) -> None:
        self._builtin = _builtin()
        self._custom: dict[Kind, KindEntry] = {}

    def find(self, kind: Kind) -> KindEntry | None:
        return self._builtin.get(kind) or self._custom.get(kind)

    def served(self, kind: Kind) -> KindEntry:
        """The entry of a kind that must be served."""
        entry = self.find(kind)
        if entry is None:
            raise RefusedCall(NotServed(f"the server does not serve {kind}"))
        return entry

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
    return Resource(text(definition, "spec", "group"), text(definition, "spec", "names", "plural"))


def served_versions(definition: Body) -> Iterator[tuple[Kind, Body]]:
    """The versions of a CRD that are served: the kind in each, and what it says of the version."""
    spec = mapping(definition, "spec")
    for version in mappings(spec, "versions"):
        if version.get("served"):
            yield (
                Kind(text(spec, "group"), text(version, "name"), text(spec, "names", "kind")),
                version,
            )


def _entries(definition: Body, shapes: dict[str, Shape]) -> Iterator[KindEntry]:
    resource = resource_of(definition)
    for kind, version in served_versions(definition):
        served = Served(
            kind=kind,
            plural=resource.plural,
            namespaced=text(definition, "spec", "scope") == "Namespaced",
            verbs=VERBS,
            subresources=tuple(sorted(mapping(version, "subresources"))),
        )
        yield KindEntry(served, shapes.get(kind.version, ANY), resource, is_custom=True)


class RefusedCall(Exception):  # noqa: N818 - it is an answer, not an error
    """Raised where the reason is known, answered where the request came in."""

    def __init__(self, outcome: Refusal) -> None:
        super().__init__(outcome)
        self.outcome = outcome


def missing(entry: KindEntry, name: str) -> RefusedCall:
    return RefusedCall(Missing(f'{entry.title} "{name}" not found'))


def invalid(entry: KindEntry, name: str, causes: Iterable[Cause]) -> RefusedCall:
    sorted_causes = tuple(sorted(causes))
    told = ", ".join(f"{cause.field}: {cause.message}" for cause in sorted_causes)
    shown = f"[{told}]" if len(sorted_causes) > 1 else told
    title = f"{entry.kind.name}.{entry.kind.group}".rstrip(".")
    return RefusedCall(Invalid(f'{title} "{name}" is invalid: {shown}', sorted_causes))


def stale(entry: KindEntry, name: str, why: str) -> RefusedCall:
    return RefusedCall(Conflict(f'Operation cannot be fulfilled on {entry.title} "{name}": {why}'))
