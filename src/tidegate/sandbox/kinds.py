"""Constants for kinds, and facts about built-in kinds beyond their schemas, from `kinds.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec

from tidegate.documents import read_documents
from tidegate.model.k8s.kinds import (
    CLAIM,
    CONFIG_MAP,
    CRD,
    DAEMON_SET,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    REPLICA_SET,
    SECRET,
    SERVICE,
    STATEFUL_SET,
    STORAGE_CLASS,
    VOLUME,
)
from tidegate.model.k8s.objects import Json, Kind

WORKLOADS = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET)
CONFIG_KINDS = (CONFIG_MAP, SECRET)
STORAGE_KINDS = (CLAIM, VOLUME, STORAGE_CLASS)
RUNTIME_KINDS = (*WORKLOADS, REPLICA_SET, JOB, POD, SERVICE, ENDPOINT_SLICE)
WATCHED_KINDS = (*RUNTIME_KINDS, *STORAGE_KINDS, *CONFIG_KINDS, NAMESPACE, NODE, CRD)
"""Kinds that a kubelet, a provisioner and operators watch on a real cluster."""
SERVICE_NAME_LABEL = "kubernetes.io/service-name"
"""The label of an EndpointSlice with the name of its Service."""
KINDS_FILE = Path(__file__).with_suffix(".yaml")


class _ResetRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fields that a write cannot change."""

    kind: str
    """Group and kind."""
    fields: tuple[str, ...]
    """Fields that a write cannot change."""
    through: str = ""
    """The subresource of the write; empty for the object itself."""


class _KindsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `kinds.yaml`."""

    counted: dict[str, tuple[str, ...]]
    """Resources with a `metadata.generation`, by group."""
    selectable: dict[str, frozenset[str]]
    """Fields for field selectors, by kind."""
    first_statuses: dict[str, dict[str, object]]
    """Statuses of new objects, by kind."""
    status_alone: tuple[str, ...]
    """Kinds whose `status` subresource cannot change metadata."""
    resets: tuple[_ResetRule, ...]
    """Unusual fields that a write cannot change."""


def _parse_kind(text: str) -> Kind:
    version, _, name = text.rpartition("/")
    return Kind.of(version, name)


def _parse_group_kind(text: str) -> tuple[str, str]:
    group, _, name = text.rpartition("/")
    return group, name


_KINDS = msgspec.convert(
    read_documents(KINDS_FILE.read_bytes(), KINDS_FILE.name)[0].body, _KindsFile
)
GENERATION_RESOURCES = frozenset(
    (group, plural) for group, plurals in _KINDS.counted.items() for plural in plurals
)
"""Built-in resources with a `metadata.generation`, by group and plural."""
SELECTABLE_FIELDS = {_parse_kind(item): fields for item, fields in _KINDS.selectable.items()}
"""Fields for field selectors besides name and namespace."""
INITIAL_STATUSES = {
    _parse_kind(item): cast("dict[str, Json]", status)
    for item, status in _KINDS.first_statuses.items()
}
"""Statuses of new objects, by kind."""
STATUS_ONLY_KINDS = frozenset(map(_parse_group_kind, _KINDS.status_alone))
"""Built-in kinds whose `status` subresource cannot change metadata."""
RESET_FIELDS = {
    (*_parse_group_kind(reset.kind), reset.through): reset.fields for reset in _KINDS.resets
}
"""Fields that a write cannot change, by group, kind and subresource, where that is unusual.

Like `ResetFieldsStrategy` in `pkg/registry/rest/rest.go` of k8s.io/apiserver 0.36.4.
"""
