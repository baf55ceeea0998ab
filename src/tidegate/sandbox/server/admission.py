"""Admission: namespaces, service accounts, priority and runtime classes, quotas, webhooks.

Webhooks are not called. A webhook with a URL, or whose Service has ready endpoints, is assumed
to allow the request, unless an annotation of its configuration denies it. A webhook whose
Service does not exist or has no ready endpoint fails as on a real server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.labels import selector_matches
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.sandbox.kinds import SERVICE_NAME_LABEL
from tidegate.sandbox.server.kind_registry import KindEntry, StatusError
from tidegate.sandbox.server.lifecycle import NAMESPACES, PODS, SERVICES
from tidegate.sandbox.server.store import GroupResource, ObjectStore
from tidegate.world.messages import Cause, Forbidden, NotFound, ServerError

SERVICE_ACCOUNTS = GroupResource("", "serviceaccounts")
ENDPOINT_SLICES = GroupResource("discovery.k8s.io", "endpointslices")
RESOURCE_QUOTAS = GroupResource("", "resourcequotas")
PRIORITY_CLASSES = GroupResource("scheduling.k8s.io", "priorityclasses")
RUNTIME_CLASSES = GroupResource("node.k8s.io", "runtimeclasses")
SYSTEM_PRIORITY_CLASSES = ("system-cluster-critical", "system-node-critical")
"""Priority classes that every cluster has.

Like `systemPriorityClasses` in `pkg/apis/scheduling/v1/helpers.go` of Kubernetes 1.36.4.
"""
ADMISSION_GROUP = "admissionregistration.k8s.io"
WEBHOOK_CONFIGURATIONS = (
    GroupResource(ADMISSION_GROUP, "mutatingwebhookconfigurations"),
    GroupResource(ADMISSION_GROUP, "validatingwebhookconfigurations"),
)
WILDCARD = "*"
CA_INJECTION_ANNOTATIONS = (
    *(f"cert-manager.io/inject-{name}" for name in ("ca-from", "ca-from-secret", "apiserver-ca")),
    "service.beta.openshift.io/inject-cabundle",
)
"""Annotations that request the injection of a CA bundle."""
DENIES_ANNOTATION = "sandbox.tidegate.dev/denies"
"""Annotation of a webhook configuration: its webhooks deny every request with this message."""
UNKNOWN_AUTHORITY = (
    "tls: failed to verify certificate: x509: certificate signed by unknown authority"
)


class AdmissionRequest(NamedTuple):
    """A write that has to be admitted."""

    entry: KindEntry
    """The kind."""
    operation: str
    """`CREATE`, `UPDATE` or `DELETE`."""
    ref: Ref
    """The object."""
    body: JsonObject
    """The body of the object."""
    subresource: str = ""
    """The subresource; empty for the object itself."""


def admit(request: AdmissionRequest, store: ObjectStore) -> None:
    """Check the admission of a write. Raises StatusError for the first rejection.

    Like `Admit` in `pkg/admission/plugin/namespace/lifecycle/admission.go` and `ShouldCallHook` in
    `pkg/admission/plugin/webhook/generic/webhook.go` of k8s.io/apiserver 0.36.4.
    """
    if request.operation == "CREATE":
        _check_namespace(request, store)
        if request.entry.resource == PODS:
            _check_service_account(request, store)
            _check_classes(request, store)
            _check_quota(request, store)
    if request.entry.resource.group != ADMISSION_GROUP:
        _check_webhooks(request, store)


def _check_namespace(request: AdmissionRequest, store: ObjectStore) -> None:
    name = request.ref.namespace
    if not name:
        return
    namespace = store.get(NAMESPACES, "", name)
    if namespace is None:
        raise StatusError(NotFound(f'namespaces "{name}" not found'))
    if namespace.is_deleting:
        message = f"unable to create new content in namespace {name} because it is being terminated"
        cause = Cause(
            "metadata.namespace", "NamespaceTerminating", f"namespace {name} is being terminated"
        )
        raise _forbidden(request, message, cause)


def _check_service_account(request: AdmissionRequest, store: ObjectStore) -> None:
    name = get_text(request.body, "spec", "serviceAccountName", default="default")
    namespace = request.ref.namespace
    if store.get(SERVICE_ACCOUNTS, namespace, name) is None:
        problem = f"error looking up service account {namespace}/{name}"
        raise _forbidden(request, f'{problem}: serviceaccount "{name}" not found')


def _check_classes(request: AdmissionRequest, store: ObjectStore) -> None:
    """Check that the PriorityClass and the RuntimeClass of a pod exist.

    Like `admitPod` in `plugin/pkg/admission/priority/admission.go` and `prepareObjects` in
    `plugin/pkg/admission/runtimeclass/admission.go` of Kubernetes 1.36.4.
    """
    priority = get_text(request.body, "spec", "priorityClassName")
    is_known = (
        priority in SYSTEM_PRIORITY_CLASSES or store.get(PRIORITY_CLASSES, "", priority) is not None
    )
    if priority and not is_known:
        raise _forbidden(request, f"no PriorityClass with name {priority} was found")
    runtime = get_text(request.body, "spec", "runtimeClassName")
    if runtime and store.get(RUNTIME_CLASSES, "", runtime) is None:
        raise _forbidden(request, f'pod rejected: RuntimeClass "{runtime}" not found')


def _check_quota(request: AdmissionRequest, store: ObjectStore) -> None:
    """Check the number of pods; other limits of a quota are not checked.

    Like `CheckRequest` in `pkg/admission/plugin/resourcequota/controller.go` of k8s.io/apiserver
    0.36.4.
    """
    namespace = request.ref.namespace
    for quota in store.get_table(RESOURCE_QUOTAS).list_objects(namespace):
        limit = str(get_value(quota.body, "spec", "hard", "pods"))
        if limit.isdigit():
            pods = store.get_table(PODS).list_objects(namespace)
            phases = (get_text(pod.body, "status", "phase") for pod in pods)
            used = sum(phase not in ("Failed", "Succeeded") for phase in phases)
            if used >= int(limit):
                counts = f"requested: pods=1, used: pods={used}, limited: pods={limit}"
                raise _forbidden(request, f"exceeded quota: {quota.ref.name}, {counts}")


def _forbidden(request: AdmissionRequest, reason: str, *causes: Cause) -> StatusError:
    return StatusError(
        Forbidden(
            f'{request.entry.group_resource} "{request.ref.name}" is forbidden: {reason}', causes
        )
    )


def _check_webhooks(request: AdmissionRequest, store: ObjectStore) -> None:
    for webhook, webhook_annotations in _matching_webhooks(request, store):
        service = get_mapping(webhook, "clientConfig", "service")
        problem = _call_problem(service, store) if service else ""
        if service and not problem and _lacks_ca_bundle(webhook, webhook_annotations):
            problem = f"{_webhook_url(service)}: {UNKNOWN_AUTHORITY}"
        if problem and webhook.get("failurePolicy", "Fail") != "Ignore":
            message = (
                f'failed calling webhook "{webhook.get("name")}": failed to call webhook: {problem}'
            )
            raise StatusError(
                ServerError(500, "InternalError", f"Internal error occurred: {message}")
            )
        if not problem and DENIES_ANNOTATION in webhook_annotations:
            denied = (
                f'admission webhook "{webhook.get("name")}" denied the request:'
                f" {webhook_annotations[DENIES_ANNOTATION]}"
            )
            raise StatusError(Forbidden(denied))


def _call_problem(service: dict[str, Json], store: ObjectStore) -> str:
    """Return why a Service cannot be called; empty if it can."""
    namespace, name = str(service.get("namespace")), str(service.get("name"))
    url = _webhook_url(service)
    if store.get(SERVICES, namespace, name) is None:
        return f'{url}: service "{name}" not found'
    slices = store.get_table(ENDPOINT_SLICES).objects.get(namespace, {})
    for stored in slices.values():
        if stored.labels.get(SERVICE_NAME_LABEL) == name and _has_ready_endpoint(stored.body):
            return ""
    return f'{url}: no endpoints available for service "{name}"'


def _webhook_url(service: dict[str, Json]) -> str:
    namespace, name = str(service.get("namespace")), str(service.get("name"))
    port, path = service.get("port", 443), str(service.get("path") or "/")
    return f'Post "https://{name}.{namespace}.svc:{port}{path}?timeout=10s"'


def _lacks_ca_bundle(webhook: dict[str, Json], annotations: dict[str, Json]) -> bool:
    """Return whether the CA bundle of a webhook is not injected yet."""
    return any(
        annotation in annotations for annotation in CA_INJECTION_ANNOTATIONS
    ) and not get_text(webhook, "clientConfig", "caBundle")


def _has_ready_endpoint(slice_: JsonObject) -> bool:
    return any(
        get_value(endpoint, "conditions", "ready") is not False and get_list(endpoint, "addresses")
        for endpoint in get_mappings(slice_, "endpoints")
    )


def _matching_webhooks(
    request: AdmissionRequest, store: ObjectStore
) -> Iterator[tuple[dict[str, Json], dict[str, Json]]]:
    """Yield matching webhooks, each with the annotations of its configuration.

    Like `ShouldCallHook` in `pkg/admission/plugin/webhook/generic/webhook.go` of k8s.io/apiserver
    0.36.4.
    """
    for resource in WEBHOOK_CONFIGURATIONS:
        for configuration in store.get_table(resource).list_objects(""):
            for webhook in get_mappings(configuration.body, "webhooks"):
                if _webhook_matches(webhook, request, store):
                    yield webhook, get_mapping(configuration.metadata, "annotations")


def _webhook_matches(
    webhook: dict[str, Json], request: AdmissionRequest, store: ObjectStore
) -> bool:
    if not any(_rule_matches(rule, request) for rule in get_mappings(webhook, "rules")):
        return False
    if not selector_matches(
        webhook.get("objectSelector"), get_mapping(request.body, "metadata", "labels")
    ):
        return False
    namespace_name = (
        request.ref.name if request.entry.resource == NAMESPACES else request.ref.namespace
    )
    namespace = store.get(NAMESPACES, "", namespace_name) if namespace_name else None
    return namespace is None or selector_matches(webhook.get("namespaceSelector"), namespace.labels)


def _rule_matches(rule: dict[str, Json], request: AdmissionRequest) -> bool:
    kind = request.entry.kind
    expected = (
        ("operations", request.operation),
        ("apiGroups", kind.group),
        ("apiVersions", kind.version),
    )
    is_match = all({WILDCARD, value} & {*map(str, get_list(rule, key))} for key, value in expected)
    return is_match and any(
        _resource_matches(str(pattern), request) for pattern in get_list(rule, "resources")
    )


def _resource_matches(pattern: str, request: AdmissionRequest) -> bool:
    """Return whether a rule's resource matches: `pods`, `pods/status`, or `pods/*` for both.

    Like `Matcher` in `pkg/admission/plugin/webhook/predicates/rules/rules.go` of k8s.io/apiserver
    0.36.4.
    """
    name, _, subresource = pattern.partition("/")
    return name in (WILDCARD, request.entry.resource.plural) and subresource in (
        WILDCARD,
        request.subresource,
    )
