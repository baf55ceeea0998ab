"""Random repositories of several units, for Argo CD and for Flux, whose objects name each other."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

UnitWriter = Callable[[Path, random.Random, str, list[str]], None]
"""Writes the own object of a unit, given those before it."""
URL = "https://git.example.com/shop/fleet.git"
KUSTOMIZATION = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: {name}, namespace: flux-system}}
spec:
  interval: 10m
  timeout: 2m
  path: ./{name}
  prune: true
  wait: {wait}
  sourceRef: {{kind: GitRepository, name: flux-system}}
  dependsOn: [{depends}]
"""
SOURCE = f"""\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: flux-system, namespace: flux-system}}
spec: {{interval: 1m, url: "{URL}", ref: {{branch: main}}}}
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
  source: {{repoURL: "{url}", path: {path}, targetRevision: main}}
  destination: {{server: "https://kubernetes.default.svc", namespace: default}}
  syncPolicy: {{automated: {{}}}}
"""


def text_of(kind: str, name: str, rest: str) -> str:
    api = {"Deployment": "apps/v1", "Job": "batch/v1"}.get(kind, "v1")
    metadata = f"{{name: {name}, namespace: default}}"
    return f"apiVersion: {api}\nkind: {kind}\nmetadata: {metadata}\n{rest}"


def a_deployment(name: str, container: str) -> str:
    labels = f"{{app: {name}}}"
    pods = (
        f"metadata: {{labels: {labels}}}, spec: {{containers: [{{name: a, image: a{container}}}]}}"
    )
    spec = f"spec: {{selector: {{matchLabels: {labels}}}, template: {{{pods}}}}}\n"
    return text_of("Deployment", name, spec)


def a_job(name: str, container: str) -> str:
    pods = f"spec: {{restartPolicy: Never, containers: [{{name: a, image: a{container}}}]}}"
    return text_of("Job", name, f"spec: {{backoffLimit: 1, template: {{{pods}}}}}\n")


def scatter(dice: random.Random, units: list[str]) -> dict[str, list[str]]:
    """Objects in any unit that name objects in any other."""
    by_name: dict[str, list[str]] = {unit: [] for unit in units}
    named: list[str] = []

    def put(text: str) -> None:
        by_name[dice.choice(units)].append(text)

    for number in range(dice.randint(1, 3)):
        put(text_of("Secret", f"s{number}", "stringData: {a: b}\n"))
        named.append(f", envFrom: [{{secretRef: {{name: s{number}}}}}]")
    for number in range(dice.randint(0, 2)):
        name = f"d{number}"
        selector = f"spec: {{selector: {{app: {name}}}, ports: [{{port: 80}}]}}\n"
        put(text_of("Service", name, selector))
        put(a_deployment(name, dice.choice(["", *named])))
        named.append(f", env: [{{name: DB_HOST, value: {name}}}]")
        named.append(f", command: [sh, -c, 'until nc -z {name} 80; do sleep 1; done']")
    for number in range(dice.randint(1, 4)):
        put(a_job(f"j{number}", dice.choice(named)))
    return by_name


def write_fleet(folder: Path, seed: int, write_unit: UnitWriter) -> None:
    dice = random.Random(seed)
    units = [f"u{number}" for number in range(dice.randint(2, 5))]
    (folder / "clusters").mkdir()
    for number, name in enumerate(units):
        write_unit(folder, dice, name, units[:number])
    for name, texts in scatter(dice, units).items():
        (folder / name).mkdir()
        nothing = text_of("ConfigMap", name, "data: {a: b}\n")
        (folder / name / "all.yaml").write_text("---\n".join(texts or [nothing]))


def write_kustomization(folder: Path, dice: random.Random, name: str, before: list[str]) -> None:
    (folder / "clusters" / "source.yaml").write_text(SOURCE)
    depends = dice.sample(before, min(len(before), dice.randint(0, 2)))
    wait = str(dice.choice([True, True, False])).lower()
    result = ", ".join(f"{{name: {depend}}}" for depend in depends)
    text = KUSTOMIZATION.format(name=name, wait=wait, depends=result)
    (folder / "clusters" / f"{name}.yaml").write_text(text)


def write_application(folder: Path, dice: random.Random, name: str, _before: list[str]) -> None:
    root = APPLICATION.format(name="root", wave=0, url=URL, path="clusters")
    (folder / "root.yaml").write_text(root)
    text = APPLICATION.format(name=name, wave=dice.randint(0, 3), url=URL, path=name)
    (folder / "clusters" / f"{name}.yaml").write_text(text)
