"""Objects of a plan that may make a server accept what it refuses in a dry run before them.

A pod needs its ServiceAccount, PriorityClass and RuntimeClass; a webhook needs the pods and the
Service that answer for it. If nothing in the plan can provide them, the refusal is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    POD,
    REPLICA_SET,
    SERVICE,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
)
from tidegate.model.k8s.objects import ClusterRef, JsonObject, Kind, Ref
from tidegate.schema.builtin import find_shape

DEFAULT_ACCOUNT = "default"
"""The ServiceAccount that a controller creates in each namespace."""
POD_REQUIREMENTS = {
    "service account": (SERVICE_ACCOUNT, "serviceAccountName"),
    "PriorityClass": (Kind("scheduling.k8s.io", "v1", "PriorityClass"), "priorityClassName"),
    "RuntimeClass": (Kind("node.k8s.io", "v1", "RuntimeClass"), "runtimeClassName"),
}
"""What a pod needs, by how a server names it: the kind, and the field of the pod.

Like the admission plugins `serviceaccount`, `priority` and `runtimeclass` in `plugin/pkg/admission`
of Kubernetes 1.36.4.
"""
ANSWERING_KINDS = frozenset({POD, REPLICA_SET, DEPLOYMENT, STATEFUL_SET, DAEMON_SET, SERVICE})
"""Kinds that may make a webhook answer."""


def may_provide(planned: Collection[ClusterRef], pod: ClusterRef, body: bytes, need: str) -> bool:
    """Return whether a plan may create what a pod needs, by the message of a server."""
    spec = get_mapping(msgspec.json.decode(body), "spec")
    for name, (kind, field) in POD_REQUIREMENTS.items():
        if name in need and pod.ref.kind == POD:
            required = get_text(spec, field, default=DEFAULT_ACCOUNT)
            namespace = pod.ref.namespace if kind == SERVICE_ACCOUNT else ""
            required_ref = ClusterRef(pod.cluster, Ref(kind, namespace, required))
            return (
                required == DEFAULT_ACCOUNT
                or required_ref in planned
                or any(_may_create_others(item) for item in planned if item.cluster == pod.cluster)
            )
    return True


def may_answer(
    planned: Collection[ClusterRef], configurations: Mapping[ClusterRef, JsonObject], name: str
) -> bool:
    """Return whether a plan may make a webhook answer that does not.

    `configurations`: the live ones. A webhook that none of them has is unknown.
    """
    webhooks = [
        (object_ref, webhook)
        for object_ref, body in configurations.items()
        for webhook in get_mappings(body, "webhooks")
        if get_text(webhook, "name") == name
    ]
    return not webhooks or any(
        object_ref in planned or _may_start(planned, object_ref.cluster, webhook)
        for object_ref, webhook in webhooks
    )


def _may_start(planned: Collection[ClusterRef], cluster: str, webhook: JsonObject) -> bool:
    """Return whether a plan writes what may run or route to the server of a webhook."""
    namespace = get_text(webhook, "clientConfig", "service", "namespace")
    return bool(namespace) and any(
        item.ref.kind in ANSWERING_KINDS or _is_custom(item.ref.kind)
        for item in planned
        if item.cluster == cluster and item.ref.namespace in ("", namespace)
    )


def _may_create_others(object_ref: ClusterRef) -> bool:
    return object_ref.ref.kind in (JOB, CRON_JOB) or _is_custom(object_ref.ref.kind)


def _is_custom(kind: Kind) -> bool:
    return find_shape(kind) is None
