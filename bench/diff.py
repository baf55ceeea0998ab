"""`diff` of a repository of 1,000 units of which one changed, compared with one `lint`,
and with one discovery (`units`), which renders all units.

Every tenth unit is an overlay, whose objects come from the cache of renders in a warm run. The
other revision costs as much as another lint. The rest above twice `lint` is the comparison.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.cpu_time import spent_by_programs

UNITS = 1_000
OVERLAYS = 10
"""Units per overlay."""
LIMIT = 5
"""Seconds of a warm run."""
URL = "https://git.example.com/shop/platform.git"
APPLICATION = """apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd, annotations: {{{wave}}}}}
spec:
  project: default
  source: {{repoURL: {url}, path: units/{name}, targetRevision: main}}
  destination: {{server: https://kubernetes.default.svc, namespace: {name}}}
  syncPolicy: {{automated: {{}}, syncOptions: [CreateNamespace=true]}}
"""
WAVE = 'argocd.argoproj.io/sync-wave: "{}"'
OBJECTS = """apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: {name}}}
data: {{a: b}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {name}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - name: main
        image: shop/{name}:1
        envFrom: [{{configMapRef: {{name: {name}}}}}]
"""
OVERLAY = "resources: [all.yaml]\n"


class Spent(NamedTuple):
    """What one run of a command took."""

    seconds: float
    cpu_seconds: float


def write_repository(root: Path) -> None:
    """Write a root Application of 1,000 Applications, and commit it."""
    (root / "apps").mkdir(parents=True)
    (root / "root.yaml").write_text(
        APPLICATION.format(name="root", wave="", url=URL).replace("units/root", "apps")
    )
    for number in range(UNITS):
        name = f"app-{number}"
        place = root / "units" / name
        place.mkdir(parents=True)
        (place / "all.yaml").write_text(OBJECTS.format(name=name))
        if number % OVERLAYS == 0:
            (place / "kustomization.yaml").write_text(OVERLAY)
        wave = WAVE.format(number % 5)
        text = APPLICATION.format(name=name, wave=wave, url=URL)
        (root / "apps" / f"{name}.yaml").write_text(text)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("remote", "add", "origin", URL),
        ("add", "--all"),
        ("commit", "--quiet", "--message=all"),
    ):
        subprocess.run(("git", *identity, *words), cwd=root, check=True)  # noqa: S603, S607


def run(root: Path, cache: Path, *words: str) -> Spent:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    start, cpu_start = time.perf_counter(), spent_by_programs()
    command = [sys.executable, "-m", "tidegate", *words, str(root), "--offline"]
    subprocess.run(command, env=environment, check=False, capture_output=True)  # noqa: S603
    return Spent(time.perf_counter() - start, spent_by_programs() - cpu_start)


def measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        root, cache = Path(folder, "platform"), Path(folder, "cache")
        write_repository(root)
        changed = root / "apps" / "app-7.yaml"
        changed.write_text(changed.read_text().replace(WAVE.format(2), WAVE.format(9)))
        cold = run(root, cache, "diff")
        warm = run(root, cache, "diff")
        lint = run(root, cache, "lint")
        discovery = run(root, cache, "units")
    return {
        f"diff cold, s ({UNITS} units, 1 changed)": cold.seconds,
        f"diff warm, s (limit: {LIMIT})": warm.seconds,
        "diff cold, CPU s": cold.cpu_seconds,
        "diff warm, CPU s": warm.cpu_seconds,
        "lint warm, CPU s": lint.cpu_seconds,
        "units warm, CPU s": discovery.cpu_seconds,
        "diff warm : lint warm, CPU (2: both revisions)": warm.cpu_seconds / lint.cpu_seconds,
    }
