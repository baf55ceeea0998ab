"""Which controllers are called for a change."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.model.k8s.objects import Json, Kind, Propagation, Ref
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.bootstrap import load_base_objects
from tidegate.sandbox.controller_set import build_controllers
from tidegate.sandbox.controllers.interface import (
    Controller,
    ObjectReader,
    Reconciliation,
    index_by_kind,
)
from tidegate.sandbox.node.profile_file import default_profile
from tidegate.sandbox.server.store import StoreEvent
from tidegate.sandbox.world import START, Sandbox, to_create_write
from tidegate.world.messages import is_error
from tidegate.world.requests import Verb, Write

POD = Kind("", "v1", "Pod")
SECRET = Kind("", "v1", "Secret")
LABELS: Json = {"app": "web"}
CONTAINERS: Json = [{"name": "app", "image": "registry.example/app:1"}]
TEMPLATE: Json = {"metadata": {"labels": LABELS}, "spec": {"containers": CONTAINERS}}
RUN_ONCE: Json = {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}
CLAIM_SPEC: dict[str, Json] = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}
LATE_VOLUME: Json = {"name": "disk", "persistentVolumeClaim": {"claimName": "late"}}
SELECTING: dict[str, Json] = {"selector": {"matchLabels": LABELS}}
CRON_JOB: Json = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": RUN_ONCE}}}
TARGET: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
API_SERVICE: Json = {
    "group": "metrics.example",
    "version": "v1",
    "groupPriorityMinimum": 100,
    "versionPriority": 100,
    "service": {"name": "web", "namespace": "default"},
}
BACKEND: Json = {"service": {"name": "web", "port": {"number": 443}}}
EVERY_KIND: tuple[tuple[str, str, Json], ...] = (
    ("apps/v1", "Deployment", {**SELECTING, "template": TEMPLATE}),
    ("apps/v1", "DaemonSet", {**SELECTING, "template": TEMPLATE}),
    (
        "apps/v1",
        "StatefulSet",
        {
            **SELECTING,
            "serviceName": "web",
            "template": TEMPLATE,
            "volumeClaimTemplates": [{"metadata": {"name": "disk"}, "spec": CLAIM_SPEC}],
        },
    ),
    ("batch/v1", "Job", {"template": RUN_ONCE}),
    ("batch/v1", "CronJob", CRON_JOB),
    ("v1", "Service", {"type": "LoadBalancer", "selector": LABELS, "ports": [{"port": 443}]}),
    ("networking.k8s.io/v1", "Ingress", {"defaultBackend": BACKEND}),
    ("policy/v1", "PodDisruptionBudget", {**SELECTING, "minAvailable": 1}),
    ("autoscaling/v2", "HorizontalPodAutoscaler", {"scaleTargetRef": TARGET, "maxReplicas": 3}),
    ("apiregistration.k8s.io/v1", "APIService", API_SERVICE),
    ("v1", "PersistentVolumeClaim", {**CLAIM_SPEC, "storageClassName": "late"}),
    ("v1", "Pod", {"containers": CONTAINERS, "volumes": [LATE_VOLUME]}),
)
LATE: tuple[dict[str, Json], ...] = (
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}},
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": "example.org/simulated",
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "late", "namespace": "default"},
        "spec": CLAIM_SPEC,
    },
)


def idle(_view: ObjectReader, _ref: Ref, _now: Ms) -> Reconciliation:
    yield from ()


def about_itself(_view: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    yield event.stored.ref


def test_a_controller_is_called_for_its_own_kinds_only() -> None:
    limited = Controller("limited", idle, about_itself, kinds=(POD,))
    unlimited = Controller("unlimited", idle, about_itself)
    controllers_of = index_by_kind([limited, unlimited])

    assert controllers_of(POD.name) == (limited, unlimited)
    assert controllers_of(SECRET.name) == (unlimited,)


def test_another_version_of_a_kind_is_the_same_kind() -> None:
    limited = Controller("limited", idle, about_itself, kinds=(POD,))

    assert index_by_kind([limited])(Kind("", "v2", "Pod").name) == (limited,)


class MissingKinds:
    """Calls every controller for every change, and records those that the index left out."""

    def __init__(self, controllers: tuple[Controller, ...]) -> None:
        self._controllers_of = index_by_kind(controllers)
        self._limited = [controller for controller in controllers if controller.kinds]
        self.missing: dict[tuple[str, str], None] = {}
        self.called: dict[str, None] = {}

    def concerns(self, view: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
        kind = event.stored.ref.kind
        for controller in self._limited:
            if any(True for _ in controller.map_event(view, event)):
                self.called[controller.name] = None
                if controller not in self._controllers_of(kind.name):
                    self.missing[controller.name, kind.name] = None
        yield from ()


async def test_controllers_ignore_kinds_that_they_do_not_declare() -> None:
    controllers = build_controllers(default_profile(), load_builtin_knowledge())
    missing_kinds = MissingKinds(controllers)
    observer = Controller("observer", idle, missing_kinds.concerns)
    sandbox = Sandbox(controllers=(*controllers, observer))
    sandbox.preload(load_base_objects())
    server = sandbox.clusters[""].server

    early, later = (
        [to_create_write(an_object(*parts)) for parts in EVERY_KIND],
        [*map(to_create_write, LATE)],
    )
    await sandbox.wait(Ms(START + SECOND))
    outcomes = [server.perform(write) for write in early]
    await sandbox.wait(Ms(START + 3 * MINUTE))
    outcomes += [server.perform(write) for write in later]
    await sandbox.wait(Ms(START + 6 * MINUTE))
    outcomes += [server.perform(deletion(write)) for write in reversed([*early, *later])]
    await sandbox.wait(Ms(START + 9 * MINUTE))

    assert not [outcome for outcome in outcomes if is_error(outcome)]
    assert not missing_kinds.missing
    assert {
        "deployments",
        "daemon-sets",
        "claims",
        "stamp-APIService",
    } <= missing_kinds.called.keys()


def deletion(write: Write) -> Write:
    return Write(verb=Verb.DELETE, ref=write.ref, propagation=Propagation.FOREGROUND)


def an_object(api_version: str, kind: str, spec: Json) -> dict[str, Json]:
    metadata: dict[str, Json] = {"name": "web"}
    if kind == "APIService":
        metadata["name"] = "v1.metrics.example"
    else:
        metadata["namespace"] = "default"
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
