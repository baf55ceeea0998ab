"""What is known of built-in kinds where an object itself does not tell: the defaults of fields.

Places are told by a field's name and the name of the field it is in. Defaults are those of
Kubernetes' `defaults.go` files.
"""

from __future__ import annotations

from tidegate.model.objects import Json
from tidegate.plan.diff.owned import Body
from tidegate.plan.diff.values import is_equal, words

GROUPS = frozenset(
    ["", "apps", "autoscaling", "batch", "extensions", "policy"]
    + [
        f"{name}.k8s.io"
        for name in words(
            "admissionregistration apiextensions apiregistration authentication authorization "
            "certificates coordination discovery events flowcontrol.apiserver internal.apiserver "
            "networking node rbac.authorization resource scheduling storage storagemigration"
        )
    ]
)
"""The API groups that Kubernetes brings; other groups under k8s.io are custom ones."""

FREE_FORM = words(
    "annotations binaryData data labels limits matchLabels nodeSelector options parameters "
    "requests selector stringData volumeAttributes"
)
"""Mappings whose names are anybody's."""
DROPPED = FREE_FORM | words(
    "hostIPC hostNetwork hostPID initialDelaySeconds minReadySeconds paused "
    "publishNotReadyAddresses readOnly stdin stdinOnce tty value"
)
"""Fields that servers leave out when they are empty, false or 0."""
KEPT = words("clusterIP clusterIPs healthCheckNodePort ipFamilies ipFamilyPolicy nodePort")
"""What a Service was given, and keeps when nothing is said of it."""
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
    "status": ("True", {"phase": "Pending"}),
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
"""What a server writes where nothing is said."""


def is_default(value: Json, *, name: str, parent: str, beside: Body) -> bool:
    """Whether a server writes this value by itself; `beside` is the mapping it stands in."""
    if parent in FREE_FORM:
        return False
    match name:
        case "imagePullPolicy":
            return value == _pull_policy(beside.get("image"))
        case "targetPort":
            return value == beside.get("port")
        case _ if name in KEPT:
            return parent in {"spec", "ports"}
        case _:
            is_known = any(is_equal(value, default) for default in DEFAULTS.get(name, ()))
            return is_known or _is_all_default(value, name)


def _is_all_default(value: Json, name: str) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            is_default(inner, name=field, parent=name, beside=value)
            for field, inner in value.items()
        )
    )


def _pull_policy(image: Json) -> str:
    last = str(image or "").rpartition("/")[2]
    name, _, digest = last.partition("@")
    tag = name.partition(":")[2]
    is_fixed = bool(digest) if not tag else tag != "latest"
    return "IfNotPresent" if is_fixed else "Always"
