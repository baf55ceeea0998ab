"""The record of a unit: lease holder and journal, in one Secret of its cluster.

Every change (acquire, journal write, release) replaces this Secret at the known
resourceVersion, so an outdated process changes nothing and a concurrent change is noticed. The
entries of a large unit are in separate parts; a hash of the object's reference selects the
part.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeAlias

import msgspec

from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.engine.records import storage
from tidegate.engine.records.storage import (
    TIDEGATE_NAMESPACE,
    JournalPart,
    RecordHead,
    StoredEntry,
    resource_name,
)
from tidegate.model.k8s.kinds import SECRET
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.plan import digest_bytes
from tidegate.model.rollouts.journal import Journal, JournalEntry, UnitOrigin
from tidegate.model.times import SECOND, Ms
from tidegate.world.messages import Forbidden, Invalid, NotFound, NotServed, Outcome, Success
from tidegate.world.requests import Get, Verb, Write

ENTRIES_PER_PART = 1_500
"""Objects per part: about 300 KiB."""
WRITE_TRIES = 3
"""Number of immediate tries while the result of a write is uncertain."""
MAX_READ_GAP = Ms(10 * SECOND)
"""A process that has not read the record for this long cannot know whose plan is newer."""
PERMANENT_ERRORS = Forbidden | Invalid | NotServed
"""Error outcomes that do not go away by waiting."""
Clock: TypeAlias = Callable[[], Ms]


class UnitRecord:
    """Stored state of one unit, with the changes that must be written."""

    def __init__(
        self,
        unit: str,
        cluster: str,
        namespace: str = TIDEGATE_NAMESPACE,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.unit = unit
        self.cluster = cluster
        self.origin: UnitOrigin | None = None
        """The unit and its parent; None for a unit without parent."""
        self.entries: dict[Ref, JournalEntry] = {}
        self.epoch = 0
        """Number of times that changes by other processes were found."""
        self.seen_at = Ms(0)
        """Time at which the stored state became known."""
        self.missed_other_plan = False
        """Whether another plan was rolled out during a long gap between our reads."""
        self._read_at: Ms | None = None
        self._namespace = namespace
        self._on_change = on_change
        self._head = RecordHead()
        self._stored_head = RecordHead()
        self._version = ""
        self._uid = ""
        self._expected_holders: tuple[str, ...] = ()
        """Holders that the record may name if this process wrote it."""
        self._part_versions: dict[int, str] = {}
        self._dirty_parts: set[int] = set()

    @property
    def ref(self) -> Ref:
        """Reference of the Secret."""
        return Ref(SECRET, self._namespace, resource_name(self.unit))

    @property
    def holder(self) -> str:
        """Holder of the lease, as last read."""
        return self._stored_head.holder

    @property
    def transitions(self) -> int:
        """Number of times the lease was acquired."""
        return self._stored_head.turn

    @property
    def plan(self) -> str:
        """Digest of the plan of the current or last lease."""
        return self._stored_head.plan

    def salted_digest(self, plan: str) -> str:
        """Return a digest of the plan digest that may be public.

        It is salted with the uid of this Secret. Only processes that can read the Secret know
        the uid, so secret values cannot be guessed from the result.
        """
        return digest_bytes(self._uid.encode(), plan.encode()) if plan else ""

    @property
    def source(self) -> str:
        """Source of the state that was rolled out last; empty if unknown."""
        return self._stored_head.source

    @property
    def is_ours(self) -> bool:
        """Whether we hold the lease and no other process has written since, as last read."""
        return self._is_written_by_us(self._stored_head)

    def _is_written_by_us(self, head: RecordHead) -> bool:
        return head.turn == self._head.turn and head.holder in self._expected_holders

    def forget_last_read(self) -> None:
        """Forget the last read: changes until the next one count as earlier than ours."""
        self.missed_other_plan, self._read_at = False, None

    def read(self, now: Clock) -> Procedure[Outcome | None]:
        """Read the record; return an error outcome other than NotFound."""
        (outcome,) = yield (ApiCall(self.cluster, Get(self.ref)),)
        return (yield from self.load(outcome, now))

    def load(self, outcome: Outcome, now: Clock) -> Procedure[Outcome | None]:
        """Load what was read. Changes by other processes replace ours.

        Our own changes are already known.
        """
        if isinstance(outcome, Success) and outcome.live is not None:
            head, version = storage.read_head(outcome.live), outcome.live.resource_version
            self._uid = outcome.live.uid
        elif isinstance(outcome, NotFound):
            head, version, self._uid = RecordHead(), "", ""
        else:
            return outcome
        read_before, self._read_at = self._read_at, now()
        if version == self._version:
            return None
        has_gap = read_before is not None and self._read_at >= read_before + MAX_READ_GAP
        self.missed_other_plan |= has_gap and head.plan != self._stored_head.plan
        self._version, self._stored_head, self.seen_at = version, head, self._read_at
        if self._is_written_by_us(head):
            return None
        self.epoch += 1
        self._head, self._expected_holders = msgspec.structs.replace(head, entries=()), ()
        self._part_versions.clear()
        self._dirty_parts.clear()
        self.entries.update((line.ref, line.entry) for line in head.entries)
        return (yield from self._read_parts(head.parts, now))

    def _read_parts(self, count: int, now: Clock) -> Procedure[Outcome | None]:
        """Read all parts that the head counts.

        A missing part is lost, or the journal was split again.
        """
        parts = yield tuple(
            ApiCall(self.cluster, Get(self._part_ref(number))) for number in range(count)
        )
        missing = [number for number, part in enumerate(parts) if isinstance(part, NotFound)]
        if missing:
            ref, version = self._part_ref(missing[0]), self._version
            error = yield from self.read(now)
            if error is not None or self._version != version:
                return error
            raise storage.damaged_error(ref, "a part is missing")
        for number, part in enumerate(parts):
            if isinstance(part, Success) and part.live is not None:
                lines = storage.read_content(part.live, JournalPart).entries
                self._part_versions[number] = part.live.resource_version
                self.entries.update((line.ref, line.entry) for line in lines)
            else:
                return part
        return None

    def is_completed(self, digest: str) -> bool:
        """Return whether this desired state was the last one rolled out, and has passed."""
        return self._head.done == self._head.text == digest != ""

    def start_time(self, digest: str, now: Ms) -> Ms:
        """Return when the rollout of this desired state started: now, unless it is resumed."""
        return self._head.begun if self.is_in_progress(digest) else now

    def is_in_progress(self, digest: str) -> bool:
        """Return whether a rollout of this desired state started and has not passed.

        Hook entries count only then.
        """
        return self._head.text == digest != self._head.done

    def has_slot(self, digest: str) -> bool:
        """Return whether the unit got its slot for this desired state and has not ended."""
        return self.is_in_progress(digest) and self._head.entered == digest

    def unfinished_hooks(self, digest: str) -> list[Ref]:
        """Return the hooks of an unfinished rollout of another desired state."""
        if self.is_in_progress(digest) or self._head.done == self._head.text:
            return []
        return [ref for ref, entry in self.entries.items() if entry.hook]

    def is_large(self, refs: Iterable[Ref]) -> bool:
        """Return whether the journal is split into parts, or will be with these objects."""
        return self._head.parts > 0 or len(self.entries.keys() | set(refs)) > ENTRIES_PER_PART

    def claim(self, holder: str) -> None:
        """Acquire the lease with the next write."""
        self._head = msgspec.structs.replace(
            self._head, holder=holder, turn=self._stored_head.turn + 1
        )
        self._expected_holders = (holder,)
        self._dirty_parts.update(range(self._head.parts))

    def register_objects(
        self,
        plan: str,
        refs: Iterable[Ref],
        *,
        digest: str,
        source: str,
        now: Ms,
        is_resumed: bool = False,
    ) -> None:
        """Register these objects in the journal before they are written; no object is removed yet.

        Hook entries count only for the rollout that ran them. With `is_resumed`, the rollout
        started earlier: another process may have completed the same state in the meantime.
        """
        started_at = self.start_time(digest, now)
        if not self.is_in_progress(digest) and not (is_resumed and self._head.text == digest):
            for ref in [ref for ref, entry in self.entries.items() if entry.hook]:
                del self.entries[ref]
        for ref in refs:
            self.entries.setdefault(ref, JournalEntry())
        parts = self._head.parts
        if parts or len(self.entries) > ENTRIES_PER_PART:
            parts = max(parts, -(-len(self.entries) // ENTRIES_PER_PART))
        if parts != self._head.parts:
            self._part_versions.clear()
        self._head = msgspec.structs.replace(
            self._head,
            plan=plan,
            text=digest,
            source=source,
            origin=self.origin,
            begun=started_at,
            parts=parts,
        )
        self._dirty_parts.update(range(max(1, parts)))

    def record_slot(self, digest: str) -> None:
        """Record that the unit has its slot for this desired state."""
        self._head = msgspec.structs.replace(self._head, entered=digest)

    def mark_completed(self, digest: str) -> None:
        """Record that a rollout of this desired state has passed."""
        self._head = msgspec.structs.replace(self._head, done=digest)

    def mark_incomplete(self) -> None:
        """Record that the same desired state is rolled out once more."""
        self._head = msgspec.structs.replace(self._head, done="")

    def release(self) -> None:
        """Release the lease with the next write."""
        self._expected_holders = (*self._expected_holders, "")
        self._head = msgspec.structs.replace(self._head, holder="")

    def set_entry(self, ref: Ref, entry: JournalEntry) -> None:
        """Set the journal entry of an object."""
        if self.entries.get(ref) != entry:
            self.entries[ref] = entry
            self._mark_dirty(ref)

    def rename(self, ref: Ref, new_ref: Ref) -> None:
        """Move the journal entry of an object to another reference."""
        entry = self.entries[ref]
        if new_ref != ref:
            self.remove_entry(ref)
            self.set_entry(new_ref, self.entries.get(new_ref, entry))

    def remove_entry(self, ref: Ref) -> None:
        """Remove the journal entry of an object."""
        if self.entries.pop(ref, None) is not None:
            self._mark_dirty(ref)

    def _mark_dirty(self, ref: Ref) -> None:
        self._dirty_parts.add(self._part_number(ref))
        self._on_change()

    def write_claim(self, now: Clock) -> Procedure[Outcome | None]:
        """Acquire the lease and leave the rest of the record unchanged."""
        holder, transitions = self._head.holder, self._head.turn
        head = msgspec.structs.replace(self._stored_head, holder=holder, turn=transitions)
        return (yield from self._write_head(head, now))

    def write(self, now: Clock) -> Procedure[Outcome | None]:
        """Write what has changed: the parts first, then the head that counts them.

        Changes of the head during the write may refer to parts that are not written yet; the
        head is copied before the parts are written.
        """
        head, numbers, parts_before = self._head, sorted(self._dirty_parts), self._stored_head.parts
        self._dirty_parts.clear()
        if head.parts:
            error = yield from self._write_parts(head, numbers, now)
        else:
            head, error = msgspec.structs.replace(head, entries=self._lines(self.entries)), None
        if error is None and head != self._stored_head:
            error = yield from self._write_head(head, now)
        if error is not None:
            self._dirty_parts.update(numbers)
            self._on_change()
        elif parts_before not in (0, head.parts):
            # The parts of the previous split are unused now.
            refs = (
                self._part_ref(number, part_count=parts_before) for number in range(parts_before)
            )
            yield tuple(ApiCall(self.cluster, Write(verb=Verb.DELETE, ref=ref)) for ref in refs)
        return error

    def _write_head(self, head: RecordHead, now: Clock) -> Procedure[Outcome | None]:
        """Write the head over the known version.

        After an uncertain answer, the stored head decides.
        """
        outcome: Outcome | None = None
        for _ in range(WRITE_TRIES):
            # Keep the epoch: the unit may have another holder when the response arrives.
            known_epoch, write = (
                self.epoch,
                storage.build_secret_write(self.ref, self.unit, head, self._version),
            )
            (outcome,) = yield (ApiCall(self.cluster, write),)
            if isinstance(outcome, Success) and outcome.live is not None:
                self._version, self._stored_head = outcome.live.resource_version, head
                self._uid = outcome.live.uid
                self.seen_at = self._read_at = now()
                return None
            if isinstance(outcome, PERMANENT_ERRORS):
                return outcome
            error = yield from self.read(now)
            if error is not None or self.epoch != known_epoch:
                return outcome
            if self._stored_head == head:
                return None
        return outcome

    def _write_parts(
        self, head: RecordHead, numbers: list[int], now: Clock
    ) -> Procedure[Outcome | None]:
        """Write parts over their known versions; rejected parts are read again for the next write.

        A part that was written after a later acquisition belongs to the new holder.
        """
        refs: dict[int, list[Ref]] = {number: [] for number in range(head.parts)}
        for ref in self.entries:
            refs[self._part_number(ref)].append(ref)
        outcomes = yield tuple(
            self._part_write_call(head, number, refs[number]) for number in numbers
        )
        failed: dict[int, Outcome] = {}
        for number, outcome in zip(numbers, outcomes, strict=True):
            if isinstance(outcome, Success) and outcome.live is not None:
                self._part_versions[number] = outcome.live.resource_version
            else:
                failed[number] = outcome
        parts = yield tuple(ApiCall(self.cluster, Get(self._part_ref(number))) for number in failed)
        for number, part in zip(failed, parts, strict=True):
            self._part_versions.pop(number, None)
            if isinstance(part, Success) and part.live is not None:
                if storage.read_content(part.live, JournalPart).turn > head.turn:
                    yield from self.read(now)
                    break
                self._part_versions[number] = part.live.resource_version
        return next(iter(failed.values()), None)

    def _part_write_call(self, head: RecordHead, number: int, refs: Iterable[Ref]) -> ApiCall:
        part, version = (
            JournalPart(head.turn, self._lines(refs)),
            self._part_versions.get(number, ""),
        )
        return ApiCall(
            self.cluster,
            storage.build_secret_write(self._part_ref(number), self.unit, part, version),
        )

    def _lines(self, refs: Iterable[Ref]) -> tuple[StoredEntry, ...]:
        return tuple(StoredEntry(ref, self.entries[ref]) for ref in sorted(refs))

    def _part_number(self, ref: Ref) -> int:
        return _ref_hash(ref) % max(1, self._head.parts)

    def _part_ref(self, number: int, *, part_count: int = 0) -> Ref:
        name = f"{self.ref.name}.{part_count or self._head.parts}.{number}"
        return Ref(SECRET, self._namespace, name)

    def to_journal(self) -> Journal:
        """Return the journal of the unit."""
        head, entries = self._head, dict(self.entries)
        return Journal(
            plan_digest=self.salted_digest(head.plan),
            desired_digest=head.text,
            started_at=head.begun,
            completed_digest=head.done,
            entries=entries,
        )

    @property
    def secret_refs(self) -> tuple[Ref, ...]:
        """Secrets of the record, the head first; empty if nothing is stored."""
        parts = (self._part_ref(number) for number in range(self._stored_head.parts))
        return (self.ref, *parts) if self._version else ()


@lru_cache(maxsize=100_000)
def _ref_hash(ref: Ref) -> int:
    """Return a hash of a reference that is equal in all processes, unlike `hash`."""
    return zlib.crc32(msgspec.json.encode(ref))
