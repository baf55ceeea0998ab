"""What is known of an operator, as rows: which kinds it serves, what they need, write and produce.

A row is data that several parts read: the sandbox plays it, `health` asks when a kind is ready, the
graph asks who needs and who produces what. Texts in `${…}` are filled from the object.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.moment import Ms

EVERY = "*"
"""The group and kind of the row for kinds that have none of their own."""


class _Noun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Read from files as it stands: a key that is no field is a mistake."""


class Check(_Noun):
    """A claim about an object: what stands at `path` is one of `values`, or is there at all.

    `condition` is short for a condition of the status, which is `True` unless `values` say else.
    """

    path: str = ""
    condition: str = ""
    values: tuple[str | int | bool, ...] = ()
    absent: bool = False

    @property
    def place(self) -> str:
        return f"status.conditions[type={self.condition}].status" if self.condition else self.path

    @property
    def wanted(self) -> tuple[str | int | bool, ...]:
        return ("True",) if self.condition and not self.values else self.values


class ServedBy(_Noun):
    """How to know the operator among workloads: any of these is enough.

    `labels`: all of one set. `images`: a part of an image's name. `names`: a pattern with `*`.
    """

    labels: tuple[dict[str, str], ...] = ()
    images: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class Until(StrEnum):
    """What is asked of an object that another one needs."""

    EXISTS = "exists"
    READY = "ready"
    SERVING = "serving"
    """A Service with an endpoint that serves."""


class Need(_Noun):
    """An object that must be there, or be ready, before the operator can do its work.

    With `each`, one for every item of a list. `unmet` is the status that the operator writes while
    it waits. A `lasting` need takes a ready object back when it is no longer met.
    """

    kind: str
    name: str
    group: str = ""
    namespace: str = "${namespace}"
    each: str = ""
    when: tuple[Check, ...] = ()
    until: Until = Until.EXISTS
    lasting: bool = False
    unmet: dict[str, object] = {}


class Product(_Noun):
    """An object that the operator makes. One that is not `owned` stays when its maker goes."""

    object: dict[str, object]
    each: str = ""
    when: tuple[Check, ...] = ()
    owned: bool = True


class Port(_Noun):
    name: str
    port: int


class ServiceProduct(_Noun):
    """A Service that is made at once and answers when the object is ready."""

    name: str
    ports: tuple[Port, ...]
    selector: dict[str, str] = {}
    when: tuple[Check, ...] = ()
    headless: bool = False


class Stage(_Noun):
    """A step on the way to ready: `after` the one before, these objects, then this status."""

    name: str
    after: Ms = Ms(0)
    writes: dict[str, object] = {}
    produces: tuple[Product, ...] = ()


class Row(_Noun):
    """What is known of some kinds of one group that one operator serves alike.

    `observed` is the path at which the operator tells the generation it has seen, if it does.
    Of a `foreign` row only the status is played: its operator does more than make objects.
    """

    group: str
    kinds: tuple[str, ...]
    versions: tuple[str, ...]
    source: str
    stages: tuple[Stage, ...]
    served_by: ServedBy = ServedBy()
    needs: tuple[Need, ...] = ()
    services: tuple[ServiceProduct, ...] = ()
    ready_when: tuple[Check, ...] = ()
    observed: str = ""
    foreign: bool = False
