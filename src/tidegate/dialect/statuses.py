"""Which kinds of units say how they are on their own objects, and how that is written.

A kind that is not here says nothing: its objects are left as Git has them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import msgspec

from tidegate.dialect.argo.sets.status import set_status
from tidegate.dialect.argo.status import application_status
from tidegate.dialect.flux.release_status import release_status
from tidegate.dialect.flux.status import kustomization_status
from tidegate.dialect.times import stamp
from tidegate.model.account import OwnStatus, Provenance, UnitAccount
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import text

Body = dict[str, Json]
Make = Callable[[Body, UnitAccount, Sequence[Provenance]], OwnStatus | None]
EVENT = Kind("", "v1", "Event")
LONGEST = 1_024
"""Bytes of an Event's message."""


class StatusForm(msgspec.Struct, frozen=True):
    """Of one kind: its group, who its controller is, and what it says.

    `manager` owns what its controller writes into a status. `idle`: fields that alone are no news.
    `follows`: it speaks of what the units say that it brings, also when it has done its own work.
    """

    group: str
    manager: str
    component: str
    make: Make
    idle: frozenset[str] = frozenset()
    follows: bool = False


FORMS = {
    "Application": StatusForm(
        "argoproj.io",
        "argocd-application-controller",
        "argocd-application-controller",
        application_status,
        frozenset({"reconciledAt"}),
    ),
    "ApplicationSet": StatusForm(
        "argoproj.io",
        "argocd-applicationset-controller",
        "argocd-applicationset-controller",
        set_status,
        follows=True,
    ),
    "Kustomization": StatusForm(
        "kustomize.toolkit.fluxcd.io",
        "gotk-kustomize-controller",
        "kustomize-controller",
        kustomization_status,
    ),
    "HelmRelease": StatusForm(
        "helm.toolkit.fluxcd.io",
        "gotk-helm-controller",
        "helm-controller",
        release_status,
    ),
}


def note_of(own: Body, note: tuple[str, str, str], form: StatusForm, now: Ms) -> tuple[Ref, bytes]:
    """A Kubernetes Event about an own object, by whom its controller would send it."""
    severity, reason, message = note
    home, uid = text(own, "metadata", "namespace"), text(own, "metadata", "uid")
    told = "\0".join((uid, *note, str(now))).encode()
    tail = hashlib.blake2b(told, digest_size=8).hexdigest()
    ref = Ref(EVENT, home, f"{text(own, 'metadata', 'name')}.{tail}")
    cut = message.encode()[:LONGEST].decode(errors="ignore")
    body: Body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": ref.name, "namespace": home},
        "involvedObject": {
            "apiVersion": text(own, "apiVersion"),
            "kind": text(own, "kind"),
            "namespace": home,
            "name": text(own, "metadata", "name"),
            "uid": uid,
            "resourceVersion": text(own, "metadata", "resourceVersion"),
        },
        "type": severity,
        "reason": reason,
        "message": cut,
        "source": {"component": form.component},
        "reportingComponent": form.component,
        "reportingInstance": "tidegate",
        "firstTimestamp": stamp(now),
        "lastTimestamp": stamp(now),
        "count": 1,
    }
    return ref, msgspec.json.encode(body)
