"""Dependencies of a plan that neither the plan nor its cluster provides."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.errors import Location
from tidegate.model.display import join_limited
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.simulation.preinstalled import (
    format_kind_title,
)


class DependencyType(StrEnum):
    """The type of a missing dependency, in the order of reports."""

    OPERATOR = "operator"
    """No operator reconciles objects of these kinds. The name is the operator's, if known."""
    KIND = "kind"
    """No CRD defines the kind. The name is the kind's."""
    NAMESPACE = "namespace"
    OBJECT = "object"
    """An object of the platform: a class, an issuer, a gateway, a store."""
    SETTING = "setting"
    """An object of the application: a Secret, a ConfigMap, a ServiceAccount, a claim.

    Objects of a kind that the application defines belong here too.
    """
    SERVICE = "service"
    """A Service that pods call."""
    PART = "part"
    """A missing part of an existing object: a key, a port, ready pods."""
    TRUST_ROOT = "trust root"
    """A Secret that is created manually: a key, a token."""


NEVER_ASSUMED = frozenset(
    {DependencyType.SETTING, DependencyType.SERVICE, DependencyType.PART, DependencyType.TRUST_ROOT}
)
"""Types that are never assumed: the repository, or a person, must provide them."""


class MissingDependency(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """One missing dependency, and all objects that need it."""

    cluster: str
    type: DependencyType
    ref: Ref
    kinds: tuple[Kind, ...] = ()
    """Of an operator, the kinds that it would serve."""
    cluster_wide: bool = False
    """Of a kind, whether its objects are assumed to be cluster-scoped."""
    has_crds: bool = False
    """Of an operator, whether the plan contains its CRDs."""
    is_served: bool = False
    """Of a kind, whether an operator reconciles its objects."""
    has_unknown_health: bool = False
    """Whether no health rule exists for its objects."""
    needed_by: tuple[Ref, ...] = ()
    produced_secrets: tuple[Ref, ...] = ()
    """Secrets that are produced from the objects that need it."""
    missing_part: str = ""
    """Description of the missing part of an existing object."""
    location: Location | None = None
    """The first location that requires it."""


MAX_MISSING_NAMES = 3


def describe_missing(dependency: MissingDependency) -> str:
    """Return a missing dependency with its kind, such as `Namespace shop`."""
    match dependency.type:
        case DependencyType.OPERATOR if dependency.ref.name:
            return f"operator {missing_title(dependency)}"
        case DependencyType.KIND:
            return f"kind {missing_title(dependency)}"
        case DependencyType.NAMESPACE:
            return f"Namespace {dependency.ref.name}"
        case _:
            return missing_title(dependency)


def missing_title(dependency: MissingDependency) -> str:
    ref = dependency.ref
    match dependency.type:
        case DependencyType.OPERATOR if ref.name:
            kinds = dict.fromkeys(kind.name for kind in dependency.kinds)
            return f"{ref.name} ({join_limited(kinds, MAX_MISSING_NAMES)})"
        case DependencyType.OPERATOR:
            return f"operator of {format_kind_title(ref.kind.group, ref.kind.name)}"
        case DependencyType.KIND:
            return f"{ref.kind.api_version}/{ref.kind.name}"
        case DependencyType.NAMESPACE:
            return ref.name
        case DependencyType.PART:
            return dependency.missing_part
        case (
            DependencyType.OBJECT
            | DependencyType.SETTING
            | DependencyType.SERVICE
            | DependencyType.TRUST_ROOT
        ):
            return str(Ref(ref.kind, ref.namespace, ref.name))
