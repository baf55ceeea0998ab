"""The parts of a large journal hold what is remembered, also after that has changed."""

from __future__ import annotations

import base64
from collections.abc import Iterable

import msgspec

from tidegate.engine.cluster.procedures import Pause
from tidegate.engine.records.record import ENTRIES_PER_PART, UnitRecord
from tidegate.model.k8s.objects import Kind, LiveObject, Ref
from tidegate.model.rollouts.journal import JournalEntry
from tidegate.model.times import Ms
from tidegate.world.messages import Conflict, NotFound, Outcome, Success
from tidegate.world.requests import Get, Request, Write

CONFIG_MAP = Kind("", "v1", "ConfigMap")
MANY = [f"m{number}" for number in range(ENTRIES_PER_PART + 1)]


class Secrets:
    """A cluster that has nothing but the Secrets of one record."""

    def __init__(self) -> None:
        self.stored: dict[Ref, LiveObject] = {}
        self.written: dict[str, list[str]] = {}
        """The names in each Secret that was written since the last call."""

    def answer(self, request: Request) -> Outcome:
        assert isinstance(request, Get | Write)
        ref = request.ref
        known = self.stored.get(ref)
        if not isinstance(request, Write):
            return NotFound("") if known is None else Success(known)
        if (known.resource_version if known else "") != request.resource_version:
            return Conflict("changed")
        version = str(int(request.resource_version or 0) + 1)
        self.stored[ref] = live = LiveObject(ref, "uid", 1, version, request.body)
        self.written[ref.name] = names_in(request.body)
        return Success(live)

    def write(self, record: UnitRecord) -> dict[str, list[str]]:
        """Write a record; the parts that this took, or the head if there are none."""
        self.written.clear()
        procedure = record.write(lambda: Ms(0))
        call = next(procedure)
        while True:
            assert not isinstance(call, Pause)
            try:
                call = procedure.send(tuple(self.answer(ask.request) for ask in call))
            except StopIteration as end:
                self.refused = end.value
                break
        parts = {name: names for name, names in self.written.items() if "." in name}
        return parts or dict(self.written)


def names_in(body: bytes) -> list[str]:
    text = base64.b64decode(msgspec.json.decode(body)["data"]["journal.json"])
    return [line["ref"]["name"] for line in msgspec.json.decode(text)["entries"]]


def a_ref(name: str) -> Ref:
    return Ref(CONFIG_MAP, "default", name)


def a_record(names: Iterable[str], holder: str = "me") -> UnitRecord:
    record = UnitRecord("shop", "")
    record.claim(holder)
    record.register_objects("plan", map(a_ref, names), digest="text", source="", now=Ms(0))
    return record


def test_later_changes_are_in_the_next_write() -> None:
    secrets, record = Secrets(), a_record(["a", "c"])
    (before,) = secrets.write(record).values()

    record.set_entry(a_ref("b"), JournalEntry("digest"))
    (after,) = secrets.write(record).values()

    assert (before, after) == (["a", "c"], ["a", "b", "c"])


def test_forgotten_entries_are_not_written() -> None:
    secrets, record = Secrets(), a_record(["a", "b"])
    secrets.write(record)

    record.remove_entry(a_ref("a"))
    (left,) = secrets.write(record).values()

    assert left == ["b"]


def test_only_changed_parts_are_written() -> None:
    secrets, record = Secrets(), a_record(MANY)
    whole = secrets.write(record)

    record.set_entry(a_ref("m7"), JournalEntry("digest"))
    changed = secrets.write(record)

    assert len(whole) == 2
    assert sum(map(len, whole.values())) == ENTRIES_PER_PART + 1
    assert [name for name, names in whole.items() if "m7" in names] == list(changed)


def test_a_growing_journal_is_split_into_parts() -> None:
    secrets, record = Secrets(), a_record(["a"])
    secrets.write(record)

    record.register_objects("plan", map(a_ref, MANY), digest="text", source="", now=Ms(0))
    secrets.write(record)
    again = UnitRecord("shop", "")
    read(secrets, again)

    assert set(again.entries) == {a_ref(name) for name in ("a", *MANY)}
    assert len(again.secret_refs) == 3


def test_the_former_holder_of_a_large_unit_cannot_write_its_parts() -> None:
    secrets, former = Secrets(), a_record(MANY)
    secrets.write(former)
    heir = UnitRecord("shop", "")
    read(secrets, heir)
    heir.claim("heir")
    heir.register_objects("plan", map(a_ref, MANY), digest="text", source="", now=Ms(0))
    secrets.write(heir)

    former.set_entry(a_ref("m7"), JournalEntry("late"))
    written = secrets.write(former)

    assert written == {}
    assert isinstance(secrets.refused, Conflict)
    assert (heir.is_ours, former.is_ours) == (True, False)


def read(secrets: Secrets, record: UnitRecord) -> None:
    procedure = record.read(lambda: Ms(0))
    call = next(procedure)
    while True:
        assert not isinstance(call, Pause)
        try:
            call = procedure.send(tuple(secrets.answer(ask.request) for ask in call))
        except StopIteration:
            return
