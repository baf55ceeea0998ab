"""Small repositories, written file by file, and the output of a command for them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import msgspec

from tests.support.tidegate_runs import tidegate

URL = "https://github.com/x/y.git"


def write_files(root: Path, files: dict[str, str], *, url: str = URL) -> Path:
    """Return a directory with these files, a Git repository with a remote."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    run_git(root, "init", "--quiet", "--initial-branch=main")
    run_git(root, "remote", "add", "origin", url)
    return root


def run_git(root: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    command = ("/usr/bin/env", "git", *identity, *words)
    subprocess.run(command, cwd=root, check=True, capture_output=True)


def commit(root: Path) -> None:
    run_git(root, "add", "--all")
    run_git(root, "commit", "--quiet", "--message", "all")


class ReportedFinding(msgspec.Struct, frozen=True):
    """A finding in the JSON report of `lint`."""

    code: str
    severity: str
    message: str
    location: str | None = None
    fix: str = ""


class UnknownInput(msgspec.Struct, frozen=True):
    """An input that could not be checked, in the JSON report of `lint`."""

    message: str


class LintDocument(msgspec.Struct, frozen=True):
    """The JSON report of `lint`."""

    findings: list[ReportedFinding]
    unknown: list[UnknownInput]
    objects: int


def lint_report(root: Path, *words: str) -> LintDocument:
    """Return the JSON report of `lint`."""
    ran = tidegate("lint", root, "--offline", "-o", "json", *words)
    assert ran.stdout, ran.stderr
    return msgspec.json.decode(ran.stdout, type=LintDocument)


def lint_codes(root: Path) -> list[str]:
    """Return the codes of the errors and warnings of `lint`."""
    findings = lint_report(root).findings
    return [finding.code for finding in findings if finding.severity != "note"]


def unit_names(root: Path, *words: str) -> list[str]:
    """Return kind, namespace and name of each unit, or the name of a directory."""
    ran = tidegate("units", root, "--offline", "-o", "json", *words)
    assert ran.stdout, ran.stderr
    return [unit["id"] for unit in json.loads(ran.stdout)["units"]]


def kustomization(name: str, path: str, *, namespace: str = "flux-system", more: str = "") -> str:
    """Return a Flux Kustomization; `more` are fields of its spec, as JSON."""
    return f"""\
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  {{interval: 1h, path: {path}, prune: true{f", {more}" if more else ""},
    sourceRef: {{kind: GitRepository, name: flux-system, namespace: flux-system}}}}
"""


GIT_REPOSITORY = f"""\
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: flux-system, namespace: flux-system}}
spec: {{interval: 1m, url: "{URL}", ref: {{branch: main}}}}
"""


def application(name: str, path: str, *, namespace: str = "default", wave: str = "") -> str:
    """Return an Application of a directory of this repository."""
    annotations = f', annotations: {{argocd.argoproj.io/sync-wave: "{wave}"}}' if wave else ""
    return f"""\
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd{annotations}}}
spec:
  project: default
  source: {{repoURL: "{URL}", targetRevision: main, path: {path}}}
  destination: {{server: "https://kubernetes.default.svc", namespace: {namespace}}}
  syncPolicy: {{automated: {{}}}}
"""


def config_map(name: str, namespace: str = "default") -> str:
    metadata = f"{{name: {name}, namespace: {namespace}}}"
    return f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\n"
