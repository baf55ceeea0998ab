"""Build controllers of Argo CD and Flux from their Go modules, and keep them in the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from plane.binaries.build import cache_home, say_on_stderr
from plane.binaries.modules import fetch_module
from plane.binaries.recipe import BUILD_ENVIRONMENT, read_recipe
from plane.binaries.toolchain import find_go


@dataclass(frozen=True, slots=True)
class Controller:
    """A program, its module, and how its `go.mod` is edited to build outside of its repository."""

    name: str
    module: str
    version: str
    edits: tuple[str, ...]
    package: str = "."
    kept: tuple[str, ...] = ()
    """Directories of the module that are kept beside the program."""

    @property
    def program(self) -> Path:
        return cache_home().parent / "tools" / f"{self.name}-{self.version}"

    @property
    def data(self) -> Path:
        """The directory with what is kept."""
        return self.program.with_name(f"{self.program.name}-data")

    def built(self) -> Path:
        """The program, built if it is not there yet."""
        if not self.program.exists():
            self.program.parent.mkdir(parents=True, exist_ok=True)
            self._build()
        return self.program

    def _build(self) -> None:
        say_on_stderr(f"building {self.module} {self.version}; the first time takes minutes")
        search = os.environ.get("PATH", os.defpath)
        go = find_go(read_recipe().go, directory=cache_home(), search=search, say=say_on_stderr)
        environment = {
            **os.environ,
            **BUILD_ENVIRONMENT,
            "CGO_ENABLED": "0",
            "GOFLAGS": "-buildvcs=false -mod=mod",
        }
        with tempfile.TemporaryDirectory(dir=self.program.parent) as folder:
            source, made = Path(folder) / "source", Path(folder) / "made"
            shutil.copytree(fetch_module(f"{self.module}@{self.version}"), source)
            for path in (source, *source.rglob("*")):
                path.chmod(0o755)
            output = ("-trimpath", "-ldflags", "-s -w", "-o", str(made))
            for arguments in (("mod", "edit", *self.edits), ("build", *output, self.package)):
                subprocess.run([go, *arguments], check=True, cwd=source, env=environment)
            for name in self.kept:
                shutil.copytree(source / name, self.data / name, dirs_exist_ok=True)
            made.rename(self.program)


_FLUX = "github.com/fluxcd/kustomize-controller"
_ARGO = "github.com/argoproj/argo-cd"
_ENGINE = f"{_ARGO}/gitops-engine"
# The module proxy has no gitops-engine of the release: this is the nearest one before it.
_ENGINE_VERSION = "v0.0.0-20260914071520-c9c369efcc5b"
# Its API is in the same repository, and is a separate module here.
KUSTOMIZE_CONTROLLER = Controller(
    "kustomize-controller", _FLUX, "v1.9.4", ("-dropreplace", f"{_FLUX}/api")
)
ARGO_CD = Controller(
    "argocd",
    f"{_ARGO}/v3",
    "v3.5.6",
    (
        *("-dropreplace", _ENGINE),
        *("-require", f"{_ENGINE}@{_ENGINE_VERSION}"),
        *("-replace", f"{_ENGINE}={_ENGINE}@{_ENGINE_VERSION}"),
    ),
    package="./cmd",
    kept=("manifests/crds", "manifests/base/config"),
)


if __name__ == "__main__":
    for controller in (KUSTOMIZE_CONTROLLER, ARGO_CD):
        say_on_stderr(str(controller.built()))
