"""Where objects have their pods: templates, containers and owners."""

from __future__ import annotations

from tidegate.model.k8s.json_fields import get_int, get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject, Ref

TEMPLATE = ("spec", "template")
POD_TEMPLATE_PATHS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): (),
    ("apps", "DaemonSet"): TEMPLATE,
    ("apps", "Deployment"): TEMPLATE,
    ("apps", "ReplicaSet"): TEMPLATE,
    ("apps", "StatefulSet"): TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", *TEMPLATE),
    ("batch", "Job"): TEMPLATE,
}
"""By group and kind, the path of the pod template; empty for a Pod itself."""
POD_SPEC_PATHS = tuple(dict.fromkeys((*path, "spec") for path in POD_TEMPLATE_PATHS.values()))
"""The paths where an object of any kind may have the spec of its pods."""
OwnerKey = tuple[str, str, str]
"""Kind, namespace and name of an owner."""


def desired_replicas(workload: JsonObject) -> int:
    """Return the desired number of pods of a workload."""
    return get_int(workload, "spec", "replicas", default=1)


def container_statuses(pod: JsonObject) -> list[JsonObject]:
    """Return the statuses of all containers, init containers first."""
    return [
        *get_mappings(pod, "status", "initContainerStatuses"),
        *get_mappings(pod, "status", "containerStatuses"),
    ]


def owner_key(ref: Ref) -> OwnerKey:
    """Return the key of an object in the owner references of other objects."""
    return ref.kind.name, ref.namespace, ref.name


def owner_keys(body: JsonObject) -> list[OwnerKey]:
    """Return the keys of the owners of an object, which are in its namespace."""
    namespace = get_text(body, "metadata", "namespace")
    return [
        (get_text(owner, "kind"), namespace, get_text(owner, "name"))
        for owner in get_mappings(body, "metadata", "ownerReferences")
    ]
