"""Autoscalers of a workload, which may set its replicas although Git does not."""

from __future__ import annotations

from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.engine.messages import Override
from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import ClusterRef, Kind, LiveObject, ServedKind, object_body
from tidegate.world.messages import ListPage
from tidegate.world.requests import List, Selection

AUTOSCALERS = (
    Kind("autoscaling", "v2", "HorizontalPodAutoscaler"),
    Kind("keda.sh", "v1alpha1", "ScaledObject"),
)
MAX_AUTOSCALERS = 500


def check_autoscalers(
    object_ref: ClusterRef, override: Override, served: dict[Kind, ServedKind]
) -> Procedure[Override]:
    """Return an override of the replicas; it is uncertain if an autoscaler may have made it."""
    kinds = [kind for kind in AUTOSCALERS if kind in served]
    namespace = object_ref.ref.namespace
    calls = [
        ApiCall(object_ref.cluster, List(Selection(kind, namespace), MAX_AUTOSCALERS))
        for kind in kinds
    ]
    pages = (yield tuple(calls)) if calls else ()
    for kind, page in zip(kinds, pages, strict=True):
        if not isinstance(page, ListPage):
            note = f"cannot list {kind.name}s: {sanitize(getattr(page, 'message', ''))}"
            return Override(f"{override.message}; {note}", is_certain=False)
        for live in page.items:
            if _targets(live, object_ref):
                note = f"{kind.name} {live.ref.name} scales it"
                return Override(f"{override.message}; {note}", is_certain=False)
    return override


def _targets(live: LiveObject, object_ref: ClusterRef) -> bool:
    body = object_body(live)
    target = ("spec", "scaleTargetRef")
    kind = get_text(body, *target, "kind", default="Deployment")
    ref = object_ref.ref
    return (kind, get_text(body, *target, "name")) == (ref.kind.name, ref.name)
