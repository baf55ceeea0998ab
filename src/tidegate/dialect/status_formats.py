"""Status format of each kind of unit resource.

The status of other kinds is not written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import msgspec

from tidegate.dialect.argo.status.application import application_status
from tidegate.dialect.argo.status.appset import application_set_status
from tidegate.dialect.flux.status.kustomization import kustomization_status
from tidegate.dialect.flux.status.release import helm_release_status
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.kinds import EVENT
from tidegate.model.k8s.objects import JsonObject, Ref
from tidegate.model.rollouts.progress import SourceRevision, StatusUpdate, UnitProgress
from tidegate.model.times import Ms, format_rfc3339

BuildStatus = Callable[[JsonObject, UnitProgress, Sequence[SourceRevision]], StatusUpdate | None]
MAX_MESSAGE_BYTES = 1_024
"""Maximum number of bytes in the message of an Event."""


class StatusFormat(msgspec.Struct, frozen=True):
    """Status format of one kind: its API group, its controller, and the function that builds it."""

    group: str
    manager: str
    """Field manager of the controller for the status."""
    component: str
    build: BuildStatus
    ignored_fields: frozenset[str] = frozenset()
    """Fields whose change alone is not written."""
    follows_children: bool = False
    """Whether it depends on the status of child units, also after its own rollout."""


STATUS_FORMATS = {
    "Application": StatusFormat(
        "argoproj.io",
        "argocd-application-controller",
        "argocd-application-controller",
        application_status,
        frozenset({"reconciledAt"}),
    ),
    "ApplicationSet": StatusFormat(
        "argoproj.io",
        "argocd-applicationset-controller",
        "argocd-applicationset-controller",
        application_set_status,
        follows_children=True,
    ),
    "Kustomization": StatusFormat(
        "kustomize.toolkit.fluxcd.io",
        "gotk-kustomize-controller",
        "kustomize-controller",
        kustomization_status,
    ),
    "HelmRelease": StatusFormat(
        "helm.toolkit.fluxcd.io",
        "gotk-helm-controller",
        "helm-controller",
        helm_release_status,
    ),
}


def build_event(
    unit_resource: JsonObject, event: tuple[str, str, str], status_format: StatusFormat, now: Ms
) -> tuple[Ref, bytes]:
    """Return a Kubernetes Event about a unit resource, as its controller would send it."""
    severity, reason, message = event
    namespace, uid = (
        get_text(unit_resource, "metadata", "namespace"),
        get_text(unit_resource, "metadata", "uid"),
    )
    seed = "\0".join((uid, *event, str(now))).encode()
    suffix = hashlib.blake2b(seed, digest_size=8).hexdigest()
    ref = Ref(EVENT, namespace, f"{get_text(unit_resource, 'metadata', 'name')}.{suffix}")
    truncated = message.encode()[:MAX_MESSAGE_BYTES].decode(errors="ignore")
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": ref.name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": get_text(unit_resource, "apiVersion"),
            "kind": get_text(unit_resource, "kind"),
            "namespace": namespace,
            "name": get_text(unit_resource, "metadata", "name"),
            "uid": uid,
            "resourceVersion": get_text(unit_resource, "metadata", "resourceVersion"),
        },
        "type": severity,
        "reason": reason,
        "message": truncated,
        "source": {"component": status_format.component},
        "reportingComponent": status_format.component,
        "reportingInstance": "tidegate",
        "firstTimestamp": format_rfc3339(now),
        "lastTimestamp": format_rfc3339(now),
        "count": 1,
    }
    return ref, msgspec.json.encode(body)
