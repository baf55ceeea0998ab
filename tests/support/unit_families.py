"""A repository of units with children, on the control plane."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from dataclasses import dataclass
from pathlib import Path

from plane import ControlPlane
from plane.audit import read_audit
from tests.support.repositories import (
    Repository,
)
from tests.support.rollout_audit import WRITES
from tests.support.tidegate_command import CommandResult, Tidegate

REPORTERS = ("argocd-application-controller", "gotk-kustomize-controller")
"""The writers of the statuses of units."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """A repository and a cluster; no other test uses its namespaces."""

    plane: ControlPlane
    repository: Repository
    served: bool

    async def run(self, verb: str, *words: str) -> CommandResult:
        is_bound = verb not in {"sync", "delete"} or "--timeout" in words
        within = () if is_bound else ("--timeout", "100s")
        return await Tidegate(self.repository.root.parent).run(verb, *self.words, *words, *within)

    async def killed(self, verb: str, *, after: str, times: int) -> None:
        """Run a command and kill it after so many events of a type."""
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "tidegate",
                verb,
                *map(str, self.words),
                "--yes",
                "-o",
                "json",
            ),
            env={"PATH": os.environ["PATH"], "HOME": str(self.repository.root.parent)},
            stdout=PIPE,
            stderr=PIPE,
        )
        assert process.stdout is not None
        while times and (line := await process.stdout.readline()):
            times -= json.loads(line)["event"] == after
        process.kill()
        assert await process.wait() == -signal.SIGKILL

    @property
    def words(self) -> tuple[str | Path, ...]:
        login = self.plane.kubeconfig("tidegate")
        return self.repository.root, "--kubeconfig", login, "--context", "plane"

    def writes(self) -> list[tuple[str, str]]:
        """Verb and object of what the command wrote in our namespaces, in order, but statuses."""
        suffix = self.repository.suffix
        matches = [
            (item.request_received_timestamp, item.verb, item.object_ref)
            for item in read_audit(self.plane.audit_log)
            if item.user.username == "tidegate"
            and item.verb in WRITES
            and "dryRun=All" not in item.request_uri
            and item.object_ref.resource not in {"leases", "events"}
            and not any(f"fieldManager={name}" in item.request_uri for name in REPORTERS)
            and (item.object_ref.namespace or item.object_ref.name).endswith(suffix)
        ]
        matches.sort(key=lambda item: item[0])
        return [(verb, f"{it.resource}/{it.name.removesuffix(suffix)}") for _, verb, it in matches]

    def firsts(self) -> dict[str, int]:
        """When each object was first written, without the objects of units."""
        names = [name for _, name in self.writes()]
        unit_resource = ("applications/", "kustomizations/", "gitrepositories/")
        others = [name for name in names if not name.startswith(unit_resource)]
        return {name: at for at, name in enumerate(dict.fromkeys(others))}
