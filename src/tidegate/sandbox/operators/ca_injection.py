"""CA injection into webhook configurations, CRD conversions and APIServices.

The injector of cert-manager fills objects with its annotations, once the named Certificate or
Secret exists. The injector of OpenShift does so at once. Programs that serve a webhook without
either are assumed to inject the CA themselves, as soon as their Service has ready endpoints.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator

import msgspec

from tidegate.knowledge.catalog import KindCatalog, list_containers, list_images
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import API_SERVICE, CRD, SECRET, SERVICE
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.operators.rows import KindRow
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.interface import (
    Controller,
    ObjectReader,
    Reconciliation,
    RequeueAt,
)
from tidegate.sandbox.controllers.selectors import slices_for_service
from tidegate.sandbox.kinds import WORKLOADS
from tidegate.sandbox.operators import availability
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.world.messages import WatchEventType
from tidegate.world.requests import PatchType, Verb, Write

ADMISSION = "admissionregistration.k8s.io"
WEBHOOK_CONFIGURATIONS = (
    Kind(ADMISSION, "v1", "MutatingWebhookConfiguration"),
    Kind(ADMISSION, "v1", "ValidatingWebhookConfiguration"),
)
INJECTED_KINDS = (*WEBHOOK_CONFIGURATIONS, API_SERVICE, CRD)
CERTIFICATE = Kind("cert-manager.io", "v1", "Certificate")
FROM_CERTIFICATE = "cert-manager.io/inject-ca-from"
FROM_SECRET = "cert-manager.io/inject-ca-from-secret"  # noqa: S105 - the name of an annotation
FROM_API_SERVER = "cert-manager.io/inject-apiserver-ca"
FROM_OPENSHIFT = "service.beta.openshift.io/inject-cabundle"
INJECT_ANNOTATIONS = (FROM_CERTIFICATE, FROM_SECRET, FROM_API_SERVER, FROM_OPENSHIFT)
INJECTOR = "cainjector"
CA_BUNDLE = base64.b64encode(b"simulated").decode()
MIN_RETRY = Ms(2 * SECOND)
RETRY_DIVISOR = 20
"""The delay between two checks grows to this fraction (1/20) of the time waited."""


def ca_injection_controller(rows: Iterable[KindRow]) -> Controller:
    """Return one controller for all CA injectors."""
    catalog = KindCatalog.from_rows(rows)

    def reconcile(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
        stored = reader.get(ref)
        if stored is None or stored.is_deleting:
            return
        paths = [*_missing_bundle_paths(stored)]
        if not paths:
            return
        if _is_injectable(reader, stored, catalog):
            yield _inject(stored, paths)
        else:
            waited = now - availability.last_changed(stored)
            yield RequeueAt(Ms(now + max(MIN_RETRY, waited // RETRY_DIVISOR)))

    return Controller("authorities", reconcile, _map_event, kinds=INJECTED_KINDS)


def _map_event(_reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    if event.stored.ref.kind in INJECTED_KINDS and event.change is not WatchEventType.DELETED:
        yield event.stored.ref


def _missing_bundle_paths(stored: StoredObject) -> Iterator[str]:
    """Yield JSON pointers to the empty `caBundle` fields of an object."""
    body = stored.body
    is_annotated = any(
        annotation in get_mapping(stored.metadata, "annotations")
        for annotation in INJECT_ANNOTATIONS
    )
    if stored.ref.kind in WEBHOOK_CONFIGURATIONS:
        for index, hook in enumerate(get_mappings(body, "webhooks")):
            client = get_mapping(hook, "clientConfig")
            if get_mapping(client, "service") and not get_text(client, "caBundle"):
                yield f"/webhooks/{index}/clientConfig/caBundle"
    elif is_annotated and stored.ref.kind == CRD:
        client = get_mapping(body, "spec", "conversion", "webhook", "clientConfig")
        if get_mapping(client, "service") and not get_text(client, "caBundle"):
            yield "/spec/conversion/webhook/clientConfig/caBundle"
    elif (
        is_annotated
        and get_mapping(body, "spec", "service")
        and not get_text(body, "spec", "caBundle")
    ):
        yield "/spec/caBundle"


def _is_injectable(reader: ObjectReader, stored: StoredObject, catalog: KindCatalog) -> bool:
    """Return whether the injector of an object can run and has its source."""
    annotations = get_mapping(stored.metadata, "annotations")
    if FROM_OPENSHIFT in annotations:
        return True
    if not any(annotation in annotations for annotation in INJECT_ANNOTATIONS):
        return all(_has_ready_endpoint(reader, client) for client in _webhook_services(stored))
    if not _has_injector(reader):
        return False
    if FROM_CERTIFICATE in annotations:
        namespace, _, name = str(annotations[FROM_CERTIFICATE]).partition("/")
        row = catalog.find_row(CERTIFICATE)
        for version in row.versions if row else ():
            kind = Kind(CERTIFICATE.group, version, CERTIFICATE.name)
            certificate = reader.get(Ref(kind, namespace, name))
            secret = get_text(certificate.body, "spec", "secretName") if certificate else ""
            if secret and reader.get(Ref(SECRET, namespace, secret)):
                return True
        return False
    if FROM_SECRET in annotations:
        namespace, _, name = str(annotations[FROM_SECRET]).partition("/")
        return reader.get(Ref(SECRET, namespace, name)) is not None or _creates_secret(
            reader, namespace, name
        )
    return True


def _webhook_services(stored: StoredObject) -> Iterator[JsonObject]:
    for hook in get_mappings(stored.body, "webhooks"):
        if service := get_mapping(hook, "clientConfig", "service"):
            yield service


def _has_ready_endpoint(reader: ObjectReader, service: JsonObject) -> bool:
    ref = Ref(SERVICE, get_text(service, "namespace"), get_text(service, "name"))
    return any(
        get_list(endpoint, "addresses")
        and get_mapping(endpoint, "conditions").get("ready") is not False
        for slice_ in slices_for_service(reader, ref)
        for endpoint in get_mappings(slice_.body, "endpoints")
    )


def _has_injector(reader: ObjectReader) -> bool:
    return any(
        availability.is_available(workload)
        and any(INJECTOR in image for image in list_images(workload.body))
        for kind in WORKLOADS
        for workload in reader.list_objects(kind)
    )


def _creates_secret(reader: ObjectReader, namespace: str, name: str) -> bool:
    """Return whether a running program names this Secret in its command, to create it itself."""
    return any(
        availability.is_available(workload)
        and any(name in str(word) for word in _command_words(workload.body))
        for kind in WORKLOADS
        for workload in reader.list_objects(kind, namespace)
    )


def _command_words(workload: JsonObject) -> Iterator[Json]:
    for container in list_containers(workload):
        yield from (*get_list(container, "command"), *get_list(container, "args"))


def _inject(stored: StoredObject, paths: list[str]) -> Write:
    operations = [{"op": "add", "path": path, "value": CA_BUNDLE} for path in paths]
    return Write(
        verb=Verb.PATCH,
        patch_type=PatchType.JSON,
        ref=stored.ref,
        body=msgspec.json.encode(operations),
        uid=stored.uid,
        manager=INJECTOR,
    )
