"""Helm's install and uninstall order of kinds, and the `crds` directories of charts.

Like `InstallOrder` and `UninstallOrder` in `kind_sorter.go` of Helm.
"""

from __future__ import annotations

INSTALL_ORDER = (
    *("PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange"),
    *("PodSecurityPolicy", "PodDisruptionBudget", "ServiceAccount", "Secret", "SecretList"),
    *("ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim"),
    *("CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding"),
    *("ClusterRoleBindingList", "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service"),
    *("DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment"),
    *("HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob", "IngressClass", "Ingress"),
    *("APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
)
"""Kinds in the order of installation. Unlisted kinds follow, sorted by name."""
UNINSTALL_ORDER = (
    *("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService", "Ingress"),
    *("IngressClass", "Service", "CronJob", "Job", "StatefulSet", "HorizontalPodAutoscaler"),
    *("Deployment", "ReplicaSet", "ReplicationController", "Pod", "DaemonSet"),
    *("RoleBindingList", "RoleBinding", "RoleList", "Role", "ClusterRoleBindingList"),
    *("ClusterRoleBinding", "ClusterRoleList", "ClusterRole", "CustomResourceDefinition"),
    *("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "ConfigMap", "SecretList"),
    *("Secret", "ServiceAccount", "PodDisruptionBudget", "PodSecurityPolicy", "LimitRange"),
    *("ResourceQuota", "NetworkPolicy", "Namespace", "PriorityClass"),
)
"""Kinds in the order of deletion: reversed, except that Services are deleted early."""
_INSTALL_RANKS = {kind: rank for rank, kind in enumerate(INSTALL_ORDER)}
_UNINSTALL_RANKS = {kind: rank for rank, kind in enumerate(UNINSTALL_ORDER)}


def install_rank(kind: str) -> tuple[int, str]:
    """Return the sort key of a kind for installation."""
    return (_INSTALL_RANKS.get(kind, len(_INSTALL_RANKS)), "" if kind in _INSTALL_RANKS else kind)


def uninstall_rank(kind: str) -> tuple[int, str]:
    """Return the sort key of a kind for deletion."""
    return (
        _UNINSTALL_RANKS.get(kind, len(_UNINSTALL_RANKS)),
        "" if kind in _UNINSTALL_RANKS else kind,
    )


def is_crd_path(path: str) -> bool:
    """Return whether a file is in a `crds` directory of a chart or of one of its subcharts."""
    parts = path.split("/")
    return "crds" in parts and "templates" not in parts
