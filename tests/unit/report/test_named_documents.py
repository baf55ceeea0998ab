"""What programs are told of Applications and of Flux's objects: no values, which may be secret."""

from __future__ import annotations

from tidegate.documents.dump import to_json
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.report.applications import ApplicationRow, application_document
from tidegate.report.flux import FluxRow, flux_document

CANARY = "c4n4ry"
METADATA: Json = {
    "name": "web",
    "labels": {"team": "shop"},
    "annotations": {
        "argocd.argoproj.io/sync-wave": "3",
        "kubectl.kubernetes.io/last-applied-configuration": CANARY,
    },
}


def test_an_application_is_told_without_its_values() -> None:
    source: Json = {
        "repoURL": f"https://{CANARY}@git.example.com/a.git",
        "path": "web",
        "helm": {"valuesObject": {"password": CANARY}},
    }
    own: dict[str, Json] = {"kind": "Application", "metadata": METADATA, "spec": {"source": source}}
    live: dict[str, Json] = {
        **own,
        "status": {
            "sync": {"revision": "abc", "comparedTo": {"source": source}},
            "operationState": {"operation": {"sync": {"source": source}}},
            "history": [{"id": 0, "revision": "abc", "source": source}],
        },
    }
    verdict = Verdict(Health.HEALTHY, "Healthy", "")

    told = application_document(ApplicationRow("argocd/web", 3, own, live, True, verdict))

    assert CANARY not in to_json(told).decode()
    assert told["metadata"] == {
        "name": "web",
        "labels": {"team": "shop"},
        "annotations": {"argocd.argoproj.io/sync-wave": "3"},
    }


def test_a_release_is_told_without_its_values() -> None:
    own: dict[str, Json] = {
        "kind": "HelmRelease",
        "metadata": METADATA,
        "spec": {"values": {"password": CANARY}, "suspend": True},
    }

    told = flux_document(FluxRow(own, {**own, "status": {"lastAttempted": CANARY}}))

    assert CANARY not in to_json(told).decode()
    assert told["spec"] == {"suspend": True}
