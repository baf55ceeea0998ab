"""The record of a unit: who rolls it out, and its journal, in one Secret of its cluster.

Whoever takes the unit, writes its journal or finishes writes this object, and only over the version
that it knows: who is late changes nothing, and who came between is noticed. Of a large unit the
entries are in parts of their own; the digest of an object's name picks its part.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeAlias

import msgspec

from tidegate.engine import stored
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.stored import NAMESPACE, SECRET, Head, JournalPart, StoredLine, resource_name
from tidegate.model.journal import Entry, Journal, Kin
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Ref
from tidegate.model.plan import digest_bytes
from tidegate.world.calls import Get, Verb, Write
from tidegate.world.facts import Done, Forbidden, Invalid, Missing, NotServed, Outcome

PER_PART = 1_500
"""Objects in a part: about 300 KiB."""
TRIES = 3
"""How often a record is written at once where it is not certain what became of the write."""
SILENCE = Ms(10 * SECOND)
"""Who has not read a record for so long cannot say whose plan is the newer."""
LASTING = Forbidden | Invalid | NotServed
"""Refusals that no waiting mends."""
Now: TypeAlias = Callable[[], Ms]


class Record:
    """What is stored of one unit, what is new, and what must be written."""

    def __init__(
        self,
        unit: str,
        cluster: str,
        namespace: str = NAMESPACE,
        stirred: Callable[[], None] = lambda: None,
    ) -> None:
        self.unit = unit
        self.cluster = cluster
        self.kin: Kin | None = None
        """Who brings the unit, where somebody does."""
        self.entries: dict[Ref, Entry] = {}
        self.epoch = 0
        """How often something was found that others have written."""
        self.seen_at = Ms(0)
        """When we came to know what is stored."""
        self.was_away = False
        """Another plan was brought while we did not look for a long time."""
        self._read_at: Ms | None = None
        self._namespace = namespace
        self._stirred = stirred
        self._head = Head()
        self._stored = Head()
        self._version = ""
        self._uid = ""
        self._signs: tuple[str, ...] = ()
        """Whom the record may name as holder if we wrote it."""
        self._versions: dict[int, str] = {}
        self._dirty: set[int] = set()

    @property
    def ref(self) -> Ref:
        return Ref(SECRET, self._namespace, resource_name(self.unit))

    @property
    def holder(self) -> str:
        """Who holds the unit, as far as we know."""
        return self._stored.holder

    @property
    def turn(self) -> int:
        """How often the unit was taken."""
        return self._stored.turn

    @property
    def plan(self) -> str:
        """The digest of the plan that it is held for, or was last."""
        return self._stored.plan

    def sign(self, plan: str) -> str:
        """The plan's digest for places where anybody reads it: only who can read this Secret knows
        its uid, and nobody else can try out values of secrets on what comes out.
        """
        return digest_bytes(self._uid.encode(), plan.encode()) if plan else ""

    @property
    def source(self) -> str:
        """Where the text lies that was brought last; empty where nobody said."""
        return self._stored.source

    @property
    def is_ours(self) -> bool:
        """Whether nobody has written since we took it, as far as we know."""
        return self._is_by_us(self._stored)

    def _is_by_us(self, head: Head) -> bool:
        return head.turn == self._head.turn and head.holder in self._signs

    def look_anew(self) -> None:
        """Whatever was done until the next reading was done before us."""
        self.was_away, self._read_at = False, None

    def read(self, now: Now) -> Errand[Outcome | None]:
        """Read what is stored; what comes back is a refusal other than that nothing is."""
        (found,) = yield (Ask(self.cluster, Get(self.ref)),)
        return (yield from self.found(found, now))

    def found(self, found: Outcome, now: Now) -> Errand[Outcome | None]:
        """Take what was read. What others wrote counts; what we wrote we know better."""
        if isinstance(found, Done) and found.live is not None:
            head, version = stored.read_head(found.live), found.live.version
            self._uid = found.live.uid
        elif isinstance(found, Missing):
            head, version, self._uid = Head(), "", ""
        else:
            return found
        before, self._read_at = self._read_at, now()
        if version == self._version:
            return None
        is_silence = before is not None and self._read_at >= before + SILENCE
        self.was_away |= is_silence and head.plan != self._stored.plan
        self._version, self._stored, self.seen_at = version, head, self._read_at
        if self._is_by_us(head):
            return None
        self.epoch += 1
        self._head, self._signs = msgspec.structs.replace(head, entries=()), ()
        self._versions.clear()
        self._dirty.clear()
        self.entries.update((line.ref, line.entry) for line in head.entries)
        return (yield from self._read_parts(head.parts, now))

    def _read_parts(self, count: int, now: Now) -> Errand[Outcome | None]:
        """All parts that the head counts. One that is not there is lost, or was divided anew."""
        parts = yield tuple(Ask(self.cluster, Get(self._part(number))) for number in range(count))
        lost = [number for number, part in enumerate(parts) if isinstance(part, Missing)]
        if lost:
            ref, version = self._part(lost[0]), self._version
            refused = yield from self.read(now)
            if refused is not None or self._version != version:
                return refused
            raise stored.damaged(ref, "a part of it is gone")
        for number, part in enumerate(parts):
            if isinstance(part, Done) and part.live is not None:
                lines = stored.read(part.live, JournalPart).entries
                self._versions[number] = part.live.version
                self.entries.update((line.ref, line.entry) for line in lines)
            else:
                return part
        return None

    def is_done(self, text: str) -> bool:
        """Whether a rollout of this very text has passed, and none of another since."""
        return self._head.done == self._head.text == text != ""

    def begun(self, text: str, now: Ms) -> Ms:
        """When the rollout of this text began: now, unless one is taken up again."""
        return self._head.begun if self._is_under_way(text) else now

    def _is_under_way(self, text: str) -> bool:
        return self._head.text == text != self._head.done

    def has_entered(self, text: str) -> bool:
        """Whether the unit got its slot for this text, and has not come to its end."""
        return self._is_under_way(text) and self._head.entered == text

    def earlier_hooks(self, text: str) -> list[Ref]:
        """The hooks of a rollout of another text that was not brought to its end."""
        if self._is_under_way(text) or self._head.done == self._head.text:
            return []
        return [ref for ref, entry in self.entries.items() if entry.hook]

    def is_large(self, refs: Iterable[Ref]) -> bool:
        """Whether it is in parts, or will be with these."""
        return self._head.parts > 0 or len(self.entries.keys() | set(refs)) > PER_PART

    def claim(self, holder: str) -> None:
        """Take the unit with the next write."""
        self._head = msgspec.structs.replace(self._head, holder=holder, turn=self._stored.turn + 1)
        self._signs = (holder,)
        self._dirty.update(range(self._head.parts))

    def expect(
        self,
        plan: str,
        refs: Iterable[Ref],
        *,
        text: str,
        source: str,
        now: Ms,
        goes_on: bool = False,
    ) -> None:
        """Count these objects as the unit's before they are written; nothing is forgotten yet.

        What is remembered of hooks counts only for the rollout that ran them. One that `goes_on`
        began before: somebody else may have brought the same text to its end since.
        """
        begun = self.begun(text, now)
        if not self._is_under_way(text) and not (goes_on and self._head.text == text):
            for ref in [ref for ref, entry in self.entries.items() if entry.hook]:
                del self.entries[ref]
        for ref in refs:
            self.entries.setdefault(ref, Entry())
        parts = self._head.parts
        if parts or len(self.entries) > PER_PART:
            parts = max(parts, -(-len(self.entries) // PER_PART))
        if parts != self._head.parts:
            self._versions.clear()
        self._head = msgspec.structs.replace(
            self._head,
            plan=plan,
            text=text,
            source=source,
            kin=self.kin,
            begun=begun,
            parts=parts,
        )
        self._dirty.update(range(max(1, parts)))

    def enter(self, text: str) -> None:
        """The unit has its slot for this text."""
        self._head = msgspec.structs.replace(self._head, entered=text)

    def finish(self, text: str) -> None:
        """A rollout of this text has passed."""
        self._head = msgspec.structs.replace(self._head, done=text)

    def reopen(self) -> None:
        """The same text is brought once more."""
        self._head = msgspec.structs.replace(self._head, done="")

    def release(self) -> None:
        """Let the unit go with the next write."""
        self._signs = (*self._signs, "")
        self._head = msgspec.structs.replace(self._head, holder="")

    def remember(self, ref: Ref, entry: Entry) -> None:
        if self.entries.get(ref) != entry:
            self.entries[ref] = entry
            self._stir(ref)

    def rename(self, ref: Ref, other: Ref) -> None:
        """Know an object by another name."""
        entry = self.entries[ref]
        if other != ref:
            self.forget(ref)
            self.remember(other, self.entries.get(other, entry))

    def forget(self, ref: Ref) -> None:
        if self.entries.pop(ref, None) is not None:
            self._stir(ref)

    def _stir(self, ref: Ref) -> None:
        self._dirty.add(self._number(ref))
        self._stirred()

    def write_claim(self, now: Now) -> Errand[Outcome | None]:
        """Take the unit, and leave the rest of the record as it is."""
        holder, turn = self._head.holder, self._head.turn
        head = msgspec.structs.replace(self._stored, holder=holder, turn=turn)
        return (yield from self._put(head, now))

    def write(self, now: Now) -> Errand[Outcome | None]:
        """Write what has changed: the parts first, then the head that counts them.

        What the head comes to say meanwhile may speak of parts that are not written yet.
        """
        head, numbers, before = self._head, sorted(self._dirty), self._stored.parts
        self._dirty.clear()
        if head.parts:
            refused = yield from self._put_parts(head, numbers, now)
        else:
            head, refused = msgspec.structs.replace(head, entries=self._lines(self.entries)), None
        if refused is None and head != self._stored:
            refused = yield from self._put(head, now)
        if refused is not None:
            self._dirty.update(numbers)
            self._stirred()
        elif before not in (0, head.parts):
            # Nobody reads the parts of an earlier division any more.
            refs = (self._part(number, of=before) for number in range(before))
            yield tuple(Ask(self.cluster, Write(verb=Verb.DELETE, ref=ref)) for ref in refs)
        return refused

    def _put(self, head: Head, now: Now) -> Errand[Outcome | None]:
        """Write the head over what is known. Whatever is answered, what is then stored counts."""
        outcome: Outcome | None = None
        for _ in range(TRIES):
            # Whatever is read until the answer comes counts: by then the unit may be another's.
            known, write = self.epoch, stored.put(self.ref, self.unit, head, self._version)
            (outcome,) = yield (Ask(self.cluster, write),)
            if isinstance(outcome, Done) and outcome.live is not None:
                self._version, self._stored = outcome.live.version, head
                self._uid = outcome.live.uid
                self.seen_at = self._read_at = now()
                return None
            if isinstance(outcome, LASTING):
                return outcome
            refused = yield from self.read(now)
            if refused is not None or self.epoch != known:
                return outcome
            if self._stored == head:
                return None
        return outcome

    def _put_parts(self, head: Head, numbers: list[int], now: Now) -> Errand[Outcome | None]:
        """Write parts over what is known of them; what is refused is read, for the next time.

        One that was written in a later turn is of somebody who has the unit now.
        """
        refs: dict[int, list[Ref]] = {number: [] for number in range(head.parts)}
        for ref in self.entries:
            refs[self._number(ref)].append(ref)
        outcomes = yield tuple(self._put_part(head, number, refs[number]) for number in numbers)
        left: dict[int, Outcome] = {}
        for number, outcome in zip(numbers, outcomes, strict=True):
            if isinstance(outcome, Done) and outcome.live is not None:
                self._versions[number] = outcome.live.version
            else:
                left[number] = outcome
        found = yield tuple(Ask(self.cluster, Get(self._part(number))) for number in left)
        for number, part in zip(left, found, strict=True):
            self._versions.pop(number, None)
            if isinstance(part, Done) and part.live is not None:
                if stored.read(part.live, JournalPart).turn > head.turn:
                    yield from self.read(now)
                    break
                self._versions[number] = part.live.version
        return next(iter(left.values()), None)

    def _put_part(self, head: Head, number: int, refs: Iterable[Ref]) -> Ask:
        part, version = JournalPart(head.turn, self._lines(refs)), self._versions.get(number, "")
        return Ask(self.cluster, stored.put(self._part(number), self.unit, part, version))

    def _lines(self, refs: Iterable[Ref]) -> tuple[StoredLine, ...]:
        return tuple(StoredLine(ref, self.entries[ref]) for ref in sorted(refs))

    def _number(self, ref: Ref) -> int:
        return _digest(ref) % max(1, self._head.parts)

    def _part(self, number: int, *, of: int = 0) -> Ref:
        name = f"{self.ref.name}.{of or self._head.parts}.{number}"
        return Ref(SECRET, self._namespace, name)

    def journal(self) -> Journal:
        head, entries = self._head, dict(self.entries)
        return Journal(
            plan=self.sign(head.plan),
            text=head.text,
            begun=head.begun,
            done=head.done,
            entries=entries,
        )

    @property
    def secrets(self) -> tuple[Ref, ...]:
        """The Secrets that hold it, itself first; none where nothing is stored."""
        parts = (self._part(number) for number in range(self._stored.parts))
        return (self.ref, *parts) if self._version else ()


@lru_cache(maxsize=100_000)
def _digest(ref: Ref) -> int:
    """The same in every process, as a hash is not."""
    return zlib.crc32(msgspec.json.encode(ref))
