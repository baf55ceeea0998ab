"""Who puts an authority where a server is to trust one: webhooks, conversions, APIServices.

cert-manager's injector does so for what has its annotations, when the Certificate or the Secret is
there that is named. OpenShift's does at once. Programs that serve a webhook without either are
taken to do it themselves, as soon as their Service answers.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator

import msgspec

from tidegate.knowledge.catalogue import KnownRows, containers_of, images_of
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.operators import Row
from tidegate.model.reading import listed, mapping, mappings, text
from tidegate.sandbox.controllers.reaction import At, Controller, Looking, Visible
from tidegate.sandbox.controllers.selectors import slices_of
from tidegate.sandbox.controllers.stamps import API_SERVICE
from tidegate.sandbox.kinds import DEFINITIONS, SECRET, SERVICE, WORKLOADS
from tidegate.sandbox.operators import presence
from tidegate.sandbox.server.store import Body, Stored, Transition
from tidegate.world.calls import PatchForm, Verb, Write
from tidegate.world.facts import Change

ADMISSION = "admissionregistration.k8s.io"
HOOKS = (
    Kind(ADMISSION, "v1", "MutatingWebhookConfiguration"),
    Kind(ADMISSION, "v1", "ValidatingWebhookConfiguration"),
)
TRUSTING = (*HOOKS, API_SERVICE, DEFINITIONS)
CERTIFICATE = Kind("cert-manager.io", "v1", "Certificate")
FROM_CERTIFICATE = "cert-manager.io/inject-ca-from"
FROM_SECRET = "cert-manager.io/inject-ca-from-secret"  # noqa: S105 - the name of an annotation
FROM_SERVER = "cert-manager.io/inject-apiserver-ca"
FROM_OPENSHIFT = "service.beta.openshift.io/inject-cabundle"
ASKING = (FROM_CERTIFICATE, FROM_SECRET, FROM_SERVER, FROM_OPENSHIFT)
INJECTOR = "cainjector"
AUTHORITY = base64.b64encode(b"simulated").decode()
LOOKS_AGAIN = Ms(2 * SECOND)
PATIENCE = 20
"""The pause between two looks is at most this part of the wait."""


def authorities(rows: Iterable[Row]) -> Controller:
    """All of them, as one controller."""
    known = KnownRows.of(rows)

    def look(view: Visible, ref: Ref, now: Ms) -> Looking:
        stored = view.get(ref)
        if stored is None or stored.is_deleting:
            return
        places = [*_places(stored)]
        if not places:
            return
        if _is_there(view, stored, known):
            yield _inject(stored, places)
        else:
            waited = now - presence.touched(stored)
            yield At(Ms(now + max(LOOKS_AGAIN, waited // PATIENCE)))

    return Controller("authorities", look, _concerns, kinds=TRUSTING)


def _concerns(_view: Visible, event: Transition) -> Iterator[Ref]:
    if event.stored.ref.kind in TRUSTING and event.change is not Change.DELETED:
        yield event.stored.ref


def _places(stored: Stored) -> Iterator[str]:
    """Where an authority is missing, as pointers into the object."""
    body = stored.body
    asks = any(one in mapping(stored.metadata, "annotations") for one in ASKING)
    if stored.ref.kind in HOOKS:
        for place, hook in enumerate(mappings(body, "webhooks")):
            client = mapping(hook, "clientConfig")
            if mapping(client, "service") and not text(client, "caBundle"):
                yield f"/webhooks/{place}/clientConfig/caBundle"
    elif asks and stored.ref.kind == DEFINITIONS:
        client = mapping(body, "spec", "conversion", "webhook", "clientConfig")
        if mapping(client, "service") and not text(client, "caBundle"):
            yield "/spec/conversion/webhook/clientConfig/caBundle"
    elif asks and mapping(body, "spec", "service") and not text(body, "spec", "caBundle"):
        yield "/spec/caBundle"


def _is_there(view: Visible, stored: Stored, known: KnownRows) -> bool:
    """Whether whoever is to put the authority there can."""
    notes = mapping(stored.metadata, "annotations")
    if FROM_OPENSHIFT in notes:
        return True
    if not any(one in notes for one in ASKING):
        return all(_answers(view, client) for client in _clients(stored))
    if not _has_injector(view):
        return False
    if FROM_CERTIFICATE in notes:
        namespace, _, name = str(notes[FROM_CERTIFICATE]).partition("/")
        row = known.row_of(CERTIFICATE)
        for version in row.versions if row else ():
            kind = Kind(CERTIFICATE.group, version, CERTIFICATE.name)
            certificate = view.get(Ref(kind, namespace, name))
            secret = text(certificate.body, "spec", "secretName") if certificate else ""
            if secret and view.get(Ref(SECRET, namespace, secret)):
                return True
        return False
    if FROM_SECRET in notes:
        namespace, _, name = str(notes[FROM_SECRET]).partition("/")
        return view.get(Ref(SECRET, namespace, name)) is not None or _makes(view, namespace, name)
    return True


def _clients(stored: Stored) -> Iterator[Body]:
    for hook in mappings(stored.body, "webhooks"):
        if service := mapping(hook, "clientConfig", "service"):
            yield service


def _answers(view: Visible, service: Body) -> bool:
    ref = Ref(SERVICE, text(service, "namespace"), text(service, "name"))
    return any(
        listed(endpoint, "addresses") and mapping(endpoint, "conditions").get("ready") is not False
        for slice_ in slices_of(view, ref)
        for endpoint in mappings(slice_.body, "endpoints")
    )


def _has_injector(view: Visible) -> bool:
    return any(
        presence.is_available(one) and any(INJECTOR in image for image in images_of(one.body))
        for kind in WORKLOADS
        for one in view.all_of(kind)
    )


def _makes(view: Visible, namespace: str, name: str) -> bool:
    """Whether a program that runs there was told to make a Secret of this name for itself."""
    return any(
        presence.is_available(one) and any(name in str(word) for word in _words(one.body))
        for kind in WORKLOADS
        for one in view.all_of(kind, namespace)
    )


def _words(workload: Body) -> Iterator[Json]:
    for container in containers_of(workload):
        yield from (*listed(container, "command"), *listed(container, "args"))


def _inject(stored: Stored, places: list[str]) -> Write:
    operations = [{"op": "add", "path": place, "value": AUTHORITY} for place in places]
    return Write(
        verb=Verb.PATCH,
        form=PatchForm.JSON,
        ref=stored.ref,
        body=msgspec.json.encode(operations),
        uid=stored.uid,
        manager=INJECTOR,
    )
