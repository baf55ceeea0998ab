"""JSON documents of rollout events and run records.

The identity of an object has the same keys as in a plan; units and steps are given by id.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.model.change import DiffAction, FieldChange
from tidegate.model.event import Event, EventType
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.unit import UnitId
from tidegate.report.places import location_text

JSON_VERSION = 1
"""Version of all JSON documents."""


class ObjectIdentity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Identity of an object."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str

    @classmethod
    def from_ref(cls, ref: Ref) -> ObjectIdentity:
        return cls(
            api_version=ref.kind.api_version,
            kind=ref.kind.name,
            namespace=ref.namespace,
            name=ref.name,
        )

    @property
    def ref(self) -> Ref:
        return Ref(Kind.of(self.api_version, self.kind), self.namespace, self.name)


class EventDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """JSON document of an event. Fields that do not apply are left out."""

    at: Ms
    event: EventType
    version: int = 0
    """Version of the documents; only in the first event."""
    unit: str = ""
    cluster: str = ""
    step: str = ""
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    operation: DiffAction | None = None
    fields: tuple[FieldChange, ...] = ()
    reason: str = ""
    sentence: str = ""
    until: Ms = Ms(0)
    field: str = ""
    where: str = ""


def event_document(event: Event) -> EventDocument:
    """Return the JSON document of an event, the same for every command."""
    ref = event.ref
    return EventDocument(
        at=event.at,
        event=event.type,
        version=JSON_VERSION if event.type is EventType.ROLLOUT_STARTED else 0,
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
        sentence=event.message,
        until=event.until,
        field=event.field,
        where=location_text(event.location),
    )


def event_from_document(document: EventDocument, units: Mapping[str, UnitId]) -> Event:
    """Return the event of a JSON document; `units` are given by id."""
    kind = Kind.of(document.api_version, document.kind)
    return Event(
        at=document.at,
        type=document.event,
        step=document.step,
        ref=Ref(kind, document.namespace, document.name) if document.kind else None,
        reason=document.reason,
        message=document.sentence,
        until=document.until,
        unit=units.get(document.unit),
        cluster=document.cluster,
        field=document.field,
        location=document.where,
        operation=document.operation,
        fields=document.fields,
    )
