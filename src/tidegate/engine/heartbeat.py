"""Who is alive: one Lease for each process and cluster, which its process renews.

Nobody compares clocks. A process knows by its own clock when it renewed last, and stops writing
before anybody may take it for dead. Others know by theirs for how long they have seen a Lease
unchanged: after its whole term they delete it, and what its process held is free. So whoever still
finds its own Lease knows that nobody has taken anything from it.

    kubectl get lease -n tidegate-system
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from tidegate.engine.reach.errands import Ask, Errand, Pause
from tidegate.engine.record import LASTING, Now
from tidegate.engine.stored import NAMESPACE, resource_name
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Kind, Live, Ref
from tidegate.world.calls import Get, Verb, Write
from tidegate.world.facts import (
    Done,
    Exists,
    Missing,
    Outcome,
    Refusal,
    is_refusal,
)

LEASE = Kind("coordination.k8s.io", "v1", "Lease")
NAMESPACES = Kind("", "v1", "Namespace")
LASTS = Ms(15 * SECOND)
RENEWS = Ms(5 * SECOND)
MARGIN = Ms(5 * SECOND)
"""How long before the end of its term a process stops to write."""
ASKS_AGAIN = Ms(1 * SECOND)
TRIES = 3
"""How often a Lease is written at once against others who write it at the same time."""
GIVE_WAY = "give-way.tidegate.dev/"
"""An annotation for each unit that somebody else wants, with the name of its record."""


class Wish(msgspec.Struct, frozen=True):
    """Asks for a unit that was taken in this turn: `holder` wants it, for the `plan` it signed."""

    turn: int
    plan: str = ""
    holder: str = ""


class _LeaseMeta(msgspec.Struct):
    annotations: dict[str, str] = {}


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = ""
    renew_time: str | None = ""
    lease_duration_seconds: int | None = 0
    lease_transitions: int | None = 0


class Lease(msgspec.Struct):
    metadata: _LeaseMeta = msgspec.field(default_factory=_LeaseMeta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Heartbeat(msgspec.Struct):
    """Our own Lease in one cluster."""

    cluster: str
    holder: str
    namespace: str = NAMESPACE
    life: int = 0
    """Counts up when the Lease turns out to be gone: what was held before is not ours any more."""
    wishes: dict[str, Wish] = msgspec.field(default_factory=dict)
    """What others want of us, by the name of the unit's record."""
    is_used: bool = False
    """It may be there."""
    renewing: bool = False
    _beginning: bool = False
    _uid: str = ""
    _version: str = ""
    _transitions: int = 0
    _renewed: Ms = Ms(0)
    _tried: Ms = Ms(0)
    _lapsed: bool = False

    @property
    def ref(self) -> Ref:
        return lease_ref(self.holder, self.namespace)

    @property
    def is_begun(self) -> bool:
        return bool(self._version)

    @property
    def ends(self) -> Ms:
        """When writing must stop unless a renewal that was sent later succeeds."""
        return Ms(self._renewed + LASTS - MARGIN)

    @property
    def may_write_until(self) -> Ms | None:
        """The same for whoever is about to write; None before anything can have been taken."""
        return self.ends if self.is_begun else Ms(0) if self.is_used else None

    def is_good(self, now: Ms) -> bool:
        """Whether it is still safe to write."""
        return self.is_begun and now < self.ends

    def is_due(self, now: Ms) -> bool:
        """Whether it is to be renewed."""
        return self.is_begun and not self.renewing and now >= self._next

    @property
    def _next(self) -> Ms:
        return max(Ms(self._renewed + RENEWS), Ms(self._tried + ASKS_AGAIN))

    def lapses(self, now: Ms) -> bool:
        """Whether writing must stop from now on; told once."""
        lapsed, self._lapsed = self._lapsed, self.is_begun and now >= self.ends
        return self._lapsed and not lapsed

    @property
    def alarm(self) -> Ms | None:
        """When it wants to be looked at."""
        moments = [] if self._lapsed else [self.ends]
        moments += [] if self.renewing else [self._next]
        return min(moments, default=None) if self.is_begun else None

    def begin(self, now: Now) -> Errand[Refusal | None]:
        """Be known as alive, however long that takes, or say what no waiting can mend."""
        while not self.is_good(now()):
            if self.is_begun or self._beginning:
                yield Pause(Ms(now() + ASKS_AGAIN // 5))
                continue
            self._beginning = True
            refused = yield from self._make(now)
            self._beginning = False
            if isinstance(refused, LASTING):
                return refused
            if refused is not None:
                yield Pause(Ms(now() + ASKS_AGAIN))
        return None

    def _make(self, now: Now) -> Errand[Refusal | None]:
        self._transitions, self.is_used, at = 0, True, now()
        (made,) = yield (self._write(Verb.CREATE, at),)
        if isinstance(made, Missing):
            return (yield from self._make_room())
        if is_refusal(made) and not isinstance(made, LASTING):
            # It may be there: by a write whose answer was lost, or of a process that had our name.
            (found,) = yield (Ask(self.cluster, Get(self.ref)),)
            if isinstance(found, Done) and found.live is not None:
                self._transitions = (read_lease(found.live).spec.lease_transitions or 0) + 1
                at = now()
                (made,) = yield (self._write(Verb.REPLACE, at, version=found.live.version),)
        self._renewed_by(made, at)
        return made if is_refusal(made) else None

    def _make_room(self) -> Errand[Refusal | None]:
        metadata: Json = {"name": self.namespace}
        body: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        ref = Ref(NAMESPACES, "", self.namespace)
        request = Write(verb=Verb.CREATE, ref=ref, body=msgspec.json.encode(body))
        (room,) = yield (Ask(self.cluster, request),)
        return room if is_refusal(room) and not isinstance(room, Exists) else None

    def renew(self, now: Now) -> Errand[None]:
        """Say that we live. Whoever wrote meanwhile wants something: look what."""
        self.renewing = True
        for _ in range(TRIES):
            self._tried = at = now()
            (outcome,) = yield (self._write(Verb.REPLACE, at, version=self._version),)
            self._renewed_by(outcome, at)
            if not is_refusal(outcome):
                break
            (found,) = yield (Ask(self.cluster, Get(self.ref)),)
            if not self._look(found):
                break
        self.renewing = False

    def _renewed_by(self, outcome: Outcome, at: Ms) -> None:
        if isinstance(outcome, Done) and outcome.live is not None:
            self._renewed, self._uid, self._version = at, outcome.live.uid, outcome.live.version

    def _look(self, found: Outcome) -> bool:
        """Whether the Lease is there and ours."""
        if isinstance(found, Done) and found.live is not None:
            lease = read_lease(found.live)
            spec, is_same = lease.spec, found.live.uid == self._uid
            if is_same and (spec.lease_transitions or 0) == self._transitions:
                self._version, self.wishes = found.live.version, read_wishes(lease)
                return True
        elif not isinstance(found, Missing):
            return False
        self.life += 1
        self._version = ""
        return False

    def end(self, now: Now) -> Errand[None]:
        """Be gone, so that nobody waits for us."""
        while self.renewing:
            yield Pause(Ms(now() + ASKS_AGAIN // 5))
        self._version = ""
        (found,) = yield (Ask(self.cluster, Get(self.ref)),)
        if isinstance(found, Done) and found.live is not None and self._is_last(found.live):
            write = Write(verb=Verb.DELETE, ref=self.ref, uid=found.live.uid)
            yield (Ask(self.cluster, write),)

    def drop_errands(self) -> None:
        """Whoever was writing here was withdrawn."""
        self.renewing = self._beginning = False

    def _is_last(self, live: Live) -> bool:
        """Whether the Lease is as we wrote it last, whatever we heard of that write."""
        return (read_lease(live).spec.lease_transitions or 0) == self._transitions

    def _write(self, verb: Verb, at: Ms, *, version: str = "") -> Ask:
        notes = {GIVE_WAY + name: note_of(wish) for name, wish in self.wishes.items()}
        metadata: dict[str, Json] = {
            "name": self.ref.name,
            "namespace": self.namespace,
            "annotations": {**notes},
        }
        if version:
            metadata["resourceVersion"] = version
        spec: Json = {
            "holderIdentity": self.holder,
            "renewTime": _written(at),
            "leaseDurationSeconds": LASTS // SECOND,
            "leaseTransitions": self._transitions,
        }
        body: Json = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.name,
            "metadata": metadata,
            "spec": spec,
        }
        encoded = msgspec.json.encode(body)
        write = Write(verb=verb, ref=self.ref, body=encoded, version=version)
        return Ask(self.cluster, write, urgent=True)


def lease_ref(holder: str, namespace: str = NAMESPACE) -> Ref:
    return Ref(LEASE, namespace, resource_name(holder))


def read_lease(live: Live) -> Lease:
    return msgspec.json.decode(live.body, type=Lease)


def read_wishes(lease: Lease) -> dict[str, Wish]:
    """What is asked for in our words; anybody may write annotations."""
    found: dict[str, Wish] = {}
    for key, note in lease.metadata.annotations.items():
        turn, *words = note.split(" ", 2)
        if key.startswith(GIVE_WAY) and turn.isdecimal():
            found[key.removeprefix(GIVE_WAY)] = Wish(int(turn), *words)
    return found


def note_of(wish: Wish) -> str:
    return f"{wish.turn} {wish.plan} {wish.holder}"


def _written(at: Ms) -> str:
    moment = datetime.fromtimestamp(at // SECOND, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % SECOND:03}000Z"
