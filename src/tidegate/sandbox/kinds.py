"""Kinds by name, and what a server knows of them beyond their shapes: read from `kinds.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec

from tidegate.documents import read
from tidegate.model.objects import Json, Kind

POD = Kind("", "v1", "Pod")
SERVICE = Kind("", "v1", "Service")
NODE = Kind("", "v1", "Node")
NAMESPACE = Kind("", "v1", "Namespace")
CLAIM = Kind("", "v1", "PersistentVolumeClaim")
VOLUME = Kind("", "v1", "PersistentVolume")
CONFIG_MAP = Kind("", "v1", "ConfigMap")
SECRET = Kind("", "v1", "Secret")
SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice")
DEPLOYMENT = Kind("apps", "v1", "Deployment")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet")
DAEMON_SET = Kind("apps", "v1", "DaemonSet")
JOB = Kind("batch", "v1", "Job")
CRON_JOB = Kind("batch", "v1", "CronJob")
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass")
DEFINITIONS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
WORKLOADS = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET)
SETTINGS = (CONFIG_MAP, SECRET)
STORAGE = (CLAIM, VOLUME, STORAGE_CLASS)
RUNNING = (*WORKLOADS, REPLICA_SET, JOB, POD, SERVICE, SLICE)
LOOKED_AT = (*RUNNING, *STORAGE, *SETTINGS, NAMESPACE, NODE, DEFINITIONS)
"""What a kubelet, a provisioner and operators have to see of a cluster that is not their own."""
SERVICE_NAME = "kubernetes.io/service-name"
"""The label by which an EndpointSlice names its Service."""

FILE = Path(__file__).with_suffix(".yaml")


class _Resets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    fields: tuple[str, ...]
    through: str = ""


class _KindBook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    counted: dict[str, tuple[str, ...]]
    selectable: dict[str, frozenset[str]]
    first_statuses: dict[str, dict[str, object]]
    status_alone: tuple[str, ...]
    resets: tuple[_Resets, ...]


def _kind(written: str) -> Kind:
    version, _, name = written.rpartition("/")
    return Kind.of(version, name)


def _group_kind(written: str) -> tuple[str, str]:
    group, _, name = written.rpartition("/")
    return group, name


_BOOK = msgspec.convert(read(FILE.read_bytes(), FILE.name)[0].body, _KindBook)
COUNTED = frozenset((group, one) for group, plurals in _BOOK.counted.items() for one in plurals)
SELECTABLE = {_kind(one): fields for one, fields in _BOOK.selectable.items()}
FIRST_STATUSES = {
    _kind(one): cast("dict[str, Json]", status) for one, status in _BOOK.first_statuses.items()
}
STATUS_ALONE = frozenset(map(_group_kind, _BOOK.status_alone))
RESETS = {(*_group_kind(one.kind), one.through): one.fields for one in _BOOK.resets}
