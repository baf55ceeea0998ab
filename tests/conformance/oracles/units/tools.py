"""The programs that the oracles are and call."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.helm_oracle import find_helm

KUSTOMIZE = "v5.8.1"
"""Modules that are part of both Argo CD 3.5 and Flux 2.9."""

HERE = Path(__file__).parent


def build(name: str, folder: Path) -> Path:
    """The oracle in the folder of that name, as a program."""
    program = folder / Path(name).name
    command = ["nice", "go", "build", "-o", str(program), "."]
    subprocess.run(command, check=True, cwd=HERE / name, env=_environment())
    return program


def find_tools() -> str:
    """A PATH with `helm` and `kustomize` in front."""
    return os.pathsep.join([str(find_helm().parent), str(_kustomize()), os.environ["PATH"]])


def _kustomize() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "tidegate" / "tools" / f"kustomize-{KUSTOMIZE}"
    if not (folder / "kustomize").exists():
        folder.mkdir(parents=True, exist_ok=True)
        module = f"sigs.k8s.io/kustomize/kustomize/v5@{KUSTOMIZE}"
        environment = {**_environment(), "GOBIN": str(folder)}
        command = ["nice", "go", "install", module]
        subprocess.run(command, check=True, cwd="/", env=environment)
    return folder


def _environment() -> dict[str, str]:
    return {**os.environ, "GOFLAGS": "-buildvcs=false", "GOWORK": "off"}
