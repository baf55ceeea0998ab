"""Defaults of fields of built-in kinds, which an object does not show.

A field is identified by its name and the name of its parent field. The defaults are those of the
`defaults.go` files of Kubernetes.
"""

from __future__ import annotations

from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.plan.diff.values import is_equal, word_set

BUILTIN_GROUPS = frozenset(
    ["", "apps", "autoscaling", "batch", "extensions", "policy"]
    + [
        f"{name}.k8s.io"
        for name in word_set(
            "admissionregistration apiextensions apiregistration authentication authorization "
            "certificates coordination discovery events flowcontrol.apiserver internal.apiserver "
            "networking node rbac.authorization resource scheduling storage storagemigration"
        )
    ]
)
"""The API groups of Kubernetes. Other groups under k8s.io are custom ones."""
FREE_FORM_FIELDS = word_set(
    "annotations binaryData data labels limits matchLabels nodeSelector options parameters "
    "requests selector stringData volumeAttributes"
)
"""Mappings with arbitrary keys."""
OMITTED_FIELDS = FREE_FORM_FIELDS | word_set(
    "hostIPC hostNetwork hostPID initialDelaySeconds minReadySeconds paused "
    "publishNotReadyAddresses readOnly stdin stdinOnce tty value"
)
"""Fields that servers omit if they are empty, false or 0."""
ALLOCATED_FIELDS = word_set(
    "clusterIP clusterIPs healthCheckNodePort ipFamilies ipFamilyPolicy nodePort"
)
"""Fields of a Service that the server allocates, and keeps if they are not set."""
DEFAULTS: dict[str, tuple[Json, ...]] = {
    "allocateLoadBalancerNodePorts": (True,),
    "allocationMode": ("ExactCount",),
    "apiGroup": ("rbac.authorization.k8s.io", ""),
    "apiVersion": ("v1",),
    "attachRequired": (True,),
    "backoffLimit": (6,),
    "completionMode": ("NonIndexed",),
    "concurrencyPolicy": ("Allow",),
    "count": (1,),
    "defaultMode": (420,),
    "divisor": ("0",),
    "dnsPolicy": ("ClusterFirst",),
    "enableServiceLinks": (True,),
    "expirationSeconds": (3600,),
    "externalTrafficPolicy": ("Cluster",),
    "failedJobsHistoryLimit": (1,),
    "failurePolicy": ("Fail",),
    "failureThreshold": (3,),
    "fsGroupPolicy": ("ReadWriteOnceWithFSType",),
    "internalTrafficPolicy": ("Cluster",),
    "kind": ("PersistentVolumeClaim",),
    "manualSelector": (False,),
    "matchPolicy": ("Equivalent",),
    "maxSurge": ("25%", 0),
    "maxUnavailable": ("25%", 1),
    "minReplicas": (1,),
    "name": ("",),
    "namespaceSelector": ({},),
    "objectSelector": ({},),
    "parallelism": (1,),
    "partition": (0,),
    "periodSeconds": (10,),
    "persistentVolumeReclaimPolicy": ("Retain",),
    "podManagementPolicy": ("OrderedReady",),
    "podReplacementPolicy": ("TerminatingOrFailed",),
    "preemptionPolicy": ("PreemptLowerPriority",),
    "progressDeadlineSeconds": (600,),
    "protocol": ("TCP",),
    "reclaimPolicy": ("Delete",),
    "reinvocationPolicy": ("Never",),
    "replicas": (1,),
    "resources": ({},),
    "restartPolicy": ("Always",),
    "revisionHistoryLimit": (10,),
    "schedulerName": ("default-scheduler",),
    "scheme": ("HTTP",),
    "scope": ("*", "Cluster"),
    "securityContext": ({},),
    "sessionAffinity": ("None",),
    "status": ("True", {"phase": "Pending"}, {}),
    "successThreshold": (1,),
    "successfulJobsHistoryLimit": (3,),
    "suspend": (False,),
    "terminationGracePeriodSeconds": (30,),
    "terminationMessagePath": ("/dev/termination-log",),
    "terminationMessagePolicy": ("File",),
    "timeoutSeconds": (1, 10),
    "type": ("RollingUpdate", "ClusterIP", "Opaque", ""),
    "volumeBindingMode": ("Immediate",),
    "volumeLifecycleModes": (["Persistent"],),
    "volumeMode": ("Filesystem",),
    "whenDeleted": ("Retain",),
    "whenScaled": ("Retain",),
}
"""Values that a server sets if a field is not set."""


def is_default(value: Json, *, name: str, parent: str, siblings: JsonObject) -> bool:
    """Return whether a server sets this value by default.

    `siblings` are the other fields of the mapping that contains it.
    """
    if parent in FREE_FORM_FIELDS:
        return False
    match name:
        case "imagePullPolicy":
            return value == _default_pull_policy(siblings.get("image"))
        case "targetPort":
            return value == siblings.get("port")
        case "completions":
            # `SetDefaults_Job` of pkg/apis/batch/v1/defaults.go in Kubernetes 1.36.
            return value == 1 and siblings.get("parallelism") is None
        case "serviceAccount":
            return value == siblings.get("serviceAccountName")
        case _ if name in ALLOCATED_FIELDS:
            return parent in {"spec", "ports"}
        case _:
            is_known = any(is_equal(value, default) for default in DEFAULTS.get(name, ()))
            return is_known or _is_all_default(value, name)


def _is_all_default(value: Json, name: str) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            is_default(inner, name=field, parent=name, siblings=value)
            for field, inner in value.items()
        )
    )


def _default_pull_policy(image: Json) -> str:
    last = str(image or "").rpartition("/")[2]
    name, _, digest = last.partition("@")
    tag = name.partition(":")[2]
    is_pinned = bool(digest) if not tag else tag != "latest"
    return "IfNotPresent" if is_pinned else "Always"
