"""Inputs of a graph besides the repository: kind rows, and the objects of every cluster."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.knowledge.distributions import Distribution
from tidegate.knowledge.named_objects import KindName, ReferenceFinder

ANY_NAMESPACE = "*"
RBAC = "rbac.authorization.k8s.io"
PREINSTALLED = frozenset(
    {
        *(("", "Namespace", "", name) for name in ("default", "kube-system", "kube-public")),
        ("", "Namespace", "", "kube-node-lease"),
        ("", "ServiceAccount", ANY_NAMESPACE, "default"),
        ("", "ConfigMap", ANY_NAMESPACE, "kube-root-ca.crt"),
        ("", "ConfigMap", "kube-system", "extension-apiserver-authentication"),
        ("", "Service", "default", "kubernetes"),
        ("", "Service", "kube-system", "kube-dns"),
        *((RBAC, "ClusterRole", "", name) for name in ("cluster-admin", "admin", "edit", "view")),
        (RBAC, "Role", "kube-system", "extension-apiserver-authentication-reader"),
        ("argoproj.io", "AppProject", ANY_NAMESPACE, "default"),
    }
)
"""Objects of every cluster and every Argo CD before the first deployment.

Storage classes are not among them, because each cluster operator chooses them.
"""
BUILTIN_PREFIXES = {
    (RBAC, "ClusterRole"): "system:",
    ("scheduling.k8s.io", "PriorityClass"): "system-",
}
"""By kind, the prefix of the names of objects that every cluster has."""


class GraphInputs(msgspec.Struct, frozen=True):
    """Kind rows and cluster facts that a graph starts from."""

    references: ReferenceFinder
    served_kinds: Mapping[KindName, bool]
    """Kinds that a cluster serves without the repository, and whether they are namespaced."""
    preinstalled: frozenset[tuple[str, str, str, str]] = PREINSTALLED
    """Objects of a cluster without the repository: group, kind, namespace and name.

    The namespace `*` matches any.
    """
    distributions: tuple[Distribution, ...] = ()
    """The distributions that the repository is for."""
    engine_kinds: frozenset[KindName] = frozenset()
    """Kinds that Argo CD and Flux install themselves."""
    telemetry_hosts: tuple[str, ...] = ()
    """Patterns of hosts that no object waits for."""
    polling_commands: tuple[str, ...] = ()
    """Patterns of commands that wait for the host that they call."""
    certificate_commands: tuple[str, ...] = ()
    """Patterns of containers for which a host is a name on a certificate."""
    _cluster_scoped: dict[KindName, bool] = msgspec.field(default_factory=dict)

    def is_preinstalled(self, group: str, kind: str, namespace: str, name: str) -> bool:
        """Return whether every cluster has an object."""
        prefix = BUILTIN_PREFIXES.get((group, kind))
        if prefix is not None and name.startswith(prefix):
            return True
        if any(item.has(group, kind, namespace, name) for item in self.distributions):
            return True
        return any(
            (group, kind, candidate, name) in self.preinstalled
            for candidate in (namespace, ANY_NAMESPACE, "")
        )

    def is_cluster_scoped(self, group: str, kind: str) -> bool:
        """Return whether a kind is known to be cluster-scoped."""
        kind_key = (group, kind)
        if kind_key not in self._cluster_scoped:
            row = self.references.rows.rows.get(kind_key)
            is_namespaced = self.served_kinds.get(kind_key)
            is_listed = row is not None and kind in row.cluster_wide
            self._cluster_scoped[kind_key] = is_listed or is_namespaced is False
        return self._cluster_scoped[kind_key]
