"""Helm's own order of kinds, and where a chart keeps definitions that come before everything."""

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
"""Kinds as Helm installs them; whatever is not named comes behind, by the name of its kind."""
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
"""Kinds as Helm deletes them: the other way round, but for Services, which go early."""
_RANKS = {kind: rank for rank, kind in enumerate(INSTALL_ORDER)}
_RANKS_BACK = {kind: rank for rank, kind in enumerate(UNINSTALL_ORDER)}


def kind_rank(kind: str) -> tuple[int, str]:
    """Where objects of a kind stand when Helm installs them."""
    return (_RANKS.get(kind, len(_RANKS)), "" if kind in _RANKS else kind)


def kind_rank_back(kind: str) -> tuple[int, str]:
    """Where objects of a kind stand when Helm deletes them."""
    return (_RANKS_BACK.get(kind, len(_RANKS_BACK)), "" if kind in _RANKS_BACK else kind)


def is_crd_path(path: str) -> bool:
    """Whether a file of a chart stands in a `crds` directory, of the chart or of one inside it."""
    inside = path.split("/")
    return "crds" in inside and "templates" not in inside
