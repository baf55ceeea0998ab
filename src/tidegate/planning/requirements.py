"""Required objects that are missing in a cluster.

Pods need Secrets, ConfigMaps, a service account, volumes and classes. A custom resource needs
what the catalog row of its operator lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.clusters.reader import ClusterReader
from tidegate.knowledge.catalog import KindCatalog
from tidegate.knowledge.references import list_needs, list_required_configs
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import API_SERVICE, CLAIM, SERVICE_ACCOUNT, STORAGE_CLASS
from tidegate.model.k8s.objects import JsonObject, Kind, Ref
from tidegate.model.k8s.pods import POD_TEMPLATE_PATHS, TEMPLATE
from tidegate.model.times import SECOND, Ms
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import ApiResources as ServedKinds
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import Discover

PRIORITY_CLASS = Kind("scheduling.k8s.io", "v1", "PriorityClass")
RUNTIME_CLASS = Kind("node.k8s.io", "v1", "RuntimeClass")
AUTOSCALER = ("autoscaling", "HorizontalPodAutoscaler")
METRICS_APIS = {"Pods": "custom.", "Object": "custom.", "External": "external."}
"""By metric type, the prefix of its API; other types use the resource metrics API."""
ROOT_CA_CONFIG_MAP = "kube-root-ca.crt"
"""A ConfigMap that exists in every namespace."""
QUERY_TIMEOUT = Ms(5 * SECOND)
"""Timeout of a query about a failure."""


async def find_missing(
    world: Dispatcher, ref: Ref, body: JsonObject, catalogue: KindCatalog, *, cluster: str = ""
) -> list[Ref]:
    """Return the objects that an object needs and the cluster does not have, each once."""
    required = dict.fromkeys(required_refs(ref, body, catalogue))
    if not required:
        return []
    (served,) = await send_requests(world, Discover(), cluster=cluster, timeout=QUERY_TIMEOUT)
    if not isinstance(served, ServedKinds):
        return []
    refs = list(resolve_served(required, served))
    return await ClusterReader(world, cluster, timeout=QUERY_TIMEOUT).find_absent(refs)


def required_refs(ref: Ref, body: JsonObject, catalogue: KindCatalog) -> Iterator[Ref]:
    """Yield the objects that an object cannot work without, from its body."""
    yield from _pod_requirements(ref, body)
    yield from _claim_requirements(ref, body)
    yield from metrics_requirements(ref, body)
    yield from _operator_requirements(ref, body, catalogue)


def _pod_requirements(ref: Ref, body: JsonObject) -> Iterator[Ref]:
    spec = get_mapping(body, "spec")
    path = POD_TEMPLATE_PATHS.get((ref.kind.group, ref.kind.name), TEMPLATE)
    pod = get_mapping(body, *path, "spec")
    template_names = {
        get_text(template, "metadata", "name")
        for template in get_mappings(spec, "volumeClaimTemplates")
    }
    yield from (
        config_ref
        for config_ref in list_required_configs(pod, ref.namespace)
        if config_ref.name != ROOT_CA_CONFIG_MAP
    )
    if account := get_text(pod, "serviceAccountName"):
        yield Ref(SERVICE_ACCOUNT, ref.namespace, account)
    for volume in get_mappings(pod, "volumes"):
        claim = get_text(volume, "persistentVolumeClaim", "claimName")
        if claim and get_text(volume, "name") not in template_names:
            yield Ref(CLAIM, ref.namespace, claim)
    if (priority := get_text(pod, "priorityClassName")) and not priority.startswith("system-"):
        yield Ref(PRIORITY_CLASS, "", priority)
    if runtime := get_text(pod, "runtimeClassName"):
        yield Ref(RUNTIME_CLASS, "", runtime)


def metrics_requirements(ref: Ref, body: JsonObject) -> Iterator[Ref]:
    """Yield the metrics APIs that a HorizontalPodAutoscaler needs; by default that of CPU."""
    if (ref.kind.group, ref.kind.name) == AUTOSCALER:
        metric_types = [
            get_text(metric, "type") for metric in get_mappings(body, "spec", "metrics")
        ] or ["Resource"]
        apis = dict.fromkeys(
            f"v1beta1.{METRICS_APIS.get(metric_type, '')}metrics.k8s.io"
            for metric_type in metric_types
        )
        yield from (Ref(API_SERVICE, "", api) for api in apis)


def _claim_requirements(ref: Ref, body: JsonObject) -> Iterator[Ref]:
    claims = [body] if ref.kind == CLAIM else get_mappings(body, "spec", "volumeClaimTemplates")
    for claim in claims:
        if storage := get_text(claim, "spec", "storageClassName"):
            yield Ref(STORAGE_CLASS, "", storage)


def _operator_requirements(ref: Ref, body: JsonObject, catalogue: KindCatalog) -> Iterator[Ref]:
    row = catalogue.find_row(ref.kind)
    for need in list_needs(row, body, ref.kind) if row else ():
        yield Ref(Kind(need.group, "", need.kind), need.namespace, need.name)


def resolve_served(refs: Iterable[Ref], served: ServedKinds) -> Iterator[Ref]:
    """Yield the refs in a served version, without a namespace if the kind is cluster-scoped."""
    by_group_kind = {
        (discovered.kind.group, discovered.kind.name): discovered
        for discovered in reversed(served.kinds)
    }
    for ref in refs:
        served_kind = by_group_kind.get((ref.kind.group, ref.kind.name))
        if served_kind is None:
            yield ref
        else:
            yield Ref(served_kind.kind, ref.namespace if served_kind.namespaced else "", ref.name)
