"""Build the binaries once, and keep them outside the tree.

They are stored in the user's cache directory, under the key of the recipe. A build uses a temporary
directory that is renamed when it is complete, so a partial build is never visible. One process
builds at a time; the others wait and then use the result.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from plane.binaries.recipe import BUILD_ENVIRONMENT, KWOK_MODULE, KWOK_STAGES, Recipe, read_recipe
from plane.binaries.toolchain import Say, find_go
from plane.errors import PlaneError, tail_of
from tidegate.errors import Location

_UNFINISHED = ".building-"
# Set for a Go of another place, they would break the one that was chosen.
_GO_PRIVATE = ("GOROOT", "GOTOOLDIR", "GOBIN", "GOOS", "GOARCH")


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where built programs lie. Starting them needs nothing else: no Go, no module cache."""

    directory: Path

    @property
    def plane(self) -> Path:
        return self.directory / "plane"

    @property
    def kwok(self) -> Path:
        return self.directory / "kwok"

    @property
    def stages(self) -> Path:
        """kwok's own stage files, as they lie in its module."""
        return self.directory / "stages"


def cache_home() -> Path:
    """The directory of ours in the user's cache directory."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "tidegate" / "plane"


def find_binaries() -> Binaries:
    """What was built before. Does not build: a test must not fall silent for eight minutes."""
    binaries = Binaries(cache_home() / read_recipe().key)
    if not binaries.directory.is_dir():
        raise PlaneError(
            "plane.unbuilt",
            "the control plane has not been built",
            location=Location(str(binaries.directory)),
            hint="run `python -m plane build`; the first time takes minutes",
        )
    return binaries


def build(*, say: Say, directory: Path | None = None, search: str | None = None) -> Binaries:
    """Build what the tree asks for, unless it is there already.

    `home` is where binaries are kept, `search` the PATH that Go is looked for on.
    """
    directory, recipe = directory or cache_home(), read_recipe()
    binaries = Binaries(directory / recipe.key)
    if binaries.directory.is_dir():
        return binaries
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(directory, say=say):
        if not binaries.directory.is_dir():
            go = find_go(recipe.go, directory=directory, search=search or _search_path(), say=say)
            _build_whole(recipe, directory=directory, go=go, say=say)
    return binaries


@contextmanager
def _alone(directory: Path, *, say: Say) -> Iterator[None]:
    with (directory / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is building the control plane: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _search_path() -> str:
    return os.environ.get("PATH", os.defpath)


def _build_whole(recipe: Recipe, *, directory: Path, go: Path, say: Say) -> None:
    for left in directory.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(left)
    say(f"building Kubernetes {recipe.kubernetes}, etcd {recipe.etcd} and kwok {recipe.kwok}")
    say("the first time takes minutes (about 8 on two cores): Go downloads and compiles")
    say("all of Kubernetes; later builds find it in Go's own caches")
    scratch = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=directory))
    try:
        run = _GoRun(go, log=directory / "build.log", output=scratch)
        run.log.write_bytes(b"")
        _build_parts(recipe, run, say=say)
        scratch.rename(directory / recipe.key)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _GoRun:
    go: Path
    log: Path
    output: Path

    def __call__(self, *arguments: str, cwd: Path) -> str:
        """Run one `go` command; what it says on stderr goes to the log."""
        kept = {name: value for name, value in os.environ.items() if name not in _GO_PRIVATE}
        environment = {**kept, **BUILD_ENVIRONMENT, "GOBIN": str(self.output)}
        with self.log.open("ab") as log:
            command = [str(self.go), *arguments]
            ended = subprocess.run(
                command, check=False, cwd=cwd, env=environment, stderr=log, stdout=subprocess.PIPE
            )
        if ended.returncode:
            raise PlaneError(
                "plane.build",
                f"`go {arguments[0]}` ended with status {ended.returncode}",
                location=Location(str(self.log)),
                tail=tail_of(self.log),
            )
        return ended.stdout.decode()


def _build_parts(recipe: Recipe, run: _GoRun, *, say: Say) -> None:
    sources, output = recipe.sources, run.output
    with _timed("etcd, apiserver, controller-manager and scheduler, in one program", say=say):
        run(*recipe.plane_arguments, "-o", str(output / "plane"), ".", cwd=sources)
    with _timed("kwok", say=say):
        run(*recipe.kwok_arguments, cwd=output)
        module = f"{KWOK_MODULE}@{recipe.kwok}"
        # Inside our module the question would be about our own graph, which has no kwok.
        directory = run("list", "-m", "-f", "{{.Dir}}", module, cwd=output).strip()
    for name in KWOK_STAGES:
        stage = output / "stages" / name
        stage.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(directory) / "kustomize" / "stage" / name, stage)


@contextmanager
def _timed(what: str, *, say: Say) -> Iterator[None]:
    begun = time.monotonic()
    say(f"  {what} …")
    yield
    say(f"  … done in {time.monotonic() - begun:.0f} s")


def say_on_stderr(line: str) -> None:
    """Talk goes to stderr; stdout is for what another program reads."""
    print(line, file=sys.stderr, flush=True)
