"""JSON of Applications and of Flux's objects: no values, which may be secret."""

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


def test_an_application_is_printed_without_its_values() -> None:
    source: Json = {
        "repoURL": f"https://{CANARY}@git.example.com/a.git",
        "path": "web",
        "helm": {"valuesObject": {"password": CANARY}},
    }
    unit_resource: dict[str, Json] = {
        "kind": "Application",
        "metadata": METADATA,
        "spec": {"source": source},
    }
    live: dict[str, Json] = {
        **unit_resource,
        "status": {
            "sync": {"revision": "abc", "comparedTo": {"source": source}},
            "operationState": {"operation": {"sync": {"source": source}}},
            "history": [{"id": 0, "revision": "abc", "source": source}],
        },
    }
    verdict = Verdict(Health.HEALTHY, "Healthy", "")

    result = application_document(
        ApplicationRow("argocd/web", 3, unit_resource, live, True, verdict)
    )

    assert CANARY not in to_json(result).decode()
    assert result["metadata"] == {
        "name": "web",
        "labels": {"team": "shop"},
        "annotations": {"argocd.argoproj.io/sync-wave": "3"},
    }


def test_a_release_is_printed_without_its_values() -> None:
    unit_resource: dict[str, Json] = {
        "kind": "HelmRelease",
        "metadata": METADATA,
        "spec": {"values": {"password": CANARY}, "suspend": True},
    }

    result = flux_document(
        FluxRow(unit_resource, {**unit_resource, "status": {"lastAttempted": CANARY}})
    )

    assert CANARY not in to_json(result).decode()
    assert result["spec"] == {"suspend": True}
