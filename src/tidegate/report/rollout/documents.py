"""What a rollout tells, as programs read it: one shape for every verb, and for run records.

An object has the keys that a plan has for it; a unit and a step go by their ids.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.model.change import Fate, FieldChange
from tidegate.model.event import Event, Told
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.unit import UnitId
from tidegate.report.places import seen_text

VERSION = 1
"""Of all that is described on the page about JSON."""


class ObjectName(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Which object."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str

    @classmethod
    def of(cls, ref: Ref) -> ObjectName:
        return cls(
            api_version=ref.kind.api_version,
            kind=ref.kind.name,
            namespace=ref.namespace,
            name=ref.name,
        )

    @property
    def ref(self) -> Ref:
        return Ref(Kind.of(self.api_version, self.kind), self.namespace, self.name)


class EventOut(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One event. What does not apply is left out; the first one says the version."""

    at: Ms
    event: Told
    version: int = 0
    unit: str = ""
    cluster: str = ""
    step: str = ""
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    operation: Fate | None = None
    fields: tuple[FieldChange, ...] = ()
    reason: str = ""
    sentence: str = ""
    until: Ms = Ms(0)
    field: str = ""
    where: str = ""


def event_out(event: Event) -> EventOut:
    """An event as all verbs tell it."""
    ref = event.ref
    return EventOut(
        at=event.at,
        event=event.told,
        version=VERSION if event.told is Told.ROLLOUT_BEGUN else 0,
        unit=str(event.unit) if event.unit else "",
        cluster=event.cluster,
        step=event.step,
        api_version=ref.kind.api_version if ref else "",
        kind=ref.kind.name if ref else "",
        namespace=ref.namespace if ref else "",
        name=ref.name if ref else "",
        operation=event.operation,
        fields=event.fields,
        reason=event.reason,
        sentence=event.sentence,
        until=event.until,
        field=event.field,
        where=seen_text(event.where),
    )


def event_in(out: EventOut, units: Mapping[str, UnitId]) -> Event:
    """The event that was told so; units by their ids."""
    kind = Kind.of(out.api_version, out.kind)
    return Event(
        at=out.at,
        told=out.event,
        step=out.step,
        ref=Ref(kind, out.namespace, out.name) if out.kind else None,
        reason=out.reason,
        sentence=out.sentence,
        until=out.until,
        unit=units.get(out.unit),
        cluster=out.cluster,
        field=out.field,
        where=out.where,
        operation=out.operation,
        fields=out.fields,
    )
