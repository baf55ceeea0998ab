"""All rules over units that are rendered already: CPU time of one core, at several sizes.

Ten objects are a unit: an account, a Secret, a Service, ConfigMaps, and in a second wave a
Deployment that reads and calls some of them. The cost per object must not grow with their number.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.cpu_time import spent_by_programs
from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.clusters.session import ClusterTargets
from tidegate.linting.repository_files import read_repository_files
from tidegate.linting.run import LintOptions, lint_workspace
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.workspace.request import LoadRequest
from tidegate.workspace.workspace import open_workspace

RUNS = 6
SIZES = (100, 1_000, 5_000)
"""Units; each has ten objects."""
LIMITS = {1_000: 2}
"""By units, CPU seconds."""
URL = "https://git.example.com/shop/platform.git"
UNIT = """apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: {url}, path: units/{name}, targetRevision: v1.0.0}}
  destination: {{server: https://kubernetes.default.svc, namespace: {name}}}
  syncPolicy: {{automated: {{}}, syncOptions: [CreateNamespace=true]}}
"""
OBJECTS = """apiVersion: v1
kind: ServiceAccount
metadata: {{name: {name}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: {name}}}
stringData: {{password: change-me}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{selector: {{app: {name}}}, ports: [{{port: 80}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, annotations: {{argocd.argoproj.io/sync-wave: "1"}}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      serviceAccountName: {name}
      containers:
      - name: main
        image: shop/{name}:1
        envFrom:
        - secretRef: {{name: {name}}}
        - configMapRef: {{name: {name}-0}}
        env:
        - {{name: NEXT_HOST, value: {next}.{next}.svc}}
"""
MAP = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}-{number}}}\ndata: {{a: b}}\n"


def write_repository(folder: Path, units: int) -> None:
    (folder / "apps").mkdir()
    for number in range(units):
        name, after = f"app-{number}", f"app-{(number + 1) % units}"
        place = folder / "units" / name
        place.mkdir(parents=True)
        maps = (MAP.format(name=name, number=part) for part in range(6))
        (place / "all.yaml").write_text(OBJECTS.format(name=name, next=after) + "".join(maps))
        (folder / "apps" / f"{name}.yaml").write_text(UNIT.format(name=name, url=URL))


async def seconds_for(units: int) -> float:
    """The time of one core from rendered units to what the rules say."""
    with tempfile.TemporaryDirectory() as folder:
        write_repository(Path(folder), units)
        pointed, target = (
            LoadRequest(path_or_url=folder),
            ClusterTargets(simulation=SimulationConfig()),
        )
        async with open_workspace(
            pointed, target, user_render_settings(offline=True, maps=())
        ) as opened:
            session, result = opened
            start = time.process_time()
            files = read_repository_files(result.scan)
            await lint_workspace(result, result, session, files, LintOptions(), result.scan.locator)
            return time.process_time() - start


def command_seconds(*words: str) -> float:
    """CPU time of a program that finds itself compiled, as an installed one does; the best run."""
    with tempfile.TemporaryDirectory() as compiled:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        spent = []
        for _ in range(RUNS):
            start = spent_by_programs()
            command = [sys.executable, *words]
            subprocess.run(command, check=True, env=environment, capture_output=True)  # noqa: S603
            spent.append(spent_by_programs() - start)
    return min(spent)


def measure_small() -> dict[str, float]:
    """The whole command on a repository of two units, compared with importing its libraries."""
    with tempfile.TemporaryDirectory() as folder:
        write_repository(Path(folder), 2)
        small = command_seconds("-m", "tidegate", "lint", folder)
    bare = command_seconds("-c", "import asyncio, click, msgspec, yaml")
    return {
        "lint of 20 objects, CPU s (limit: 0.5)": small,
        "the same : its libraries alone": small / bare,
    }


def measure() -> dict[str, float]:
    figures: dict[str, float] = measure_small()
    costs = []
    for units in SIZES:
        spent = asyncio.run(seconds_for(units))
        costs.append(spent / units)
        limit = f" (limit: {LIMITS[units]})" if units in LIMITS else ""
        figures[f"{units * 10} objects of {units} units, CPU s{limit}"] = spent
    figures["cost per object, large : small"] = costs[-1] / costs[0]
    figures["memory at most, MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures
