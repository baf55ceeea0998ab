"""Who may refuse an object that is well: namespaces, accounts, classes, quotas, webhooks.

A webhook is not run. One whose Service has ready endpoints, or that is called by URL, is taken to
agree, unless an annotation of its configuration says what it denies with. One whose Service is not
there, or has no endpoint that is ready, fails as it would.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidegate.model.labels import matches
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import listed, mapping, mappings, part, text
from tidegate.sandbox.kinds import SERVICE_NAME
from tidegate.sandbox.server.lifecycle import NAMESPACES, PODS, SERVICES
from tidegate.sandbox.server.register import KindEntry, RefusedCall
from tidegate.sandbox.server.store import Body, ObjectStore, Resource
from tidegate.world.facts import Cause, Failed, Forbidden, Missing

ACCOUNTS = Resource("", "serviceaccounts")
SLICES = Resource("discovery.k8s.io", "endpointslices")
QUOTAS = Resource("", "resourcequotas")
PRIORITIES = Resource("scheduling.k8s.io", "priorityclasses")
RUNTIMES = Resource("node.k8s.io", "runtimeclasses")
SYSTEM_PRIORITIES = ("system-cluster-critical", "system-node-critical")
"""Every cluster has these."""
ADMISSION = "admissionregistration.k8s.io"
HOOKS = (
    Resource(ADMISSION, "mutatingwebhookconfigurations"),
    Resource(ADMISSION, "validatingwebhookconfigurations"),
)
EVERY = "*"
INJECTED = (
    *(f"cert-manager.io/inject-{one}" for one in ("ca-from", "ca-from-secret", "apiserver-ca")),
    "service.beta.openshift.io/inject-cabundle",
)
"""By these annotations somebody is asked to say whom to trust."""
DENIES = "sandbox.tidegate.dev/denies"
"""On a configuration: its webhooks say no to whatever they are asked about, in these words."""
UNTRUSTED = "tls: failed to verify certificate: x509: certificate signed by unknown authority"


class Admission(NamedTuple):
    """A write that asks to be admitted."""

    entry: KindEntry
    operation: str
    ref: Ref
    body: Body
    subresource: str = ""


def admit(asked: Admission, store: ObjectStore) -> None:
    """Raise the refusal of the first who refuses."""
    if asked.operation == "CREATE":
        _check_namespace(asked, store)
        if asked.entry.resource == PODS:
            _check_account(asked, store)
            _check_classes(asked, store)
            _check_quota(asked, store)
    if asked.entry.resource.group != ADMISSION:
        _check_webhooks(asked, store)


def _check_namespace(asked: Admission, store: ObjectStore) -> None:
    name = asked.ref.namespace
    if not name:
        return
    namespace = store.get(NAMESPACES, "", name)
    if namespace is None:
        raise RefusedCall(Missing(f'namespaces "{name}" not found'))
    if namespace.is_deleting:
        message = f"unable to create new content in namespace {name} because it is being terminated"
        cause = Cause(
            "metadata.namespace", "NamespaceTerminating", f"namespace {name} is being terminated"
        )
        raise _forbidden(asked, message, cause)


def _check_account(asked: Admission, store: ObjectStore) -> None:
    name = text(asked.body, "spec", "serviceAccountName", default="default")
    place = asked.ref.namespace
    if store.get(ACCOUNTS, place, name) is None:
        looking = f"error looking up service account {place}/{name}"
        raise _forbidden(asked, f'{looking}: serviceaccount "{name}" not found')


def _check_classes(asked: Admission, store: ObjectStore) -> None:
    """What a pod says of its priority and of its runtime must be there."""
    priority = text(asked.body, "spec", "priorityClassName")
    is_known = priority in SYSTEM_PRIORITIES or store.get(PRIORITIES, "", priority) is not None
    if priority and not is_known:
        raise _forbidden(asked, f"no PriorityClass with name {priority} was found")
    runtime = text(asked.body, "spec", "runtimeClassName")
    if runtime and store.get(RUNTIMES, "", runtime) is None:
        raise _forbidden(asked, f'pod rejected: RuntimeClass "{runtime}" not found')


def _check_quota(asked: Admission, store: ObjectStore) -> None:
    """Pods are counted; of all that a quota can limit, this alone is looked at."""
    place = asked.ref.namespace
    for quota in store.table(QUOTAS).rows(place):
        limit = str(part(quota.body, "spec", "hard", "pods"))
        if limit.isdigit():
            pods = store.table(PODS).rows(place)
            phases = (text(pod.body, "status", "phase") for pod in pods)
            used = sum(phase not in ("Failed", "Succeeded") for phase in phases)
            if used >= int(limit):
                counts = f"requested: pods=1, used: pods={used}, limited: pods={limit}"
                raise _forbidden(asked, f"exceeded quota: {quota.ref.name}, {counts}")


def _forbidden(asked: Admission, why: str, *causes: Cause) -> RefusedCall:
    return RefusedCall(
        Forbidden(f'{asked.entry.title} "{asked.ref.name}" is forbidden: {why}', causes)
    )


def _check_webhooks(asked: Admission, store: ObjectStore) -> None:
    for hook, notes in _matching_webhooks(asked, store):
        service = mapping(hook, "clientConfig", "service")
        trouble = _trouble(service, store) if service else ""
        if service and not trouble and _lacks_authority(hook, notes):
            trouble = f"{_url(service)}: {UNTRUSTED}"
        if trouble and hook.get("failurePolicy", "Fail") != "Ignore":
            told = f'failed calling webhook "{hook.get("name")}": failed to call webhook: {trouble}'
            raise RefusedCall(Failed(500, "InternalError", f"Internal error occurred: {told}"))
        if not trouble and DENIES in notes:
            denied = f'admission webhook "{hook.get("name")}" denied the request: {notes[DENIES]}'
            raise RefusedCall(Forbidden(denied))


def _trouble(service: dict[str, Json], store: ObjectStore) -> str:
    """Why a Service cannot be called; empty where it can."""
    namespace, name = str(service.get("namespace")), str(service.get("name"))
    url = _url(service)
    if store.get(SERVICES, namespace, name) is None:
        return f'{url}: service "{name}" not found'
    slices = store.table(SLICES).objects.get(namespace, {})
    for stored in slices.values():
        if stored.labels.get(SERVICE_NAME) == name and _has_ready(stored.body):
            return ""
    return f'{url}: no endpoints available for service "{name}"'


def _url(service: dict[str, Json]) -> str:
    namespace, name = str(service.get("namespace")), str(service.get("name"))
    port, path = service.get("port", 443), str(service.get("path") or "/")
    return f'Post "https://{name}.{namespace}.svc:{port}{path}?timeout=10s"'


def _lacks_authority(hook: dict[str, Json], notes: dict[str, Json]) -> bool:
    """Whether a server would not trust it: somebody is to say whom to trust, and has not yet."""
    return any(one in notes for one in INJECTED) and not text(hook, "clientConfig", "caBundle")


def _has_ready(slice_: Body) -> bool:
    return any(
        part(endpoint, "conditions", "ready") is not False and listed(endpoint, "addresses")
        for endpoint in mappings(slice_, "endpoints")
    )


def _matching_webhooks(
    asked: Admission, store: ObjectStore
) -> Iterator[tuple[dict[str, Json], dict[str, Json]]]:
    """Each with the annotations of what configures it."""
    for resource in HOOKS:
        for configuration in store.table(resource).rows(""):
            for hook in mappings(configuration.body, "webhooks"):
                if _matches(hook, asked, store):
                    yield hook, mapping(configuration.metadata, "annotations")


def _matches(hook: dict[str, Json], asked: Admission, store: ObjectStore) -> bool:
    if not any(_rule_matches(rule, asked) for rule in mappings(hook, "rules")):
        return False
    if not matches(hook.get("objectSelector"), mapping(asked.body, "metadata", "labels")):
        return False
    place = asked.ref.name if asked.entry.resource == NAMESPACES else asked.ref.namespace
    namespace = store.get(NAMESPACES, "", place) if place else None
    return namespace is None or matches(hook.get("namespaceSelector"), namespace.labels)


def _rule_matches(rule: dict[str, Json], asked: Admission) -> bool:
    kind = asked.entry.kind
    wanted = (
        ("operations", asked.operation),
        ("apiGroups", kind.group),
        ("apiVersions", kind.version),
    )
    is_meant = all({EVERY, value} & {*map(str, listed(rule, key))} for key, value in wanted)
    return is_meant and any(_names(str(one), asked) for one in listed(rule, "resources"))


def _names(pattern: str, asked: Admission) -> bool:
    """`pods` is the object alone, `pods/status` a part of it, `pods/*` both."""
    name, _, below = pattern.partition("/")
    return name in (EVERY, asked.entry.resource.plural) and below in (EVERY, asked.subresource)
