"""The time to find the units of a repository, with few of them and with many.

One unit creates all others: their files are in nested directories. Each has a small directory in
the same repository; of ten, one is an overlay and one is a chart. For Argo CD they are
Applications, for Flux Kustomizations, with releases for the charts.

The commands run as a user runs them. CPU time includes that of all programs that they start.
`programs` counts the started programs: a second plan without changes renders nothing, and starts
only git.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.cpu_time import spent_by_programs
from tests.support.tidegate_command import Tidegate

SIZES = (100, 1_000, 5_000)
PLANNED = 100
LIMITS = {(1_000, "units s"): 2, (1_000, "units again s"): 2}
"""Seconds, on two cores that have nothing else to do."""
OVERLAY_AT, CHART_AT = 1, 2
"""Which of ten is not a plain directory."""
URL = "https://git.example.com/shop/platform.git"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - {{name: web, image: registry.example/{name}:1.0.0, ports: [{{containerPort: 8080}}]}}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{selector: {{app: {name}}}, ports: [{{port: 80, targetPort: 8080}}]}}
"""
OVERLAY = "resources: [../base]\nnamePrefix: shop-\n"
BASE = "resources: [deployment.yaml, service.yaml]\n"
CHART = "apiVersion: v2\nname: {name}\nversion: 1.0.0\n"
TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data: {replicas: "{{ .Values.replicas }}"}
"""
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: {name}
  namespace: argocd
  annotations: {{argocd.argoproj.io/sync-wave: "{wave}"}}
spec:
  project: default
  source: {{repoURL: {url}, path: {path}, targetRevision: HEAD{more}}}
  destination: {{server: https://kubernetes.default.svc, namespace: shop}}
"""
KUSTOMIZATION = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: {name}, namespace: flux-system}}
spec:
  interval: 10m
  prune: true
  path: ./{path}
  sourceRef: {{kind: GitRepository, name: platform}}
"""
RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: {name}, namespace: flux-system}}
spec:
  interval: 10m
  targetNamespace: shop
  chart: {{spec: {{chart: ./{path}, sourceRef: {{kind: GitRepository, name: platform}}}}}}
"""
REPOSITORY = f"""\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: platform, namespace: flux-system}}
spec: {{interval: 10m, url: {URL}, ref: {{branch: main}}}}
"""


def measure() -> dict[str, float]:
    """Each size by itself, and how the cost grows between them."""
    figures: dict[str, float] = {}
    for dialect, write in (("argo", _application), ("flux", _flux)):
        by_name = {size: _measure(size, write) for size in SIZES}
        for size, values in by_name.items():
            for name, value in values.items():
                limit = f" (limit: {LIMITS[size, name]})" if (size, name) in LIMITS else ""
                figures[f"{dialect} {size:,}, {name}{limit}"] = value
        for name in ("units CPU s", "units again CPU s"):
            spent = {size: values[name] for size, values in by_name.items()}
            figures[f"{dialect}, {name}, growth"] = _growth(spent)
    return figures


def _growth(spent: dict[int, float]) -> float:
    """The cost of one more unit among many, compared with one among few."""
    few, some, many = SIZES
    early = (spent[some] - spent[few]) / (some - few)
    return (spent[many] - spent[some]) / (many - some) / early


def _measure(size: int, write: Callable[[str, str, int], str]) -> dict[str, float]:
    with TemporaryDirectory() as folder:
        root = make_repository(Path(folder) / "platform", size, write)
        user = Tidegate(Path(folder) / "home")
        user.user_home.mkdir()
        figures: dict[str, float] = {}
        for name in ("units", "units again", *(("plan", "plan again") if size <= PLANNED else ())):
            verb, _, _ = name.partition(" ")
            spent, took, programs = _run(user, verb, str(root), "--offline")
            figures[f"{name} CPU s"] = spent
            figures[f"{name} s"] = took
            figures[f"{name} programs"] = programs
        return figures


def _run(user: Tidegate, *words: str) -> tuple[float, float, float]:
    """CPU seconds, seconds, and programs."""
    before, start = spent_by_programs(), perf_counter()
    ran = asyncio.run(user.run(*words))
    if ran.code:
        raise RuntimeError(ran.stderr[-2000:])
    return spent_by_programs() - before, perf_counter() - start, ran.started


def make_repository(root: Path, size: int, write: Callable[[str, str, int], str]) -> Path:
    """A clone with this number of units below one."""
    for number in range(size):
        name = f"app-{number:04}"
        path = f"src/{number % 50:02}/{name}"
        files = _source(name, number)
        for file, text in files.items():
            _put(root / path / file, text)
        start = f"{path}/shop" if "shop/kustomization.yaml" in files else path
        _put(root / f"apps/{number % 20:02}/{number % 7}/{name}.yaml", write(name, start, number))
    _put(root / "root.yaml", _root(write))
    for words in (["init", "--quiet", "-b", "main"], ["remote", "add", "origin", URL]):
        subprocess.run(["git", *words], check=True, cwd=root)  # noqa: S603, S607
    return root


def _root(write: Callable[[str, str, int], str]) -> str:
    if write is _application:
        return APPLICATION.format(
            name="root", wave=0, url=URL, path="apps", more=", directory: {recurse: true}"
        )
    return f"{REPOSITORY}---\n{KUSTOMIZATION.format(name='root', path='apps')}"


def _source(name: str, number: int) -> dict[str, str]:
    plain = {
        "deployment.yaml": DEPLOYMENT.format(name=name),
        "service.yaml": SERVICE.format(name=name),
    }
    if number % 10 == OVERLAY_AT:
        base = {f"base/{file}": text for file, text in plain.items()}
        return {"base/kustomization.yaml": BASE, "shop/kustomization.yaml": OVERLAY, **base}
    if number % 10 == CHART_AT:
        values, template = {"values.yaml": "replicas: 2\n"}, {"templates/config.yaml": TEMPLATE}
        return {"Chart.yaml": CHART.format(name=name), **values, **template}
    return plain


def _application(name: str, path: str, number: int) -> str:
    return APPLICATION.format(name=name, wave=number % 5, url=URL, path=path, more="")


def _flux(name: str, path: str, number: int) -> str:
    if number % 10 == CHART_AT:
        return RELEASE.format(name=name, path=path)
    return f"{KUSTOMIZATION.format(name=name, path=path)}  targetNamespace: shop\n"


def _put(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:<52} {value:10.2f}", flush=True)
