"""One rollout for each unit at a time: a Lease that its holder renews.

A dead holder is taken over. A living one with the same plan is waited for; one with another plan is
asked to give way, by an annotation that it finds when it renews. Who cannot renew in time stops
writing before anybody else may begin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec

from tidegate.engine.journal import NAMESPACE, resource_name
from tidegate.engine.reach.errands import Ask, Errand, Pause
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Kind, Live, Ref
from tidegate.world.calls import Get, Request, Verb, Write
from tidegate.world.facts import (
    Conflict,
    Done,
    Exists,
    Forbidden,
    Invalid,
    Missing,
    NotServed,
    Outcome,
    Refusal,
    is_refusal,
)

LEASE = Kind("coordination.k8s.io", "v1", "Lease")
NAMESPACES = Kind("", "v1", "Namespace")
LASTS = Ms(15 * SECOND)
RENEWS = Ms(5 * SECOND)
MARGIN = Ms(5 * SECOND)
"""How long before the end of a lease its holder stops to write."""
ASKS_AGAIN = Ms(1 * SECOND)
RELEASES = 3
"""How often at the end a write is tried against others who write at the same time."""
LASTING = Forbidden | Invalid | NotServed
"""Refusals that no waiting mends."""
Now: TypeAlias = Callable[[], Ms]
PLAN = "tidegate.dev/plan"
GIVE_WAY = "tidegate.dev/superseded-by"


class _Meta(msgspec.Struct, rename="camel"):
    annotations: dict[str, str] = {}


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = ""
    renew_time: str | None = ""
    lease_duration_seconds: int | None = 0
    lease_transitions: int | None = 0


class _Lease(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


@dataclass(slots=True)
class Lease:
    """Our hold on one unit."""

    unit: str
    cluster: str
    holder: str
    plan: str
    namespace: str = NAMESPACE
    told: str = ""
    """The plan that the lease names since we wrote it last."""
    version: str = ""
    renewed: Ms = Ms(0)
    held: bool = False
    contested: bool = False
    """Somebody else may have written since we knew what is there."""
    asked_to_go: str = ""
    """The digest of the plan that somebody else wants to run."""

    @property
    def ref(self) -> Ref:
        return Ref(LEASE, self.namespace, resource_name(self.unit))

    def is_good(self, now: Ms) -> bool:
        """Whether it is still safe to write."""
        return self.held and now < self.renewed + LASTS - MARGIN

    def acquire(self, now: Now) -> Errand[Refusal | None]:
        """Hold it, however long that takes, or say what no waiting can mend.

        Who lost it to a rollout of another plan does not get it back: that one is the newer.
        """
        while not self.held and not self.asked_to_go:
            (found,) = yield (Ask(self.cluster, Get(self.ref)),)
            match found:
                case Done(live=Live() as live):
                    refused = yield from self._take(live, now)
                case Missing():
                    refused = yield from self._make(now)
                case _:
                    refused = found if is_refusal(found) else None
            if isinstance(refused, LASTING):
                return refused
            if refused is not None:
                yield Pause(Ms(now() + ASKS_AGAIN))
        return None

    def regain(self, now: Now) -> Errand[None]:
        """Hold it again if nobody took it since we lost it, and do not wait for that."""
        for _ in range(RELEASES):
            (found,) = yield (Ask(self.cluster, Get(self.ref)),)
            if not isinstance(found, Done) or found.live is None:
                return
            lease = msgspec.json.decode(found.live.body, type=_Lease)
            if lease.spec.holder_identity != self.holder:
                return
            yield from self._take(found.live, now)
            if self.held:
                return

    def _make(self, now: Now) -> Errand[Refusal | None]:
        at = now()
        (made,) = yield (self._write(Verb.CREATE, at, transitions=0),)
        if isinstance(made, Missing):
            body: Json = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": self.namespace},
            }
            ref = Ref(NAMESPACES, "", self.namespace)
            request = Write(verb=Verb.CREATE, ref=ref, body=msgspec.json.encode(body))
            (room,) = yield (Ask(self.cluster, request),)
            return None if not is_refusal(room) or isinstance(room, Exists) else room
        return self._won(made, at)

    def _take(self, live: Live, now: Now) -> Errand[Refusal | None]:
        """Take over what nobody holds; wait for, or ask to give way, who does."""
        lease = msgspec.json.decode(live.body, type=_Lease)
        at, spec = now(), lease.spec
        notes = lease.metadata.annotations
        if self.version and notes.get(PLAN) not in (self.plan, self.told):
            self.asked_to_go = notes.get(PLAN, "unknown")
            return None
        others = spec.holder_identity not in ("", None, self.holder)
        if others or (self.version and self.version != live.version):
            self.contested = True
        ends = _moment(spec.renew_time) + (spec.lease_duration_seconds or 0) * SECOND
        if not spec.holder_identity or spec.holder_identity == self.holder or ends <= at:
            transitions = (spec.lease_transitions or 0) + 1
            write = self._write(Verb.REPLACE, at, transitions=transitions, version=live.version)
            (taken,) = yield (write,)
            return self._won(taken, at)
        if notes.get(PLAN) != self.plan and notes.get(GIVE_WAY) != self.plan:
            (asked,) = yield (self._ask_to_go(live.version),)
            if is_refusal(asked):
                return asked
        yield Pause(Ms(at + ASKS_AGAIN))
        return None

    def _won(self, outcome: Outcome, at: Ms) -> Refusal | None:
        if isinstance(outcome, Done) and outcome.live is not None:
            self.held = True
            self._said(outcome.live, at)
            return None
        return outcome if is_refusal(outcome) else None

    def _said(self, live: Live, at: Ms) -> None:
        """What the lease says counts: the plan may have changed since the write was sent."""
        self.renewed, self.version = at, live.version
        lease = msgspec.json.decode(live.body, type=_Lease)
        self.told = lease.metadata.annotations.get(PLAN, "")

    def renew(self, now: Now) -> Errand[None]:
        """Say that we live. Whoever wrote meanwhile wants something: look what."""
        at = now()
        (outcome,) = yield (self._write(Verb.REPLACE, at, transitions=None, version=self.version),)
        if isinstance(outcome, Done) and outcome.live is not None:
            self._said(outcome.live, at)
        elif isinstance(outcome, Conflict | Missing):
            (found,) = yield (Ask(self.cluster, Get(self.ref)),)
            self._look(found)

    def _look(self, found: Outcome) -> None:
        if not isinstance(found, Done) or found.live is None:
            self.held = not isinstance(found, Missing) and self.held
            return
        lease = msgspec.json.decode(found.live.body, type=_Lease)
        self.held = lease.spec.holder_identity == self.holder
        self.version, self.renewed = found.live.version, _moment(lease.spec.renew_time)
        self.asked_to_go = lease.metadata.annotations.get(GIVE_WAY, "")

    def release(self, now: Now) -> Errand[None]:
        """Let go, so that the next one need not wait. A renewal or a wish may come between."""
        for _ in range(RELEASES if self.held else 0):
            self.held = False
            write = self._write(Verb.REPLACE, now(), version=self.version, holder="")
            (outcome,) = yield (write,)
            if not isinstance(outcome, Conflict):
                return
            (found,) = yield (Ask(self.cluster, Get(self.ref)),)
            self._look(found)
            if not self.held:
                return
        self.held = False

    def _ask_to_go(self, version: str) -> Ask:
        note: Json = {"metadata": {"annotations": {GIVE_WAY: self.plan}}}
        body = msgspec.json.encode(note)
        request = Write(verb=Verb.PATCH, ref=self.ref, body=body, version=version)
        return Ask(self.cluster, request)

    def _write(
        self,
        verb: Verb,
        at: Ms,
        *,
        transitions: int | None = None,
        version: str = "",
        holder: str | None = None,
    ) -> Ask:
        spec: dict[str, Json] = {
            "holderIdentity": self.holder if holder is None else holder,
            "renewTime": _written(at),
            "leaseDurationSeconds": LASTS // SECOND,
            "leaseTransitions": transitions or 0,
        }
        metadata: dict[str, Json] = {
            "name": self.ref.name,
            "namespace": self.namespace,
            "annotations": {PLAN: self.plan},
        }
        if version:
            metadata["resourceVersion"] = version
        body: Json = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.name,
            "metadata": metadata,
            "spec": spec,
        }
        request: Request = Write(
            verb=verb, ref=self.ref, body=msgspec.json.encode(body), version=version
        )
        return Ask(self.cluster, request, urgent=True)


def _written(at: Ms) -> str:
    moment = datetime.fromtimestamp(at // SECOND, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % SECOND:03}000Z"


def _moment(written: str | None) -> Ms:
    if not written:
        return Ms(0)
    return Ms(round(datetime.fromisoformat(written).timestamp() * SECOND))
