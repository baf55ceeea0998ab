"""The journal of a unit, to and from Secrets of its cluster.

A head names the plan and the number of parts; an object's entry is in the part that the digest of
its name picks, so that a change rewrites one part and a torn write loses nothing. Parts stay far
below what a Secret may hold.

    kubectl get secret -n tidegate-system -l tidegate.dev/unit=shop
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from tidegate.engine.reach.errands import Ask, Errand
from tidegate.errors import ClusterError, Place
from tidegate.model.journal import VERSION, Entry, Journal
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.plan import digest_bytes
from tidegate.world.calls import Get, Request, Verb, Write
from tidegate.world.facts import Done, Missing, Outcome, is_refusal

NAMESPACE = "tidegate-system"
MANAGER = "tidegate"
PER_PART = 1_500
"""Objects in a part: about 300 KiB."""
SECRET = Kind("", "v1", "Secret")
UNIT = "tidegate.dev/unit"
Read = TypeVar("Read")


class _Head(msgspec.Struct, frozen=True):
    """`text` is the digest of what a rollout is bringing, `done` of the last that passed."""

    version: int = VERSION
    plan: str = ""
    parts: int = 1
    text: str = ""
    begun: Ms = Ms(0)
    done: str = ""


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    ref: Ref
    entry: Entry


class Keeper:
    """Keeps one unit's journal: what is stored, what is new, and what must be written."""

    def __init__(self, unit: str, cluster: str, namespace: str = NAMESPACE) -> None:
        self.unit = unit
        self.cluster = cluster
        self.entries: dict[Ref, Entry] = {}
        self.news = 0
        """How often something was read that others have written."""
        self._namespace = namespace
        self._name = resource_name(unit)
        self._head = _Head()
        self._stored_head: _Head | None = None
        self._stored: dict[int, bytes] = {}
        self._sent: dict[int, bytes] = {}
        """What was last written, whatever became of it."""
        self._dirty: set[int] = set()
        self._parts: list[list[Ref]] | None = None

    def load(self) -> Errand[Outcome | None]:
        """Read what is stored; what comes back is a refusal other than that nothing is."""
        (found,) = yield (self._get(self._name),)
        if isinstance(found, Missing):
            return None
        if is_refusal(found):
            return found
        head = self._read_head(_text(found))
        if head.parts != self._head.parts:
            self._stored.clear()
            self._sent.clear()
        self.news += head != self._stored_head
        self._head = self._stored_head = head
        self._parts = None
        parts = yield tuple(self._get(self._part(n)) for n in range(head.parts))
        for number, part in enumerate(parts):
            if isinstance(part, Done):
                self._take_part(number, _text(part))
            elif not isinstance(part, Missing):
                return part
        return None

    def _take_part(self, number: int, text: bytes) -> None:
        """Take over what others wrote; what we wrote ourselves is older than what we know."""
        ours = (self._stored.get(number), self._sent.get(number))
        self._stored[number] = text
        if text not in ours:
            self.news += 1
            self._parts = None
            self.entries.update((line.ref, line.entry) for line in self._read_lines(text))

    def _read_head(self, text: bytes) -> _Head:
        head = self._read(text, _Head)
        if head.version > VERSION:
            problem = f"the journal of `{self.unit}` was written by a newer tidegate"
            hint = "use that version, or a newer one"
            raise ClusterError("journal.version", problem, where=self._place, hint=hint)
        return head

    def _read_lines(self, text: bytes) -> list[_Line]:
        return self._read(text, list[_Line])

    def _read(self, text: bytes, kind: type[Read]) -> Read:
        try:
            return msgspec.json.decode(text, type=kind)
        except msgspec.DecodeError:
            problem = f"the journal of `{self.unit}` cannot be read"
            hint = "delete these Secrets; nothing is lost but the memory of opened gates"
            raise ClusterError(
                "journal.unreadable", problem, where=self._place, hint=hint
            ) from None

    @property
    def _place(self) -> Place:
        return Place(f"Secret {self._namespace}/{self._name}")

    def is_done(self, text: str) -> bool:
        """Whether a rollout of this very text has passed, and none of another since."""
        return self._head.done == self._head.text == text != ""

    def begun(self, text: str, now: Ms) -> Ms:
        """When the rollout of this text began: now, unless one is taken up again."""
        return self._head.begun if self._is_under_way(text) else now

    def _is_under_way(self, text: str) -> bool:
        return self._head.text == text != self._head.done

    def earlier_hooks(self, text: str) -> list[Ref]:
        """The hooks of a rollout of another text that was not brought to its end."""
        if self._is_under_way(text) or self._head.done == self._head.text:
            return []
        return [ref for ref, entry in self.entries.items() if entry.hook]

    def finish(self, text: str) -> None:
        """A rollout of this text has passed."""
        self._head = msgspec.structs.replace(self._head, done=text)

    def expect(self, plan: str, refs: Iterable[Ref], *, text: str, now: Ms) -> None:
        """Count these objects as the unit's before they are written; nothing is forgotten yet.

        What is remembered of hooks counts only for the rollout that ran them.
        """
        begun = self.begun(text, now)
        if not self._is_under_way(text):
            for ref in [ref for ref, entry in self.entries.items() if entry.hook]:
                del self.entries[ref]
        for ref in refs:
            self.entries.setdefault(ref, Entry())
        parts = max(self._head.parts, -(-len(self.entries) // PER_PART))
        if parts != self._head.parts:
            self._stored.clear()
            self._sent.clear()
        done = self._head.done
        self._head = _Head(plan=plan, parts=parts, text=text, begun=begun, done=done)
        self._parts = None
        self._dirty.update(range(parts))

    def remember(self, ref: Ref, entry: Entry) -> None:
        known = self.entries.get(ref)
        if known is None:
            self._parts = None
        if known != entry:
            self.entries[ref] = entry
            self._dirty.add(self._number(ref))

    def rename(self, ref: Ref, other: Ref) -> None:
        """Know an object by another name."""
        entry = self.entries[ref]
        if other != ref:
            self.forget(ref)
            self.remember(other, self.entries.get(other, entry))

    def forget(self, ref: Ref) -> None:
        if self.entries.pop(ref, None) is not None:
            self._parts = None
            self._dirty.add(self._number(ref))

    @property
    def is_dirty(self) -> bool:
        stored = self._stored_head
        return bool(self._dirty) or (stored is not None and self._head != stored)

    def store(self) -> Errand[Outcome | None]:
        """Write what has changed: the parts first, then the head that counts them.

        What the head comes to say meanwhile may speak of parts that are not written yet.
        """
        head, numbers = self._head, sorted(self._dirty)
        self._dirty.clear()
        writes: dict[int, bytes] = {}
        texts = self._texts(numbers)
        for number in numbers:
            if self._stored.get(number) != texts[number]:
                writes[number] = texts[number]
        self._sent.update(writes)
        outcomes = yield tuple(
            self._put(self._part(number), text) for number, text in writes.items()
        )
        for (number, text), outcome in zip(writes.items(), outcomes, strict=True):
            if is_refusal(outcome):
                self._dirty.update(numbers)
                return outcome
            self._stored[number] = text
        if head != self._stored_head:
            (outcome,) = yield (self._put(self._name, msgspec.json.encode(head)),)
            if is_refusal(outcome):
                self._dirty.update(numbers)
                return outcome
            yield self._sweep()
            self._stored_head = head
        return None

    def _sweep(self) -> tuple[Ask, ...]:
        """Remove the parts of an earlier division, which nobody reads any more."""
        old = self._stored_head
        if old is None or old.parts == self._head.parts:
            return ()
        names = (self._part(number, of=old.parts) for number in range(old.parts))
        refs = (Ref(SECRET, self._namespace, name) for name in names)
        return tuple(Ask(self.cluster, Write(verb=Verb.DELETE, ref=ref)) for ref in refs)

    def _texts(self, numbers: list[int]) -> dict[int, bytes]:
        parts = self._divided()
        return {
            number: msgspec.json.encode([_Line(ref, self.entries[ref]) for ref in parts[number]])
            for number in numbers
        }

    def _divided(self) -> list[list[Ref]]:
        """Which objects are in which part, sorted; kept for as long as they are the same."""
        if self._parts is None:
            self._parts = [[] for _ in range(self._head.parts)]
            for ref in sorted(self.entries):
                self._parts[self._number(ref)].append(ref)
        return self._parts

    def _number(self, ref: Ref) -> int:
        return zlib.crc32(msgspec.json.encode(ref)) % self._head.parts

    def _part(self, number: int, *, of: int = 0) -> str:
        return f"{self._name}.{of or self._head.parts}.{number}"

    def _get(self, name: str) -> Ask:
        return Ask(self.cluster, Get(Ref(SECRET, self._namespace, name)))

    def _put(self, name: str, text: bytes) -> Ask:
        ref = Ref(SECRET, self._namespace, name)
        metadata: Json = {
            "name": name,
            "namespace": self._namespace,
            "labels": {UNIT: label_value(self.unit)},
        }
        body: Json = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": "tidegate.dev/journal",
            "data": {"journal.json": base64.b64encode(text).decode()},
        }
        request: Request = Write(
            verb=Verb.APPLY, ref=ref, body=msgspec.json.encode(body), manager=MANAGER, force=True
        )
        return Ask(self.cluster, request)

    def journal(self) -> Journal:
        head = self._head
        entries = dict(self.entries)
        return Journal(
            plan=head.plan, text=head.text, begun=head.begun, done=head.done, entries=entries
        )

    @property
    def secrets(self) -> tuple[Ref, ...]:
        """The Secrets that hold it, the parts first; none where nothing is stored."""
        if self._stored_head is None:
            return ()
        parts = (self._part(number) for number in range(self._stored_head.parts))
        return tuple(Ref(SECRET, self._namespace, name) for name in (*parts, self._name))


def label_value(unit: str) -> str:
    """A unit's name as far as a label can hold it."""
    return re.sub(r"[^A-Za-z0-9_.-]", ".", unit)[:63].strip("._-")


def resource_name(unit: str) -> str:
    """A name for the unit's own objects that no other unit has."""
    slug = re.sub(r"[^a-z0-9-]+", "-", unit.lower()).strip("-")[:40].strip("-")
    return f"tidegate-{slug}-{digest_bytes(unit.encode())[:8]}"


class _Stored(msgspec.Struct):
    data: dict[str, str] = {}


def _text(found: Outcome) -> bytes:
    if not isinstance(found, Done) or found.live is None:
        return b""
    stored = msgspec.json.decode(found.live.body, type=_Stored)
    return base64.b64decode(stored.data.get("journal.json", ""))
