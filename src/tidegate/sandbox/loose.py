"""Set controllers loose on a cluster behind the door, a real one above all.

Watches the kinds that they look at, and those that CRDs bring; keeps what it is told, lets
each controller look when a change concerns it, submits what it wants written, and hands it the
outcome. Nothing is simulated here: the time is the world's, and so are the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Kind, Live, Ref
from tidegate.sandbox.agenda import Agenda
from tidegate.sandbox.controllers.reaction import At, Controller, Looking, Print, roster
from tidegate.sandbox.kinds import DEFINITIONS
from tidegate.sandbox.operators.presence import custom_kinds
from tidegate.sandbox.server.store import Stored, Transition, owner_uids
from tidegate.world.calls import Selection, Ticket, Watch
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Answer, Change, Changed, Ended, Fact, Outcome

ASKS_AGAIN = Ms(SECOND)
"""How long a server may take until it serves a kind that a CRD has defined."""


class Seen:
    """What watches have told of a cluster, as controllers look at it."""

    def __init__(self) -> None:
        self._objects: dict[Kind, dict[tuple[str, str], Stored]] = {}
        self._owned: dict[str, dict[Ref, None]] = {}

    @classmethod
    def of(cls, objects: Iterable[Stored]) -> Seen:
        """These objects, as they are."""
        seen = cls()
        for one in objects:
            seen._put(one)
        return seen

    @property
    def kinds(self) -> list[Kind]:
        return sorted(self._objects)

    def get(self, ref: Ref) -> Stored | None:
        return self._objects.get(ref.kind, {}).get((ref.namespace, ref.name))

    def all_of(self, kind: Kind, namespace: str = "") -> list[Stored]:
        found = sorted(self._objects.get(kind, {}).items())
        return [one for (place, _), one in found if not namespace or place == namespace]

    def inside(self, namespace: str) -> list[Stored]:
        return [one for kind in sorted(self._objects) for one in self.all_of(kind, namespace)]

    def owned_by(self, uid: str) -> list[Stored]:
        found = (self.get(ref) for ref in self._owned.get(uid, {}))
        return [one for one in found if one is not None]

    def take(self, change: Change, live: Live) -> Transition:
        """Remember a change, and say what it was."""
        key = (live.ref.namespace, live.ref.name)
        before = self._objects.setdefault(live.ref.kind, {}).pop(key, None)
        body: dict[str, Json] = msgspec.json.decode(live.body)
        stored = Stored(live.ref, body, (), int(live.version))
        self._put(stored, stays=change is not Change.DELETED)
        return Transition(change, stored, before)

    def _put(self, stored: Stored, *, stays: bool = True) -> None:
        ref = stored.ref
        for uid in owner_uids(stored.metadata):
            self._owned.setdefault(uid, {})[ref] = None
        if stays:
            self._objects.setdefault(ref.kind, {})[ref.namespace, ref.name] = stored


class Loose:
    """Controllers at work in a world, for as long as somebody runs them."""

    def __init__(
        self, world: Exchange, controllers: Sequence[Controller], *, kinds: Iterable[Kind]
    ) -> None:
        self._world = world
        self._party = world.party()
        self._asked_about = roster(controllers)
        self._view = Seen()
        self._agenda = Agenda()
        self._planned: set[tuple[str, Ref]] = set()
        self._waiting: dict[Ticket, tuple[Controller, Ref, Looking]] = {}
        self._watched: dict[Kind, Ticket] = {}
        for kind in kinds:
            self._watch(kind)

    async def run(self, until: Ms) -> None:
        """Let them work up to a moment."""
        while self._world.now() < until:
            due = self._agenda.next_moment()
            for fact in await self._party.wait(until if due is None else min(until, due)):
                self._hear(fact)
            while deed := self._agenda.take(self._world.now()):
                deed()

    def _hear(self, fact: Fact) -> None:
        match fact:
            case Changed():
                event = self._view.take(fact.change, fact.live)
                if fact.live.ref.kind == DEFINITIONS:
                    self._watch_defined()
                for controller in self._asked_about(fact.live.ref.kind.name):
                    for ref in controller.concerns(self._view, event):
                        self._plan(controller, ref, controller.delay)
            case Answer() if fact.ticket in self._waiting:
                controller, ref, looking = self._waiting.pop(fact.ticket)
                self._go_on(controller, ref, looking, fact.outcome)
            case Ended():
                self._lose(fact.ticket)
            case _:
                pass

    def _watch(self, kind: Kind) -> None:
        self._watched[kind] = self._party.submit(Watch(Selection(kind)))

    def _watch_defined(self) -> None:
        """Kinds that CRDs have brought since."""
        for kind in custom_kinds(self._view):
            if kind not in self._watched:
                self._watch(kind)

    def _lose(self, ticket: Ticket) -> None:
        """A kind is not served: not yet, or no more; it is asked for while its CRD is there."""
        for kind, own in [*self._watched.items()]:
            if own == ticket:
                del self._watched[kind]
                self._agenda.add(Ms(self._world.now() + ASKS_AGAIN), self._watch_defined)

    def _plan(self, controller: Controller, ref: Ref, pause: Ms) -> None:
        key = (controller.name, ref)
        if key not in self._planned:
            self._planned.add(key)
            self._agenda.add(Ms(self._world.now() + pause), lambda: self._look(controller, ref))

    def _look(self, controller: Controller, ref: Ref) -> None:
        """One look at a time for each object: a second one waits for the first to end."""
        busy = any(
            (one.name, at) == (controller.name, ref) for one, at, _ in self._waiting.values()
        )
        self._planned.discard((controller.name, ref))
        if busy:
            self._plan(controller, ref, controller.delay)
            return
        looking = controller.react(self._view, ref, self._world.now())
        self._go_on(controller, ref, looking, None)

    def _go_on(
        self, controller: Controller, ref: Ref, looking: Looking, outcome: Outcome | None
    ) -> None:
        while True:
            try:
                wanted = looking.send(outcome)
            except StopIteration:
                return
            outcome = None
            match wanted:
                case At():
                    moment = max(wanted.moment, Ms(self._world.now() + 1))
                    self._agenda.add(moment, partial(self._plan, controller, ref, Ms(0)))
                case Print():
                    pass
                case _:
                    ticket = self._party.submit(wanted)
                    self._waiting[ticket] = (controller, ref, looking)
                    return
