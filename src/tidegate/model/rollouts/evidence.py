"""Diagnostics of a failed object: pods, logs, Events and missing dependencies."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.k8s.objects import Ref


class ContainerFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A container that failed or cannot start, with its last log lines."""

    name: str
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    restarts: int = 0
    is_running: bool = False
    """Whether the container is running and may only need more time."""
    log: tuple[str, ...] = ()


class PodFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that is not healthy."""

    ref: Ref
    phase: str = ""
    reason: str = ""
    message: str = ""
    containers: tuple[ContainerFailure, ...] = ()


class KubeEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes Event and its subject."""

    subject: str
    reason: str
    message: str
    is_warning: bool = False
    count: int = 1


class StepRelation(StrEnum):
    """Position of a step relative to the step that failed."""

    BEFORE = "before this step"
    SAME_STEP = "in this step"
    PARALLEL = "in parallel with this step"
    AFTER = "after this step"


class ProducerRef(msgspec.Struct, frozen=True, kw_only=True):
    """An object of the plan that is a missing object or from which an operator creates it."""

    ref: Ref
    step: str
    relation: StepRelation


class MissingRef(msgspec.Struct, frozen=True, kw_only=True):
    """A missing object, and the objects of the plan that would create it."""

    ref: Ref
    producers: tuple[ProducerRef, ...] = ()


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Diagnostics of one object, without secrets."""

    ref: Ref
    cluster: str = ""
    pods: tuple[PodFailure, ...] = ()
    events: tuple[KubeEvent, ...] = ()
    missing: tuple[MissingRef, ...] = ()
    not_served_reason: str = ""
    """Why no controller or API serves the object, where this is the problem."""


class ContainerLog(msgspec.Struct, frozen=True, kw_only=True):
    """Last log lines of a container."""

    object: Ref
    """Object of the unit that the container runs for."""
    pod: Ref
    container: str
    state: str
    lines: tuple[str, ...] = ()
