"""Creation of objects: identity, and initial fields of some kinds.

A pod gets its QoS class. A Job gets a unique selector and labels, unless it sets
`manualSelector`. No manager owns these fields.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from fractions import Fraction

from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.labels import selector_matches
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.k8s.quantity import to_quantity
from tidegate.model.times import Ms
from tidegate.sandbox.kinds import INITIAL_STATUSES
from tidegate.sandbox.server.kind_registry import KindEntry
from tidegate.sandbox.server.lifecycle import (
    JOBS,
    NAMESPACES,
    PODS,
    SERVICES,
    format_rfc3339,
    to_name_suffix,
)
from tidegate.sandbox.server.store import get_metadata
from tidegate.schema.causes import invalid, required
from tidegate.world.messages import Cause

QOS_RESOURCES = ("cpu", "memory")
Amounts = dict[str, Fraction]
CONTROLLER_UID_LABEL = "batch.kubernetes.io/controller-uid"
JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
LEGACY_UID_LABEL, LEGACY_NAME_LABEL = "controller-uid", "job-name"
TEMPLATE_LABELS = "spec.template.metadata.labels"


class IdentityGenerator:
    """Generator of uids, names and addresses of a cluster, from a seed."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._count = 0
        self._addresses = 0

    def new_uid(self) -> str:
        """Return a new uid."""
        text = self._next_bytes().hex()
        parts = (text[:8], text[8:12], f"4{text[13:16]}", f"8{text[17:20]}", text[20:32])
        return "-".join(parts)

    def generate_name(self, prefix: str) -> str:
        """Return a prefix with a generated suffix, for `generateName`; empty without a prefix.

        Like `GenerateName` in `pkg/storage/names/generate.go` of k8s.io/apiserver 0.36.4.
        """
        suffix = to_name_suffix(self._next_bytes()[:5])
        return f"{prefix}{suffix}" if prefix else ""

    def new_cluster_ip(self) -> str:
        """Return the next address of the service network.

        Like `allocClusterIPs` in `pkg/registry/core/service/storage/alloc.go` of Kubernetes 1.36.4.
        """
        self._addresses += 1
        high, low = divmod(self._addresses + 9, 250)
        return f"10.{96 + high // 250}.{high % 250}.{low + 1}"

    def _next_bytes(self) -> bytes:
        self._count += 1
        return hashlib.blake2b(f"{self._seed}/{self._count}".encode(), digest_size=16).digest()


def prepare_for_create(
    body: JsonObject, entry: KindEntry, ref: Ref, *, now: Ms, identities: IdentityGenerator
) -> JsonObject:
    """Return a new object with its identity and the initial fields of its kind.

    Like `BeforeCreate` in `pkg/registry/rest/create.go` and `FillObjectMetaSystemFields` in
    `pkg/registry/rest/meta.go` of k8s.io/apiserver 0.36.4.
    """
    dropped = {"deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "generation"}
    metadata = {k: v for k, v in get_metadata(body).items() if k not in dropped}
    metadata |= {
        "name": ref.name,
        "uid": identities.new_uid(),
        "creationTimestamp": format_rfc3339(now),
    }
    if entry.served.namespaced:
        metadata["namespace"] = ref.namespace
    if entry.has_generation:
        metadata["generation"] = 1
    created: JsonObject = {
        **body,
        "apiVersion": entry.kind.api_version,
        "kind": entry.kind.name,
        "metadata": metadata,
    }
    if entry.has_status:
        created.pop("status", None)
    initial_status = INITIAL_STATUSES.get(entry.kind)
    created |= {} if initial_status is None else {"status": initial_status}
    if entry.resource == NAMESPACES:
        return _prepare_namespace(created, ref.name)
    if entry.resource == SERVICES:
        return _prepare_service(created, identities)
    if entry.resource == PODS:
        return {**created, "status": {"phase": "Pending", "qosClass": compute_qos_class(created)}}
    if entry.resource == JOBS:
        return generate_job_selector(created)
    return created


def _prepare_namespace(body: JsonObject, name: str) -> JsonObject:
    metadata = get_metadata(body)
    labels = {**get_mapping(metadata, "labels"), "kubernetes.io/metadata.name": name}
    return {
        **body,
        "metadata": {**metadata, "labels": labels},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _prepare_service(body: JsonObject, identities: IdentityGenerator) -> JsonObject:
    spec = dict(get_mapping(body, "spec"))
    if spec.get("type") != "ExternalName":
        cluster_ip = spec.get("clusterIP") or identities.new_cluster_ip()
        spec |= {"clusterIP": cluster_ip, "clusterIPs": spec.get("clusterIPs") or [cluster_ip]}
    return {**body, "spec": spec}


def compute_qos_class(pod: JsonObject) -> str:
    """Return the QoS class of a pod.

    `BestEffort` without requests and limits, `Guaranteed` if all requests equal limits. Resources
    of the pod take precedence over those of its containers.

    Like `ComputePodQOS` in `pkg/apis/core/v1/helper/qos/qos.go` of Kubernetes 1.36.4.
    """
    spec = get_mapping(pod, "spec")
    pod_resources = get_mapping(spec, "resources")
    containers = [*get_mappings(spec, "containers"), *get_mappings(spec, "initContainers")]
    all_resources = (
        [pod_resources]
        if pod_resources
        else [get_mapping(container, "resources") for container in containers]
    )
    if not any(all_resources):
        return "BestEffort"
    amounts = [
        (_effective_requests(resources), _amounts(resources, "limits"))
        for resources in all_resources
    ]
    if not any(requests or limits for requests, limits in amounts):
        return "BestEffort"
    is_guaranteed = all(
        len(limits) == len(QOS_RESOURCES) and requests == limits for requests, limits in amounts
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _amounts(resources: JsonObject, name: str) -> Amounts:
    quantities = get_mapping(resources, name)
    amounts = {key: to_quantity(quantities[key]) for key in QOS_RESOURCES if key in quantities}
    return {key: amount for key, amount in amounts.items() if amount is not None and amount > 0}


def _effective_requests(resources: JsonObject) -> Amounts:
    """Return the requests; a resource with a limit only requests its limit."""
    requested = get_mapping(resources, "requests")
    limits = _amounts(resources, "limits")
    defaulted = {key: amount for key, amount in limits.items() if key not in requested}
    return {**defaulted, **_amounts(resources, "requests")}


def generate_job_selector(job: JsonObject) -> JsonObject:
    """Return a new Job with unique pod labels and a selector for them.

    Like `generateSelector` in `pkg/registry/batch/job/strategy.go` of Kubernetes 1.36.4.
    """
    if _has_manual_selector(job):
        return job
    spec, template = get_mapping(job, "spec"), get_mapping(job, "spec", "template")
    selector = get_mapping(spec, "selector")
    generated = _generated_labels(job)
    labels: JsonObject = {**generated, **get_mapping(template, "metadata", "labels")}
    match_labels: JsonObject = {
        CONTROLLER_UID_LABEL: generated[CONTROLLER_UID_LABEL],
        **get_mapping(selector, "matchLabels"),
    }
    completed: JsonObject = {
        **spec,
        "selector": {**selector, "matchLabels": match_labels},
        "template": {
            **template,
            "metadata": {**get_mapping(template, "metadata"), "labels": labels},
        },
    }
    return {**job, "spec": completed}


def find_selector_problems(job: JsonObject) -> Iterator[Cause]:
    """Yield problems of a new Job's selector and pod labels, such as labels of another Job.

    Like `validateGeneratedSelector` in `pkg/apis/batch/validation/validation.go` of Kubernetes
    1.36.4.
    """
    selector, template_metadata = (
        get_value(job, "spec", "selector"),
        get_mapping(job, "spec", "template", "metadata"),
    )
    labels = get_mapping(template_metadata, "labels")
    if selector is None:
        yield required("spec.selector")
    if not _has_manual_selector(job):
        generated = _generated_labels(job)
        for key in (LEGACY_UID_LABEL, LEGACY_NAME_LABEL, CONTROLLER_UID_LABEL, JOB_NAME_LABEL):
            if labels.get(key) != generated[key]:
                yield invalid(f"{TEMPLATE_LABELS}[{key}]", labels, f"must be '{generated[key]}'")
        if not selector_matches(selector, generated):
            yield invalid("spec.selector", selector, "`selector` not auto-generated")
    if selector is None or not selector_matches(selector, labels):
        yield invalid(
            TEMPLATE_LABELS, labels or None, "`selector` does not match template `labels`"
        )


def _has_manual_selector(job: JsonObject) -> bool:
    return get_value(job, "spec", "manualSelector") is True


def _generated_labels(job: JsonObject) -> dict[str, Json]:
    metadata = get_metadata(job)
    uid, name = get_text(metadata, "uid"), get_text(metadata, "name")
    return {
        CONTROLLER_UID_LABEL: uid,
        JOB_NAME_LABEL: name,
        LEGACY_UID_LABEL: uid,
        LEGACY_NAME_LABEL: name,
    }
