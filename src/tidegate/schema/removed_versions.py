"""Versions of built-in API groups that Kubernetes no longer has."""

from __future__ import annotations

from tidegate.model.k8s.objects import Kind

REMOVED_VERSIONS = {
    "admissionregistration.k8s.io/v1beta1": (
        *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
    ),
    "apiextensions.k8s.io/v1beta1": (),
    "apiregistration.k8s.io/v1beta1": (),
    "apps/v1beta1": (),
    "apps/v1beta2": (),
    "authentication.k8s.io/v1beta1": ("TokenReview",),
    "authorization.k8s.io/v1beta1": (),
    "autoscaling/v2beta1": (),
    "autoscaling/v2beta2": (),
    "batch/v1beta1": (),
    "batch/v2alpha1": (),
    "certificates.k8s.io/v1beta1": ("CertificateSigningRequest",),
    "coordination.k8s.io/v1beta1": ("Lease",),
    "discovery.k8s.io/v1beta1": (),
    "events.k8s.io/v1beta1": (),
    "extensions/v1beta1": (),
    "flowcontrol.apiserver.k8s.io/v1beta1": (),
    "flowcontrol.apiserver.k8s.io/v1beta2": (),
    "flowcontrol.apiserver.k8s.io/v1beta3": (),
    "networking.k8s.io/v1beta1": ("Ingress", "IngressClass", "NetworkPolicy"),
    "node.k8s.io/v1beta1": (),
    "policy/v1beta1": (),
    "rbac.authorization.k8s.io/v1alpha1": (),
    "rbac.authorization.k8s.io/v1beta1": (),
    "scheduling.k8s.io/v1alpha1": ("PriorityClass",),
    "scheduling.k8s.io/v1beta1": ("PriorityClass",),
    "storage.k8s.io/v1beta1": (
        *("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"),
    ),
}
"""By version, the kinds that were removed from it; empty if all were.

From the deprecated API migration guide, kubernetes.io/docs/reference/using-api/deprecation-guide.
"""


def may_be_served(kind: Kind) -> bool:
    """Return whether some API servers serve this version of a built-in kind.

    Alpha and beta versions are served only if `--runtime-config` of kube-apiserver enables them.
    """
    removed = REMOVED_VERSIONS.get(kind.api_version)
    is_removed = removed is not None and (not removed or kind.name in removed)
    return ("alpha" in kind.version or "beta" in kind.version) and not is_removed
