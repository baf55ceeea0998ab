"""A rollout in the audit log of the API server: who wrote what, and when it was ready.

Objects are named after their wave: `w07` is a Deployment of the wave 7, `w07-a` belongs to it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from plane.audit import AuditEntry, read_audit
from tests.support.builders import make_deployment, make_object
from tidegate.model.k8s.objects import JsonObject

WRITES = frozenset({"patch", "create", "update", "delete"})
OWN = frozenset({"tidegate", "admin"})
RESOURCES = frozenset({"deployments", "configmaps"})
CREATED = 201


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    generation: int = 0
    resource_version: str = ""


class _Spec(msgspec.Struct):
    replicas: int = 1


class _Status(msgspec.Struct, rename="camel"):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0


class DeploymentSeen(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def is_ready(self) -> bool:
        expected, status = self.spec.replicas, self.status
        seen = status.observed_generation >= self.metadata.generation
        counts = {status.replicas, status.updated_replicas, status.available_replicas}
        return seen and counts == {expected}


@dataclass(frozen=True, slots=True)
class RecordedWrite:
    """A write of ours that was not a dry run. Times are text that sorts."""

    at: str
    user: str
    resource: str
    name: str
    code: int

    @property
    def wave(self) -> int:
        return wave_of(self.name)


@dataclass(frozen=True, slots=True)
class ReadyWrite:
    """The status write that made a generation of a Deployment ready."""

    received: str
    answered: str
    version: int


@dataclass(frozen=True, slots=True)
class AuditHistory:
    """What happened in one namespace, in the order of the requests."""

    writes: list[RecordedWrite]
    ready: dict[tuple[int, int], ReadyWrite]
    """By wave and generation."""

    def first_write(self, wave: int) -> RecordedWrite:
        return next(write for write in self.writes if write.wave == wave)

    def created(self) -> list[str]:
        return sorted(
            f"{write.resource} {write.name}" for write in self.writes if write.code == CREATED
        )

    def gates(self) -> list[float]:
        """Milliseconds from the status write that opened each gate to the first write after it."""
        last = max(write.wave for write in self.writes)
        return [
            milliseconds(self.ready[wave - 1, 1].answered, self.first_write(wave).at)
            for wave in range(1, last + 1)
        ]


def read_history(log: Path, namespace: str) -> AuditHistory:
    entries = [
        entry
        for entry in read_audit(log)
        if entry.object_ref.namespace == namespace and entry.object_ref.resource in RESOURCES
    ]
    entries.sort(key=lambda entry: entry.request_received_timestamp)
    ready: dict[tuple[int, int], ReadyWrite] = {}
    for entry, deployment in _status_writes(entries):
        key = wave_of(deployment.metadata.name), deployment.metadata.generation
        if deployment.is_ready and key not in ready:
            version = int(deployment.metadata.resource_version)
            received, answered = entry.request_received_timestamp, entry.stage_timestamp
            ready[key] = ReadyWrite(received, answered, version)
    return AuditHistory([_wrote(entry) for entry in entries if is_own_write(entry)], ready)


def is_own_write(entry: AuditEntry) -> bool:
    """Whether one of our users changed something, or tried to."""
    unit_resource = entry.user.username in OWN and entry.verb in WRITES
    return unit_resource and "dryRun=All" not in entry.request_uri


def _wrote(entry: AuditEntry) -> RecordedWrite:
    target = entry.object_ref
    return RecordedWrite(
        entry.request_received_timestamp,
        entry.user.username,
        target.resource,
        target.name,
        entry.response_status.code,
    )


def _status_writes(entries: list[AuditEntry]) -> Iterator[tuple[AuditEntry, DeploymentSeen]]:
    for entry in entries:
        target = (entry.object_ref.resource, entry.object_ref.subresource)
        if target == ("deployments", "status") and entry.response_status.code < CREATED:
            yield entry, msgspec.json.decode(entry.response_object, type=DeploymentSeen)


def wave_of(name: str) -> int:
    return int(name[1:3])


def milliseconds(first: str, then: str) -> float:
    span = datetime.fromisoformat(then) - datetime.fromisoformat(first)
    return span.total_seconds() * 1_000


def a_wave(
    number: int, namespace: str, *, image: str = "app:1", **notes: str
) -> tuple[JsonObject, ...]:
    """A Deployment and two ConfigMaps; notes are annotations that kwok reads on the pods."""
    name = f"w{number:02}"
    deployment = make_deployment(name, image=image)
    spec = deployment["spec"]
    assert isinstance(spec, dict)
    template = spec["template"]
    assert isinstance(template, dict)
    annotations = {
        f"test.tidegate.dev/{key.replace('_', '-')}": note for key, note in notes.items()
    }
    metadata: JsonObject = {"labels": {"app": name}, "annotations": {**annotations}}
    spec = {**spec, "template": {**template, "metadata": metadata}}
    data: JsonObject = {"image": image}
    return (
        make_object("apps/v1 Deployment", name, namespace=namespace, spec=spec),
        make_object("v1 ConfigMap", f"{name}-a", namespace=namespace, data=data),
        make_object("v1 ConfigMap", f"{name}-b", namespace=namespace, data=data),
    )
