"""The time to read YAML, compared with PyYAML's own loader in the same run.

The figures depend on the machine; the ratio hardly does.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import yaml

from tidegate.documents import read_documents
from tidegate.documents.dump import to_json, to_yaml

if TYPE_CHECKING:
    from collections.abc import Callable

OBJECTS = 10_000
ROUNDS = 3

_OBJECT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-{number}
  namespace: shop
  labels:
    app.kubernetes.io/name: web
    app.kubernetes.io/part-of: "shop-{number}"
  annotations:
    argocd.argoproj.io/sync-wave: "{wave}"
spec:
  replicas: 3
  selector:
    matchLabels:
      app.kubernetes.io/name: web
  template:
    metadata:
      labels:
        app.kubernetes.io/name: web
    spec:
      containers:
      - name: web
        image: registry.example/shop/web:1.{number}.0
        args: ["--listen=:8080", "--verbose"]
        ports:
        - containerPort: 8080
          name: http
        env:
        - name: DATABASE_URL
          valueFrom:
            secretKeyRef:
              name: web-database
              key: url
        resources:
          requests:
            cpu: 100m
            memory: 128Mi
        readinessProbe:
          httpGet:
            path: /ready
            port: http
          periodSeconds: 5
"""


def measure() -> dict[str, float]:
    """Megabytes per second, and how many times as fast as PyYAML's loader."""
    text = "---\n".join(_OBJECT.format(number=n, wave=n % 7) for n in range(OBJECTS))
    megabytes = len(text) / 1e6
    bodies = [document.body for document in read_documents(text, "bench.yaml")]
    ours = min(_seconds(lambda: read_documents(text, "bench.yaml")) for _ in range(ROUNDS))
    theirs = min(
        _seconds(lambda: list(yaml.load_all(text, yaml.CSafeLoader))) for _ in range(ROUNDS)
    )
    return {
        "read MB/s": megabytes / ours,
        "CSafeLoader MB/s": megabytes / theirs,
        "read / CSafeLoader": theirs / ours,
        "to_json objects/s": OBJECTS / _seconds(lambda: [to_json(body) for body in bodies]),
        "to_yaml objects/s": OBJECTS / _seconds(lambda: [to_yaml(body) for body in bodies]),
    }


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:<20} {value:12.2f}")
