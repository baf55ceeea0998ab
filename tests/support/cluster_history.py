"""What a cluster really went through, seen from inside of it, and whether that was in order."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, Ref
from tidegate.model.plans.plan import Plan
from tidegate.model.times import Ms
from tidegate.sandbox.controllers.interface import Controller, ObjectReader, Reconciliation
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.world.messages import WatchEventType

NOBODYS = "u-nobody"
"""Names of objects that no unit deploys."""


@dataclass(slots=True)
class Record:
    """Every change of a cluster, in the server's own order."""

    changes: list[StoreEvent] = field(default_factory=list)

    def concerns(self, _: ObjectReader, event: StoreEvent) -> Iterable[Ref]:
        self.changes.append(event)
        return ()

    def look(self, _view: ObjectReader, _ref: Ref, _now: Ms) -> Reconciliation:
        yield from ()

    def controller(self) -> Controller:
        return Controller("recorder", self.look, self.concerns)


def is_planned(stored: StoredObject) -> bool:
    """Whether an object belongs to a case and is not a default object of its namespace."""
    return stored.ref.namespace == "default" and stored.ref.name.startswith("u")


def text_of(stored: StoredObject) -> object:
    """Change the text of one object, and add another object."""
    return stored.uid, stored.generation, stored.body.get("data")


def image_of(stored: StoredObject) -> str:
    """Which version of a plan an object is of."""
    if stored.ref.kind.name == "ConfigMap":
        return get_text(stored.body, "data", "image")
    containers = get_mappings(stored.body, "spec", "template", "spec", "containers")
    return get_text(containers[0], "image") if containers else ""


def is_ready(stored: StoredObject) -> bool:
    """The test's own idea of ready, for the objects of its own."""
    match stored.ref.kind.name:
        case "Deployment":
            seen = get_int(stored.body, "status", "observedGeneration") == stored.generation
            return seen and get_int(stored.body, "status", "availableReplicas") > 0
        case "Job":
            conditions = get_mappings(stored.body, "status", "conditions")
            return any(get_text(condition, "type") == "Complete" for condition in conditions)
        case _:
            return True


def assert_record_in_order(plan: Plan, record: Record, *, image: str = "app:1") -> None:
    """No object gets its text before all objects of the steps before it are ready with theirs.

    What was ready and is gone still counts, until it is there again.
    """
    refs = {step.id: [i.ref for b in step.batches for i in b] for step in plan.steps}
    before: dict[Ref, list[Ref]] = {}
    for edge in plan.edges:
        for ref in refs[edge.after]:
            before.setdefault(ref, []).extend(refs[edge.before])
    latest: dict[Ref, StoredObject] = {}
    for event in record.changes:
        stored, ref = event.stored, event.stored.ref
        if not is_planned(stored) or event.change is WatchEventType.DELETED or stored.is_deleting:
            continue
        known, latest[ref] = latest.get(ref), stored
        if ref.name.startswith(NOBODYS):
            continue
        if image_of(stored) != image or (known and text_of(known) == text_of(stored)):
            continue
        for earlier in before.get(ref, ()):
            there = latest.get(earlier)
            assert there is not None, f"{ref} came before {earlier}"
            assert image_of(there) == image, f"{ref} came before {earlier} was new"
            assert is_ready(there), f"{ref} came before {earlier} was ready"


def assert_counted(record: Record) -> None:
    """The journal names every object before it is there: whatever happens, none is forgotten."""
    counted: dict[str, set[str]] = {}
    for event in record.changes:
        stored = event.stored
        if get_text(stored.body, "type") == "tidegate.dev/journal":
            counted[stored.ref.name] = _names(stored)
        elif stored.ref.name.startswith(NOBODYS):
            continue
        elif is_planned(stored) and event.change is WatchEventType.ADDED:
            assert any(stored.ref.name in names for names in counted.values()), stored.ref.name


def _names(journal: StoredObject) -> set[str]:
    """The objects of which a Secret of a journal speaks."""
    document: Json = msgspec.json.decode(
        base64.b64decode(get_text(journal.body, "data", "journal.json"))
    )
    assert isinstance(document, dict)
    return {get_text(line, "ref", "name") for line in get_mappings(document, "entries")}


def remembered(record: Record) -> set[str]:
    """The names in all journals, as they are now."""
    journals: dict[str, set[str]] = {}
    for event in record.changes:
        if get_text(event.stored.body, "type") == "tidegate.dev/journal":
            gone = event.change is WatchEventType.DELETED
            journals[event.stored.ref.name] = set() if gone else _names(event.stored)
    return set[str]().union(*journals.values())


def read_result(stored: StoredObject) -> Json:
    """What an object says, without what differs from one life to the next."""
    spec = get_mapping(stored.body, "spec")
    if stored.ref.kind.name == "Job":
        # The server labels a Job's pods with its uid.
        spec = {**spec, "selector": None, "template": get_mapping(spec, "template").get("spec")}
    return [{**spec}, stored.body.get("data")]
