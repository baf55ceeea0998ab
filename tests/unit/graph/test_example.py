"""The worked example of the package's own text."""

from __future__ import annotations

from tests.support.recorded_wording import RecordedWording
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


def test_the_producer_is_deployed_after_the_consumer() -> None:
    graph = graph_of_text(SHOP)
    job, secret = node(graph, "Job shop/migrate"), node(graph, "ExternalSecret shop/db")

    assert (
        relative_position(graph, StepReachability(graph), secret.number, job.number)
        is RelativePosition.AFTER
    )


def test_a_cycle_is_explained_with_locations(wording: RecordedWording) -> None:
    (circle,) = find_cycles(graph_of_text(SHOP))

    wording(f"{link.waiter} {link.reason}" for link in circle.links)
    assert [str(link.location) for link in circle.links[:3]] == [
        "app.yaml:1:1",
        "app.yaml:16:1",
        "app.yaml:16:1",
    ]


def test_missing_objects_are_listed_with_their_dependents(wording: RecordedWording) -> None:
    missing = find_unmet_dependencies(graph_of_text(SHOP))

    wording(item.name for item in missing)
    assert [
        (item.type.value, [dependent.name for dependent in item.dependents]) for item in missing
    ] == [
        ("definition", ["ExternalSecret shop/db"]),
        ("namespace", ["Job shop/migrate", "ExternalSecret shop/db"]),
        ("operator", ["ExternalSecret shop/db"]),
        ("secret store", ["ExternalSecret shop/db"]),
    ]


def test_in_the_reverse_order_there_is_no_cycle() -> None:
    fixed = SHOP.replace('"2"', '"0"')

    assert find_cycles(graph_of_text(fixed)) == ()
