"""Documents as a render hands them over, for tests that care about their annotations."""

from __future__ import annotations

from tests.support.parsed_manifests import parse_all_manifests
from tidegate.dialect.argo.options import with_sync_options
from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.plans.manifest import Manifests
from tidegate.model.units.policy import Order, Policy
from tidegate.model.units.unit import Destination, Unit, UnitId

HOOK = "argocd.argoproj.io/hook"
POLICY = "argocd.argoproj.io/hook-delete-policy"
WAVE = "argocd.argoproj.io/sync-wave"
OPTIONS = "argocd.argoproj.io/sync-options"
HELM_HOOK = "helm.sh/hook"
HELM_POLICY = "helm.sh/hook-delete-policy"
WEIGHT = "helm.sh/hook-weight"
CLUSTER_WIDE = frozenset({"Namespace", "ClusterRole", "CustomResourceDefinition"})
SHOP = UnitId.plain("shop", "web")


def noting(notes: dict[str, Json]) -> JsonObject:
    """A body of which only the annotations matter."""
    return {"metadata": {"annotations": notes}}


def a_document(
    kind: str = "v1 ConfigMap",
    name: str = "settings",
    *,
    notes: dict[str, Json] | None = None,
    line: int = 1,
    **metadata: Json,
) -> Document:
    api_version, _, word = kind.partition(" ")
    unit_resource: JsonObject = {"name": name} if name else {}
    if notes is not None:
        unit_resource["annotations"] = notes
    body: JsonObject = {
        "apiVersion": api_version,
        "kind": word,
        "metadata": {**unit_resource, **metadata},
    }
    return Document(body, Location("shop.yaml", line))


def read(
    *documents: Document, order: Order = Order.WAVES, options: tuple[str, ...] = ()
) -> Manifests:
    """The unit `shop/web` of these documents, in the namespace `shop`."""
    policy = with_sync_options(Policy(order=order), options)
    unit = Unit(id=SHOP, destination=Destination(namespace="shop"), policy=policy)
    return parse_all_manifests(unit, documents, _is_namespaced)


def _is_namespaced(kind: Kind) -> bool:
    return kind.name not in CLUSTER_WIDE
