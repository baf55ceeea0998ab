"""Build a controller of Flux from its Go module, and keep it in the user's cache directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from plane.binaries.build import cache_home, say_on_stderr
from plane.binaries.modules import fetch_module
from plane.binaries.recipe import BUILD_ENVIRONMENT, read_recipe
from plane.binaries.toolchain import find_go

MODULE = "github.com/fluxcd/kustomize-controller"
VERSION = "v1.9.4"


def kustomize_controller() -> Path:
    """The program, built if it is not there yet."""
    program = cache_home().parent / "tools" / f"kustomize-controller-{VERSION}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        _build(program)
    return program


def _build(program: Path) -> None:
    say_on_stderr(f"building {MODULE} {VERSION}; the first time takes minutes")
    search = os.environ.get("PATH", os.defpath)
    go = find_go(read_recipe().go, directory=cache_home(), search=search, say=say_on_stderr)
    environment = {**os.environ, **BUILD_ENVIRONMENT, "GOFLAGS": "-buildvcs=false -mod=mod"}
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        source, made = Path(folder) / "source", Path(folder) / "made"
        shutil.copytree(fetch_module(f"{MODULE}@{VERSION}"), source)
        for path in (source, *source.rglob("*")):
            path.chmod(0o755)
        # Its API is in the same repository, and is a separate module here.
        for arguments in (
            ("mod", "edit", "-dropreplace", f"{MODULE}/api"),
            ("build", "-trimpath", "-ldflags", "-s -w", "-o", str(made), "."),
        ):
            subprocess.run([go, *arguments], check=True, cwd=source, env=environment)
        made.rename(program)


if __name__ == "__main__":
    say_on_stderr(str(kustomize_controller()))
