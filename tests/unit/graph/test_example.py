"""The worked example of the package's own text."""

from __future__ import annotations

from tests.unit.graph.repository import graph_of_text, node
from tidegate.graph.cycles import find_cycles
from tidegate.graph.missing import find_unmet_dependencies
from tidegate.graph.reachability import RelativePosition, StepReachability, relative_position

SHOP = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {argocd.argoproj.io/sync-wave: "1"}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: migrate
        image: acme/migrate
        envFrom:
        - secretRef: {name: db}
---
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata:
  name: db
  annotations: {argocd.argoproj.io/sync-wave: "2"}
spec:
  secretStoreRef: {kind: ClusterSecretStore, name: vault}
  target: {name: db}
  data:
  - {secretKey: password, remoteRef: {key: db}}
"""
FIELD = "spec.template.spec.containers[0].envFrom[0].secretRef"


def test_the_producer_comes_after_the_consumer() -> None:
    graph = graph_of_text(SHOP)
    job, secret = node(graph, "Job shop/migrate"), node(graph, "ExternalSecret shop/db")

    assert (
        relative_position(graph, StepReachability(graph), secret.number, job.number)
        is RelativePosition.AFTER
    )


def test_the_circle_is_told_in_words_with_places() -> None:
    (circle,) = find_cycles(graph_of_text(SHOP))

    assert [f"{link.waiter} {link.reason}" for link in circle.links] == [
        f"Job shop/migrate waits for Secret shop/db ({FIELD})",
        "Secret shop/db is made when ExternalSecret shop/db is ready",
        "ExternalSecret shop/db is applied in wave 2 of shop/app",
        "wave 2 of shop/app starts when wave 1 of shop/app is over",
        "wave 1 of shop/app is over when Job shop/migrate is ready",
    ]
    assert [str(link.location) for link in circle.links[:3]] == [
        "app.yaml:1:1",
        "app.yaml:16:1",
        "app.yaml:16:1",
    ]


def test_what_nobody_brings_is_listed_with_who_needs_it() -> None:
    lacks = find_unmet_dependencies(graph_of_text(SHOP))

    assert [
        (lack.type.value, lack.name, [who.name for who in lack.dependents]) for lack in lacks
    ] == [
        (
            "definition",
            "CustomResourceDefinition externalsecrets.external-secrets.io",
            ["ExternalSecret shop/db"],
        ),
        ("namespace", "Namespace shop", ["Job shop/migrate", "ExternalSecret shop/db"]),
        ("operator", "operator external-secrets", ["ExternalSecret shop/db"]),
        ("secret store", "ClusterSecretStore vault", ["ExternalSecret shop/db"]),
    ]


def test_the_other_way_round_nothing_waits_for_itself() -> None:
    mended = SHOP.replace('"2"', '"0"')

    assert find_cycles(graph_of_text(mended)) == ()
