"""What is known before anything of a repository is: rows, and what every cluster has."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.knowledge.naming import KindName, Naming

ANYWHERE = "*"
RBAC = "rbac.authorization.k8s.io"
GIVEN = frozenset(
    {
        *(("", "Namespace", "", name) for name in ("default", "kube-system", "kube-public")),
        ("", "Namespace", "", "kube-node-lease"),
        ("", "ServiceAccount", ANYWHERE, "default"),
        ("", "ConfigMap", ANYWHERE, "kube-root-ca.crt"),
        ("", "ConfigMap", "kube-system", "extension-apiserver-authentication"),
        ("", "Service", "default", "kubernetes"),
        ("", "Service", "kube-system", "kube-dns"),
        *((RBAC, "ClusterRole", "", name) for name in ("cluster-admin", "admin", "edit", "view")),
        (RBAC, "Role", "kube-system", "extension-apiserver-authentication-reader"),
        ("argoproj.io", "AppProject", ANYWHERE, "default"),
    }
)
"""What every cluster has, and every Argo CD, before anything is deployed. Storage is not among it:
who runs a cluster decides which classes it has."""
BUILT_IN = ((RBAC, "ClusterRole", "system:"), ("scheduling.k8s.io", "PriorityClass", "system-"))
"""Kinds of which each object with such a name is every cluster's."""


class GraphGround(msgspec.Struct, frozen=True):
    """What a graph stands on.

    `served`: the kinds that a cluster serves without the repository, and whether they have
    namespaces. `given`: objects that it has without it, by group, kind, namespace and name; a
    namespace `*` is every one. `engines`: kinds that Argo CD and Flux bring themselves.
    `telemetry`: patterns of hosts that nobody waits for. `polls`: patterns of commands that wait
    for what they call. `certifies`: patterns of those for whom a host is a name on a certificate.
    """

    naming: Naming
    served: Mapping[KindName, bool]
    given: frozenset[tuple[str, str, str, str]] = GIVEN
    engines: frozenset[KindName] = frozenset()
    telemetry: tuple[str, ...] = ()
    polls: tuple[str, ...] = ()
    certifies: tuple[str, ...] = ()
    _wide: dict[KindName, bool] = msgspec.field(default_factory=dict)

    def is_given(self, group: str, kind: str, namespace: str, name: str) -> bool:
        if any((group, kind) == one[:2] and name.startswith(one[2]) for one in BUILT_IN):
            return True
        places = (namespace, ANYWHERE, "")
        return any((group, kind, place, name) in self.given for place in places)

    def is_wide(self, group: str, kind: str) -> bool:
        """Whether a kind is known to be in no namespace."""
        name = (group, kind)
        if name not in self._wide:
            row = self.naming.rows.rows.get(name)
            is_namespaced = self.served.get(name)
            said = row is not None and kind in row.cluster_wide
            self._wide[name] = said or is_namespaced is False
        return self._wide[name]
