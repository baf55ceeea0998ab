"""JSON documents of rollout events and run records.

The identity of an object has the same keys as in a plan; units and steps are given by id.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.model.display_paths import location_text
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.plans.change import DiffAction, FieldChange
from tidegate.model.plans.plan import Edge, ItemAction
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.run import RUN_KIND, RUN_VERSION, RunHead, RunObject, RunStep, RunUnit
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId

JSON_VERSION = 2
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


JsonDocument = dict[str, object]


def struct_document(value: msgspec.Struct) -> JsonDocument:
    """Return the JSON document of a value: units by id, objects by identity, without defaults.

    The field `ref` becomes the identity of the document itself.
    """
    document: JsonDocument = {}
    for field in msgspec.structs.fields(value):
        content = getattr(value, field.name)
        if field.name == "ref":
            document |= msgspec.to_builtins(ObjectIdentity.from_ref(content))
        elif content != field.default:
            document[field.encode_name] = _json_value(content)
    return document


def _json_value(value: object) -> object:
    match value:
        case tuple():
            return [_json_value(item) for item in value]
        case UnitId():
            return str(value)
        case Ref():
            return ObjectIdentity.from_ref(value)
        case _:
            return value


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
    message: str = ""
    until: Ms = Ms(0)
    field: str = ""
    location: str = ""
    failed_object: ObjectIdentity | None = None
    """The object because of which a step failed or is tried again."""


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
        message=event.message,
        until=event.until,
        field=event.field,
        location=location_text(event.location),
        failed_object=ObjectIdentity.from_ref(event.failed_object) if event.failed_object else None,
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
        message=document.message,
        until=document.until,
        unit=units.get(document.unit),
        cluster=document.cluster,
        field=document.field,
        location=document.location,
        operation=document.operation,
        fields=document.fields,
        failed_object=document.failed_object.ref if document.failed_object else None,
    )


class RunObjectDocument(
    ObjectIdentity, frozen=True, kw_only=True, omit_defaults=True, rename="camel"
):
    """JSON form of `RunObject`."""

    action: ItemAction = ItemAction.APPLY
    hook: bool = False
    gates: bool = True


class RunStepDocument(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """JSON form of `RunStep`."""

    id: str
    unit: str
    cluster: str = ""
    phase: str = "sync"
    wave: int = 0
    stage: str = ""
    part: int = 0
    objects: tuple[RunObjectDocument, ...] = ()


class RunUnitDocument(
    msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, rename="camel"
):
    """JSON form of `RunUnit`: the unit id and its parts."""

    unit: str
    kind: str = ""
    unit_cluster: str = ""
    """Cluster that has the unit resource."""
    namespace: str = ""
    name: str = ""
    cluster: str = ""
    parent: str = ""
    wave: int | None = None
    manager: str = ""
    out_of_sync_only: bool = False


class RunHeadDocument(msgspec.Struct, frozen=True, kw_only=True):
    """First line of a run record."""

    kind: str = RUN_KIND
    version: int = RUN_VERSION
    digest: str = ""
    at: Ms = Ms(0)
    target: tuple[str, ...] = ()
    simulated: bool = False
    units: tuple[RunUnitDocument, ...] = ()
    steps: tuple[RunStepDocument, ...] = ()
    edges: tuple[Edge, ...] = ()


def run_head_document(head: RunHead) -> RunHeadDocument:
    return RunHeadDocument(
        digest=head.digest,
        at=head.at,
        target=head.target,
        simulated=head.is_simulated,
        units=tuple(map(_unit_document, head.units)),
        steps=tuple(map(_step_document, head.steps)),
        edges=head.edges,
    )


def _unit_document(unit: RunUnit) -> RunUnitDocument:
    unit_id = unit.id
    return RunUnitDocument(
        unit=str(unit_id),
        kind=unit_id.kind,
        unit_cluster=unit_id.cluster,
        namespace=unit_id.namespace,
        name=unit_id.name,
        cluster=unit.cluster,
        parent=str(unit.parent) if unit.parent else "",
        wave=unit.wave,
        manager=unit.manager,
        out_of_sync_only=unit.out_of_sync_only,
    )


def _step_document(step: RunStep) -> RunStepDocument:
    objects = tuple(
        RunObjectDocument(
            **msgspec.structs.asdict(ObjectIdentity.from_ref(item.ref)),
            action=item.action,
            hook=item.is_hook,
            gates=item.is_gating,
        )
        for item in step.objects
    )
    return RunStepDocument(
        id=step.id,
        unit=str(step.unit),
        cluster=step.cluster,
        phase=step.phase,
        wave=step.wave,
        stage=step.stage,
        part=step.part,
        objects=objects,
    )


def run_head_from_document(document: RunHeadDocument) -> RunHead:
    """Return the head of a JSON document. Raises KeyError for an unknown unit."""
    unit_ids = {
        unit.unit: UnitId(unit.kind, unit.unit_cluster, unit.namespace, unit.name)
        for unit in document.units
    }
    return RunHead(
        digest=document.digest,
        at=document.at,
        target=document.target,
        is_simulated=document.simulated,
        units=tuple(_unit_from_document(unit, unit_ids) for unit in document.units),
        steps=tuple(_step_from_document(step, unit_ids) for step in document.steps),
        edges=document.edges,
    )


def _unit_from_document(unit: RunUnitDocument, unit_ids: Mapping[str, UnitId]) -> RunUnit:
    return RunUnit(
        id=unit_ids[unit.unit],
        cluster=unit.cluster,
        parent=unit_ids.get(unit.parent),
        wave=unit.wave,
        manager=unit.manager,
        out_of_sync_only=unit.out_of_sync_only,
    )


def _step_from_document(step: RunStepDocument, unit_ids: Mapping[str, UnitId]) -> RunStep:
    return RunStep(
        id=step.id,
        unit=unit_ids[step.unit],
        cluster=step.cluster,
        phase=step.phase,
        wave=step.wave,
        stage=step.stage,
        part=step.part,
        objects=tuple(
            RunObject(item.ref, item.action, item.hook, item.gates) for item in step.objects
        ),
    )
