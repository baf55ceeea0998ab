"""Registry of the kinds that a cluster serves, built-in and custom, and errors for requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

import msgspec

from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject, Kind, ServedKind
from tidegate.sandbox.kinds import GENERATION_RESOURCES
from tidegate.sandbox.server.store import GroupResource
from tidegate.schema.builtin import find_shape, served_kinds
from tidegate.schema.shape import ANY, Shape
from tidegate.world.messages import Cause, Conflict, ErrorOutcome, Invalid, NotFound, NotServed

CUSTOM_RESOURCE_VERBS = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)


class KindEntry(msgspec.Struct, frozen=True):
    """A kind that the server serves."""

    served: ServedKind
    """The kind as discovery lists it."""
    shape: Shape
    """The schema."""
    resource: GroupResource
    """The resource under which objects are stored."""
    is_custom: bool = False
    """Whether a CRD defines the kind."""

    @property
    def kind(self) -> Kind:
        """The kind."""
        return self.served.kind

    @property
    def has_generation(self) -> bool:
        """Whether objects have a `metadata.generation`."""
        return self.is_custom or self.resource in GENERATION_RESOURCES

    @property
    def has_status(self) -> bool:
        """Whether the kind has a `status` subresource."""
        return "status" in self.served.subresources

    @property
    def group_resource(self) -> str:
        """The resource as server messages name it: `deployments.apps`."""
        return f"{self.resource.plural}.{self.resource.group}".rstrip(".")


@cache
def _object_kinds() -> tuple[ServedKind, ...]:
    """Return the built-in kinds that are stored as objects.

    Reviews and bindings are not: this server does not answer them.
    """
    return tuple(served for served in served_kinds() if "get" in served.verbs)


@cache
def _builtin_entries() -> dict[Kind, KindEntry]:
    return {
        served.kind: KindEntry(
            served, find_shape(served.kind) or ANY, GroupResource(served.kind.group, served.plural)
        )
        for served in reversed(_object_kinds())
    }


class KindRegistry:
    """The kinds of one cluster."""

    def __init__(self) -> None:
        self._builtin_kinds = _builtin_entries()
        self._custom_kinds: dict[Kind, KindEntry] = {}

    def find(self, kind: Kind) -> KindEntry | None:
        """Return the entry of a kind, or None if it is not served."""
        return self._builtin_kinds.get(kind) or self._custom_kinds.get(kind)

    def get_served(self, kind: Kind) -> KindEntry:
        """Return the entry of a kind. Raises StatusError if it is not served."""
        entry = self.find(kind)
        if entry is None:
            raise StatusError(NotServed(f"the server does not serve {kind}"))
        return entry

    def list_kinds(self) -> tuple[ServedKind, ...]:
        """Return all served kinds."""
        return (*_object_kinds(), *(entry.served for entry in self._custom_kinds.values()))

    def add_crd(self, crd: JsonObject, shapes: dict[str, Shape]) -> None:
        """Serve the versions of a CRD."""
        self.remove_crd(crd)
        for entry in _entries_from_crd(crd, shapes):
            self._custom_kinds[entry.kind] = entry

    def remove_crd(self, crd: JsonObject) -> GroupResource:
        """Stop serving the versions of a CRD; return its resource."""
        resource = resource_from_crd(crd)
        self._custom_kinds = {
            kind: entry for kind, entry in self._custom_kinds.items() if entry.resource != resource
        }
        return resource


def resource_from_crd(crd: JsonObject) -> GroupResource:
    """Return the resource that a CRD defines."""
    return GroupResource(get_text(crd, "spec", "group"), get_text(crd, "spec", "names", "plural"))


def list_served_versions(crd: JsonObject) -> Iterator[tuple[Kind, JsonObject]]:
    """Yield the served versions of a CRD: the kind, and its entry in `spec.versions`."""
    spec = get_mapping(crd, "spec")
    for version in get_mappings(spec, "versions"):
        if version.get("served"):
            yield (
                Kind(
                    get_text(spec, "group"),
                    get_text(version, "name"),
                    get_text(spec, "names", "kind"),
                ),
                version,
            )


def _entries_from_crd(crd: JsonObject, shapes: dict[str, Shape]) -> Iterator[KindEntry]:
    resource = resource_from_crd(crd)
    for kind, version in list_served_versions(crd):
        served = ServedKind(
            kind=kind,
            plural=resource.plural,
            namespaced=get_text(crd, "spec", "scope") == "Namespaced",
            verbs=CUSTOM_RESOURCE_VERBS,
            subresources=tuple(sorted(get_mapping(version, "subresources"))),
        )
        yield KindEntry(served, shapes.get(kind.version, ANY), resource, is_custom=True)


class StatusError(Exception):
    """An error outcome of a request.

    Raised where the request fails, and turned into the response of the request.

    Like `StatusError` in `pkg/api/errors/errors.go` of k8s.io/apimachinery 0.36.4.
    """

    def __init__(self, outcome: ErrorOutcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


def not_found_error(entry: KindEntry, name: str) -> StatusError:
    """Return the error for an object that does not exist.

    Like `NewNotFound` in `pkg/api/errors/errors.go` of k8s.io/apimachinery 0.36.4.
    """
    return StatusError(NotFound(f'{entry.group_resource} "{name}" not found'))


def invalid_error(entry: KindEntry, name: str, causes: Iterable[Cause]) -> StatusError:
    """Return the error for an object with invalid fields.

    Like `NewInvalid` in `pkg/api/errors/errors.go` of k8s.io/apimachinery 0.36.4.
    """
    sorted_causes = tuple(sorted(causes))
    details = ", ".join(f"{cause.field}: {cause.message}" for cause in sorted_causes)
    summary = f"[{details}]" if len(sorted_causes) > 1 else details
    group_kind = f"{entry.kind.name}.{entry.kind.group}".rstrip(".")
    return StatusError(Invalid(f'{group_kind} "{name}" is invalid: {summary}', sorted_causes))


def conflict_error(entry: KindEntry, name: str, reason: str) -> StatusError:
    """Return the error for a write that is based on another version of the object.

    Like `NewConflict` in `pkg/api/errors/errors.go` of k8s.io/apimachinery 0.36.4.
    """
    return StatusError(
        Conflict(f'Operation cannot be fulfilled on {entry.group_resource} "{name}": {reason}')
    )
