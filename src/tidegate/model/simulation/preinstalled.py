"""Objects that exist in a simulated cluster before the rollout: from a scenario, or assumed."""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.objects import Json, Kind


class GivenOperator(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """A preinstalled operator. Without a namespace, it is in its usual one."""

    name: str
    namespace: str = ""
    definitions: bool = True
    """Whether it installs its CRDs. If not, they come from elsewhere."""


class GivenKind(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """A preinstalled kind, as `group/version/Kind`."""

    name: str
    cluster_wide: bool = False
    defined: bool = True
    """Whether a CRD that accepts any object defines the kind."""
    served: bool = True
    """Whether its objects become healthy without a workload in the cluster."""

    @property
    def kind(self) -> Kind:
        version, _, name = self.name.rpartition("/")
        return Kind.of(version, name)


class GivenCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The preinstalled operators, kinds and objects of a cluster."""

    operators: tuple[GivenOperator, ...] = ()
    kinds: tuple[GivenKind, ...] = ()
    namespaces: tuple[str, ...] = ()
    names: dict[str, tuple[str, ...]] = {}
    """Names of objects that exist and are healthy, by `Kind` or `Kind.group`.

    A name has its namespace as a prefix if it has one.
    """
    objects: tuple[dict[str, Json], ...] = ()

    def merged_with(self, other: GivenCluster) -> GivenCluster:
        """Return both together. Entries of the other cluster win."""
        operators = {operator.name: operator for operator in (*self.operators, *other.operators)}
        kinds = {kind.name: kind for kind in (*self.kinds, *other.kinds)}
        names = {
            kind_name: tuple(
                dict.fromkeys((*self.names.get(kind_name, ()), *other.names.get(kind_name, ())))
            )
            for kind_name in (*self.names, *other.names)
        }
        return GivenCluster(
            operators=tuple(operators.values()),
            kinds=tuple(kinds.values()),
            namespaces=tuple(dict.fromkeys((*self.namespaces, *other.namespaces))),
            names=names,
            objects=(*self.objects, *other.objects),
        )


def format_kind_title(group: str, name: str) -> str:
    """Format a kind without its version, as kubectl does: `ClusterIssuer.cert-manager.io`."""
    return f"{name}.{group}" if group else name


def parse_kind_title(title: str) -> tuple[str, str]:
    """Return the group and the name of a kind in the form `Kind.group`."""
    name, _, group = title.partition(".")
    return group, name
