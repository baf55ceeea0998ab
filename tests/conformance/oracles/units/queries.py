"""One oracle: a process that answers a line with a line."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import msgspec

from tests.support.expected_units import REPOS, URL
from tidegate.model.k8s.objects import JsonObject


@dataclass(frozen=True)
class Answer:
    """What a unit renders to, or why it does not."""

    objects: list[JsonObject]
    error: str


class Oracle:
    """It runs as long as it has requests."""

    def __init__(self, program: Path, path: str) -> None:
        self.folder = TemporaryDirectory()
        self.process = subprocess.Popen(
            [program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PATH": path, "HOME": self.folder.name, "ARGOCD_LOG_LEVEL": "error"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()

    def ask(self, shape: str, unit: JsonObject, cluster: Sequence[JsonObject]) -> Answer:
        """`cluster`: the objects that the unit could find there."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("the oracle has no ears")
        with TemporaryDirectory() as folder:
            # A copy, since controllers write into what they have fetched.
            root = Path(folder).resolve() / "repository"
            shutil.copytree(REPOS / shape, root, symlinks=True)
            request = {"root": str(root), "url": URL, "unit": unit, "cluster": cluster}
            self.process.stdin.write(msgspec.json.encode(request) + b"\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline().replace(f"{folder}/".encode(), b"")
        document = msgspec.json.decode(line)
        return Answer(document["objects"] or [], document.get("error", ""))

    def generate(self, shape: str, body: JsonObject) -> list[JsonObject]:
        """The Applications of a set."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("the oracle has no ears")
        root = REPOS / shape
        files = {
            str(path.relative_to(root)): path.read_text()
            for path in root.rglob("*")
            if path.is_file()
        }
        request = {"set": body, "files": files, "secrets": []}
        self.process.stdin.write(msgspec.json.encode(request) + b"\n")
        self.process.stdin.flush()
        document = msgspec.json.decode(self.process.stdout.readline())
        names = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
        return [{**names, **application} for application in document["applications"] or []]


def kept(objects: list[JsonObject]) -> str:
    """Canonical JSON, one object a line, sorted."""
    lines = sorted(msgspec.json.encode(body, order="deterministic").decode() for body in objects)
    return "[\n" + ",\n".join(lines) + "\n]\n"
