"""What distributions of Kubernetes have before the first deployment.

A distribution counts if the repository shows that it is for one: a kind, a class or an annotation
that only this distribution has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

import msgspec

from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import JsonObject

STORAGE, NETWORKING = "storage.k8s.io", "networking.k8s.io"
ANY = "*"
"""Matches any namespace, and in a name any text."""
ObjectPattern = tuple[str, str, str, str]
"""Group, kind, namespace and name."""


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution: how a repository shows it, and what it has."""

    name: str
    source: str
    groups: frozenset[str] = frozenset()
    """API groups that only this distribution serves."""
    annotations: tuple[str, ...] = ()
    """Prefixes of annotations and labels that only its controllers read."""
    shown_by: frozenset[str] = frozenset()
    """Storage classes that no other distribution has."""
    objects: tuple[ObjectPattern, ...] = ()

    def is_shown_by(self, group: str, storage_class: str, keys: tuple[str, ...]) -> bool:
        """Return whether an object is only for this distribution.

        `keys`: those of its annotations and labels.
        """
        return (
            group in self.groups
            or storage_class in self.shown_by
            or any(key.startswith(self.annotations) for key in keys if self.annotations)
        )

    def has(self, group: str, kind: str, namespace: str, name: str) -> bool:
        """Return whether the distribution has an object."""
        return any(
            (group, kind) == pattern[:2]
            and pattern[2] in {ANY, namespace}
            and fnmatchcase(name, pattern[3])
            for pattern in self.objects
        )


def _classes(*names: str) -> tuple[ObjectPattern, ...]:
    return tuple((STORAGE, "StorageClass", "", name) for name in names)


def _namespaces(*names: str) -> tuple[ObjectPattern, ...]:
    return tuple(("", "Namespace", "", name) for name in names)


def _accounts(namespace: str, *names: str) -> tuple[ObjectPattern, ...]:
    return tuple(("", "ServiceAccount", namespace, name) for name in names)


_OPENSHIFT_GROUPS = (
    *("apps", "build", "config", "console", "image", "imageregistry", "ingress.operator"),
    *("machine", "machineconfiguration", "oauth", "operator", "project", "quota", "route"),
    *("samples.operator", "security", "template", "user"),
)
DISTRIBUTIONS = (
    Distribution(
        name="OpenShift",
        source="OpenShift Container Platform 4.20, default projects, service accounts and classes",
        groups=frozenset(f"{group}.openshift.io" for group in _OPENSHIFT_GROUPS),
        shown_by=frozenset({"gp2-csi", "gp3-csi", "thin-csi"}),
        objects=(
            *_namespaces("openshift", "openshift-*"),
            *_accounts(ANY, "builder", "deployer"),
            ("", "ConfigMap", ANY, "openshift-service-ca.crt"),
            *_classes("gp2-csi", "gp3-csi", "thin-csi"),
            (NETWORKING, "IngressClass", "", "openshift-default"),
        ),
    ),
    Distribution(
        name="k3s",
        source="k3s v1.34, manifests (packaged components)",
        groups=frozenset({"helm.cattle.io", "k3s.cattle.io"}),
        objects=(
            *_classes("local-path"),
            *_accounts("kube-system", "coredns", "metrics-server", "traefik"),
            ("", "Service", "kube-system", "traefik"),
            ("", "Service", "kube-system", "metrics-server"),
            (NETWORKING, "IngressClass", "", "traefik"),
        ),
    ),
    Distribution(
        name="EKS",
        source="Amazon EKS user guide, default add-ons and storage classes",
        groups=frozenset({"crd.k8s.amazonaws.com", "eks.amazonaws.com", "vpcresources.k8s.aws"}),
        annotations=("eks.amazonaws.com/",),
        objects=(*_classes("gp2"), *_accounts("kube-system", "aws-node", "coredns", "kube-proxy")),
    ),
    Distribution(
        name="GKE",
        source="Google Kubernetes Engine documentation, storage classes and managed namespaces",
        groups=frozenset({"networking.gke.io", "cloud.google.com"}),
        annotations=("iam.gke.io/", "cloud.google.com/"),
        shown_by=frozenset({"standard-rwo", "premium-rwo"}),
        objects=(
            *_namespaces("gmp-public", "gmp-system", "gke-managed-*"),
            *_classes("standard", "standard-rwo", "premium-rwo"),
        ),
    ),
    Distribution(
        name="AKS",
        source="Azure Kubernetes Service documentation, built-in storage classes",
        annotations=("azure.workload.identity/", "service.beta.kubernetes.io/azure-"),
        shown_by=frozenset({"azurefile-csi", "managed-csi", "managed-csi-premium"}),
        objects=_classes(
            *("default", "managed", "managed-csi", "managed-csi-premium", "managed-premium"),
            *("azurefile", "azurefile-csi", "azurefile-csi-premium", "azurefile-premium"),
        ),
    ),
)


def find_distributions(bodies: Iterable[JsonObject]) -> tuple[Distribution, ...]:
    """Return the distributions that a repository shows."""
    return tuple(dict.fromkeys(_shown(bodies)))


def _shown(bodies: Iterable[JsonObject]) -> Iterator[Distribution]:
    for body in bodies:
        group = get_text(body, "apiVersion").rpartition("/")[0]
        metadata = get_mapping(body, "metadata")
        keys = (*get_mapping(metadata, "annotations"), *get_mapping(metadata, "labels"))
        storage_class = get_text(body, "spec", "storageClassName")
        for candidate in DISTRIBUTIONS:
            if candidate.is_shown_by(group, storage_class, keys):
                yield candidate
