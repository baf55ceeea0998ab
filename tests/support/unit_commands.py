"""The commands that are compared, as a user runs them, and how their answers are read."""

from __future__ import annotations

import fcntl
import posixpath
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.support.expected_units import REPOS, URL, Expected, key_file
from tests.support.tidegate_command import CommandResult, Tidegate
from tidegate.model.k8s.objects import JsonObject

SPOT = re.compile(r"^(?P<file>.+?)(?::(?P<line>\d+))?(?::\d+)?(?: \(.*\))?$")


class Source(msgspec.Struct, frozen=True):
    url: str | None = None
    path: str | None = None


class Destination(msgspec.Struct, frozen=True):
    cluster: str | None = None
    namespace: str | None = None


class ShownUnit(msgspec.Struct, frozen=True):
    """A unit as `tidegate units -o json` shows it."""

    id: str
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    parent: str | None = None
    root: bool | None = None
    location: str | None = None
    sources: list[Source] = []
    destination: Destination | None = None
    wave: int | None = None
    dependsOn: list[str] | None = None  # noqa: N815 - as the command calls it
    objects: int | None = None


class ShownFinding(msgspec.Struct, frozen=True):
    """A finding as it shows it."""

    code: str
    severity: str
    location: str | None = None
    message: str = ""


class Answer(msgspec.Struct, frozen=True):
    units: list[ShownUnit]
    findings: list[ShownFinding] = []


class RenderedUnitOutput(msgspec.Struct, frozen=True):
    """A unit as `tidegate render -o units` shows it."""

    unit: str | None
    objects: list[msgspec.Raw]
    errors: list[str]
    notes: list[str]
    findings: list[ShownFinding]

    @property
    def bodies(self) -> list[JsonObject]:
        return [msgspec.json.decode(item) for item in self.objects]

    @property
    def problems(self) -> list[str]:
        return [
            *self.errors,
            *(finding.message for finding in self.findings if finding.severity == "error"),
        ]


@dataclass(frozen=True)
class Checkout:
    """A cloned repository. The output of each command is computed once."""

    root: Path

    @classmethod
    def for_shape(cls, shape: str, folder: Path) -> Checkout:
        root = folder / shape
        if root.exists():
            return cls(root)
        shutil.copytree(REPOS / shape, root, symlinks=True)
        for words in (["init", "--quiet"], ["remote", "add", "origin", URL]):
            subprocess.run(["git", *words], check=True, cwd=root)  # noqa: S607
        return cls(root)

    async def units(self, tidegate: Tidegate, *words: str) -> tuple[CommandResult, Answer]:
        ran = await self._run(tidegate, "units", *words, "-o", "json")
        assert ran.stdout, ran.stderr
        return ran, msgspec.json.decode(ran.stdout, type=Answer)

    async def render(self, tidegate: Tidegate, unit: Expected) -> list[RenderedUnitOutput]:
        """All that go by the name of a unit."""
        entry = ["--root", unit.of] if unit.of else []
        ran = await self._run(tidegate, "render", *entry, "-o", "units")
        made = [msgspec.json.decode(line, type=RenderedUnitOutput) for line in ran.lines]
        return [item for item in made if item.unit == unit.id]

    async def _run(self, tidegate: Tidegate, verb: str, *words: str) -> CommandResult:
        kept = self.root.parent / " ".join([self.root.name, verb, *words]).replace("/", "_")
        with locked(kept.with_name(f"{kept.name}.lock")):
            if not kept.exists():
                ran = await self._ask(tidegate, verb, *words)
                kept.write_bytes(msgspec.json.encode(ran))
            return msgspec.json.decode(kept.read_bytes(), type=CommandResult)

    async def _ask(self, tidegate: Tidegate, verb: str, *words: str) -> CommandResult:
        repository = [str(self.root), "--offline", "--repo-map", f"{URL}={self.root}"]
        key = [line for line in key_file().splitlines() if line.startswith("AGE-SECRET-KEY")]
        tidegate.user_home.mkdir(exist_ok=True)
        return await tidegate.run(verb, *repository, *words, SOPS_AGE_KEY=key[0])

    def position(self, text: str | None) -> tuple[str, int]:
        """A file below the root, and a line in it or 0."""
        result = SPOT.match(text or "")
        if result is None:
            return "", 0
        file = result["file"].removeprefix(str(self.root)).lstrip("/") or "."
        return posixpath.normpath(file.removeprefix(f"{self.root.name}/")), int(result["line"] or 0)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Alone among all processes of a test run."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_at(position: tuple[str, int], expected: str) -> bool:
    """Whether a place is the one that is expected; without a line, any line is right."""
    file, _, line = expected.partition(":")
    return position[0] == file and (not line or position[1] == int(line))
