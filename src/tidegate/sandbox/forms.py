"""The effects that a scenario can write: a struct for each of its `faults` and its `behaviours`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec

from tidegate.documents.decoding import Flaw, suggest
from tidegate.errors import FileError, ScenarioError, foreign
from tidegate.model.moment import SECOND, Ms, Seconds, SomeSeconds, Span
from tidegate.sandbox import faults
from tidegate.sandbox.physics.profile import ContainerFailure, CourseChanges, CourseRule, Fit

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
OFTEN = ("every", "probability", "times", "from", "until")
Count = Annotated[int, msgspec.Meta(ge=1)]
ExitCode = Annotated[int, msgspec.Meta(ge=1, le=255)]


class _OfClusters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom a fault meets."""

    cluster: str | None = None

    def match(self, verbs: tuple[str, ...] = ()) -> faults.Match:
        """`verbs` are those that it can meet at all."""
        said = {key: getattr(self, key) for key in self.__struct_fields__ if key != "verb"}
        return faults.Match(verbs=verbs, **said)


class _OfObjects(_OfClusters, frozen=True, kw_only=True):
    kind: str | None = None
    group: str | None = None
    namespace: str | None = None
    name: str | None = None


class _OfCalls(_OfObjects, frozen=True, kw_only=True):
    verb: str | tuple[str, ...] = ()
    manager: str | None = None

    @property
    def verbs(self) -> tuple[str, ...]:
        return (self.verb,) if isinstance(self.verb, str) else self.verb

    def match(self, verbs: tuple[str, ...] = ()) -> faults.Match:
        return super().match(self.verbs or (faults.WRITES if self.manager is not None else verbs))

    def flaws(self, verbs: tuple[str, ...]) -> Iterator[Flaw]:
        possible = verbs if self.manager is None else faults.WRITES
        rule = "it meets writes only" if self.manager is None else "only writes have a `manager`"
        for verb in self.verbs:
            if verb not in faults.VERBS:
                problem, hint = f"there is no verb `{foreign(verb)}`", suggest(verb, faults.VERBS)
                yield ("when", "verb"), FileError("file.value", problem, hint=hint)
            elif possible and verb not in possible:
                problem, hint = f"`{verb}` is never met: {rule}", suggest(verb, possible)
                yield ("when", "verb"), ScenarioError("scenario.contradiction", problem, hint=hint)


class _WrittenFault(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="effect"
):
    """A fault as it is written."""

    @property
    def fault(self) -> faults.Fault:
        raise NotImplementedError

    def flaws(self) -> Iterator[Flaw]:
        """What of it cannot be."""
        yield from ()


class _Window(_WrittenFault, frozen=True, kw_only=True):
    start: Span | None = msgspec.field(default=None, name="from")
    until: Span | None = None

    def flaws(self) -> Iterator[Flaw]:
        if self.until is not None and self.until <= (self.start or 0):
            problem = "`until` is not later than `from`"
            hint = "both count from the start of the simulation"
            yield ("until",), ScenarioError("scenario.contradiction", problem, hint=hint)


class _Recurring(_Window, frozen=True, kw_only=True):
    """A fault that comes now and then."""

    every: Count | None = None
    probability: Share | None = None
    times: Count | None = None

    @property
    def often(self) -> faults.Often:
        return faults.Often(
            every=self.every or 1,
            probability=self.probability,
            times=self.times,
            start=self.start or Ms(0),
            until=self.until,
        )

    def flaws(self) -> Iterator[Flaw]:
        yield from super().flaws()
        if self.every is not None and self.probability is not None:
            yield _both("every", "probability")


class _Call(_Recurring, frozen=True, kw_only=True):
    """What becomes of one call."""

    when: _OfCalls = _OfCalls()
    verbs: ClassVar[tuple[str, ...]] = ()
    always: ClassVar[faults.CallEffect]

    def effect(self) -> faults.CallEffect:
        return self.always

    @property
    def fault(self) -> faults.Fault:
        return faults.CallFault(self.effect(), self.when.match(self.verbs), self.often)

    def flaws(self) -> Iterator[Flaw]:
        yield from super().flaws()
        yield from self.when.flaws(self.verbs)


class _Conflict(_Call, frozen=True, kw_only=True, tag="conflict"):
    verbs = faults.WRITES
    always: ClassVar[faults.CallEffect] = faults.Refuse(faults.CONFLICT)


class _Throttle(_Call, frozen=True, kw_only=True, tag="throttle"):
    after: SomeSeconds | None = None
    """A server tells it in `Retry-After`, which knows whole seconds only."""

    def effect(self) -> faults.CallEffect:
        return faults.Refuse(faults.throttled(self.after or SECOND))


class _Error(_Call, frozen=True, kw_only=True, tag="error"):
    always: ClassVar[faults.CallEffect] = faults.Refuse(faults.ERROR)


class _Slow(_Call, frozen=True, kw_only=True, tag="slow"):
    by: Span

    def effect(self) -> faults.CallEffect:
        return faults.Slow(self.by)


class _LoseBefore(_Call, frozen=True, kw_only=True, tag="lose-before"):
    always: ClassVar[faults.CallEffect] = faults.Lose(performed=False)


class _LoseAfter(_Call, frozen=True, kw_only=True, tag="lose-after"):
    always: ClassVar[faults.CallEffect] = faults.Lose(performed=True)


class _Watches(_Recurring, frozen=True, kw_only=True):
    """Either at a moment for all that are open, or for watches as they are opened."""

    when: _OfObjects = _OfObjects()
    at: Span | None = None
    after: Span | None = None

    def effect(self) -> faults.Drop | faults.Silence:
        raise NotImplementedError

    @property
    def fault(self) -> faults.Fault:
        if self.at is None:
            return faults.CallFault(self.effect(), self.when.match(("watch",)), self.often)
        return faults.TimedFault(self.at, self.effect(), self.when.match())

    def flaws(self) -> Iterator[Flaw]:
        yield from super().flaws()
        names = {"from": "start"}
        for key in ("after", *OFTEN):
            if self.at is not None and getattr(self, names.get(key, key)) is not None:
                yield _both("at", key)


class _Drop(_Watches, frozen=True, kw_only=True, tag="drop-watches"):
    def effect(self) -> faults.Drop:
        return faults.Drop(self.after or Ms(0))


class _Silence(_Watches, frozen=True, kw_only=True, tag="silence-watches"):
    lasts: Span | None = msgspec.field(default=None, name="for")

    def effect(self) -> faults.Silence:
        return faults.Silence(self.lasts, self.after or Ms(0))


class _Compact(_WrittenFault, frozen=True, kw_only=True, tag="compact"):
    at: Span
    when: _OfClusters = _OfClusters()

    @property
    def fault(self) -> faults.Fault:
        return faults.TimedFault(self.at, faults.Compact(), self.when.match())


class _Down(_Window, frozen=True, kw_only=True, tag="down"):
    when: _OfClusters = _OfClusters()

    @property
    def fault(self) -> faults.Fault:
        return faults.TimedFault(self.start or Ms(0), faults.Down(self.until), self.when.match())


FaultForm = (
    _Conflict
    | _Throttle
    | _Error
    | _Slow
    | _LoseBefore
    | _LoseAfter
    | _Drop
    | _Silence
    | _Compact
    | _Down
)


def _both(first: str, second: str) -> Flaw:
    problem = f"`{first}` and `{second}` rule each other out"
    hint = "remove one of the two"
    return (second,), ScenarioError("scenario.contradiction", problem, hint=hint)


class _Behaviour(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="effect"
):
    """What befalls containers: parts of their course, under the names that people write."""

    when: Fit = Fit()

    def changes(self) -> CourseChanges:
        return {key: getattr(self, key) for key in self.__struct_fields__ if key != "when"}

    @property
    def rule(self) -> CourseRule:
        return CourseRule(self.when, self.changes())


class _Fails(_Behaviour, frozen=True, kw_only=True, tag="fails"):
    times: Count | None = None
    after: Seconds | None = None
    code: ExitCode = msgspec.field(default=1, name="exit")

    def changes(self) -> CourseChanges:
        return {"failure": ContainerFailure(after=self.after, times=self.times, code=self.code)}


class _Crashes(_Fails, frozen=True, kw_only=True, tag="crashes"):
    after: Seconds


class _NeverReady(_Behaviour, frozen=True, kw_only=True, tag="never-ready"):
    def changes(self) -> CourseChanges:
        return {"never_ready": True}


class _Flaps(_Behaviour, frozen=True, kw_only=True, tag="flaps"):
    flaps: Seconds = msgspec.field(name="every")


class _Lagging(_Behaviour, frozen=True, kw_only=True, tag="slow"):
    slow: Seconds = msgspec.field(name="by")


class _Unpullable(_Behaviour, frozen=True, kw_only=True, tag="unpullable"):
    pullable_after: Seconds | None = msgspec.field(default=None, name="for")

    def changes(self) -> CourseChanges:
        return {"unpullable": True, **super().changes()}


class _Unschedulable(_Behaviour, frozen=True, kw_only=True, tag="unschedulable"):
    unschedulable: str = msgspec.field(default="1 Insufficient memory", name="message")


class _Prints(_Behaviour, frozen=True, kw_only=True, tag="prints"):
    lines: str | tuple[str, ...]

    def changes(self) -> CourseChanges:
        return {"lines": (self.lines,) if isinstance(self.lines, str) else self.lines}


Behaviour = (
    _Fails | _Crashes | _NeverReady | _Flaps | _Lagging | _Unpullable | _Unschedulable | _Prints
)
