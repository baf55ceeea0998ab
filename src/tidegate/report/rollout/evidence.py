"""What is known of an object that failed: its pods, what they printed, Events, what it lacks."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.objects import Ref


class ContainerEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A container that ended badly or cannot run: in whose words, and what it printed last.

    One that `runs` may simply take its time.
    """

    name: str
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    restarts: int = 0
    runs: bool = False
    log: tuple[str, ...] = ()


class PodEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that is not as it should be."""

    ref: Ref
    phase: str = ""
    reason: str = ""
    message: str = ""
    containers: tuple[ContainerEnd, ...] = ()


class KubeEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes Event, with its subject."""

    subject: str
    reason: str
    message: str
    warning: bool = False
    times: int = 1


class Comes(StrEnum):
    """Where a step stands, seen from the one that failed."""

    BEFORE = "before this step"
    SAME = "in this same step"
    BESIDE = "beside this step"
    BEHIND = "behind this step"


class Maker(msgspec.Struct, frozen=True, kw_only=True):
    """An object of the plan that is what is missing, or from which an operator makes it."""

    ref: Ref
    step: str
    comes: Comes


class Lack(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is needed and not there, and who in the plan would make it."""

    ref: Ref
    makers: tuple[Maker, ...] = ()


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was found of one object, as far as it may be shown.

    `unserved` says why nobody does anything about it, where that is so.
    """

    ref: Ref
    cluster: str = ""
    pods: tuple[PodEnd, ...] = ()
    notes: tuple[KubeEvent, ...] = ()
    lacks: tuple[Lack, ...] = ()
    unserved: str = ""
