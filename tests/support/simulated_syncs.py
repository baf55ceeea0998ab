"""Simulated syncs as a record of what the engine did to which object, in seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.json_fields import get_int, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND

EXACT: Json = {
    "name": "exact",
    "durations": {"pull": "0s", "start": "0s", "ready": "0s", "run": "1s"},
}
"""Pods are ready at once, and tasks take a second."""
WRITTEN = ("object.written", "object.pruned")


class Done(NamedTuple):
    """One thing that happened, and when."""

    seconds: float
    event: str
    name: str
    operation: str = ""


class SimulatedSync(msgspec.Struct, frozen=True):
    """The documents of a simulation with one engine."""

    documents: tuple[JsonObject, ...]

    @property
    def result(self) -> JsonObject:
        return self.documents[-1]

    @property
    def outcome(self) -> str:
        return get_text(self.result, "outcome")

    def events(self, *types: str) -> list[Done]:
        """Events of these types, by the names of their objects, from the start."""
        start = get_int(self.documents[0], "at")
        return [
            Done(
                (get_int(document, "at") - start) / SECOND,
                get_text(document, "event"),
                get_text(document, "name"),
                get_text(document, "operation"),
            )
            for document in self.documents
            if get_text(document, "event") in types
        ]

    def written(self) -> list[str]:
        """The names of what was written or pruned, in order."""
        return [done.name for done in self.events(*WRITTEN)]

    def times_of(self, name: str) -> list[float]:
        """When an object was written, each time."""
        return [done.seconds for done in self.events("object.written") if done.name == name]


def simulate_sync(
    root: Path, scenario: JsonObject | None = None, *, engine: str = "argocd"
) -> SimulatedSync:
    """Simulate a repository with pods that are ready at once."""
    profile, changes = root.parent / "profile.json", root.parent / "scenario.json"
    profile.write_text(json.dumps(EXACT))
    changes.write_text(json.dumps(scenario or {}))
    ran = tidegate(
        *("simulate", root, "--engine", engine, "--offline", "-o", "json"),
        *("--profile", profile, "--scenario", changes),
    )
    documents = [json.loads(line) for line in ran.stdout.splitlines()]
    assert documents, ran.stderr
    return SimulatedSync(tuple(documents))
