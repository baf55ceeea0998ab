"""What a cluster knows of an object that failed: its pods, what they printed, its Events."""

from __future__ import annotations

import msgspec

from tidegate.model.objects import Ref


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A container that ended badly or cannot run: in whose words, and what it printed last."""

    name: str
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    restarts: int = 0
    log: tuple[str, ...] = ()


class PodEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that is not as it should be."""

    ref: Ref
    phase: str = ""
    reason: str = ""
    message: str = ""
    containers: tuple[Ended, ...] = ()


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes Event, with its subject."""

    subject: str
    reason: str
    message: str
    warning: bool = False
    times: int = 1


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was found of one object, as far as it may be shown."""

    ref: Ref
    pods: tuple[PodEnd, ...] = ()
    notes: tuple[Note, ...] = ()
