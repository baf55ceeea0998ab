"""Format of `faults` and `behaviours` in a scenario: a struct for each effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec

from tidegate.documents.decoder import FileProblem
from tidegate.errors import FileError, ScenarioError, sanitize
from tidegate.model.text.suggest import suggest_one_of
from tidegate.model.times import SECOND, Duration, Ms, PositiveSeconds, WholeSeconds
from tidegate.sandbox import faults
from tidegate.sandbox.node.profile import (
    ContainerFailure,
    ContainerRule,
    ContainerSelector,
    ProfileChanges,
)

Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
FREQUENCY_KEYS = ("every", "probability", "times", "from", "until")
Count = Annotated[int, msgspec.Meta(ge=1)]
ExitCode = Annotated[int, msgspec.Meta(ge=1, le=255)]


class _ClusterSelector(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A selector of clusters."""

    cluster: str | None = None
    """The name of the cluster; None for all."""

    def to_selector(self, verbs: tuple[str, ...] = ()) -> faults.FaultSelector:
        """Return the FaultSelector; `verbs` are the verbs that the fault can affect."""
        values = {key: getattr(self, key) for key in self.__struct_fields__ if key != "verb"}
        return faults.FaultSelector(verbs=verbs, **values)


class _ObjectSelector(_ClusterSelector, frozen=True, kw_only=True):
    """A selector of objects."""

    kind: str | None = None
    """The kind of the object."""
    group: str | None = None
    """The API group of the object."""
    namespace: str | None = None
    """The namespace of the object."""
    name: str | None = None
    """The name of the object."""


class _CallSelector(_ObjectSelector, frozen=True, kw_only=True):
    """A selector of calls."""

    verb: str | tuple[str, ...] = ()
    """One or more verbs; empty for all."""
    manager: str | None = None
    """The field manager of a write."""

    @property
    def verbs(self) -> tuple[str, ...]:
        return (self.verb,) if isinstance(self.verb, str) else self.verb

    def to_selector(self, verbs: tuple[str, ...] = ()) -> faults.FaultSelector:
        return super().to_selector(
            self.verbs or (faults.WRITES if self.manager is not None else verbs)
        )

    def find_problems(self, verbs: tuple[str, ...]) -> Iterator[FileProblem]:
        possible_verbs = verbs if self.manager is None else faults.WRITES
        rule = (
            "the effect applies to writes only"
            if self.manager is None
            else "only writes have a `manager`"
        )
        for verb in self.verbs:
            if verb not in faults.VERBS:
                problem, hint = (
                    f"unknown verb `{sanitize(verb)}`",
                    suggest_one_of(verb, faults.VERBS),
                )
                yield ("when", "verb"), FileError("file.value", problem, hint=hint)
            elif possible_verbs and verb not in possible_verbs:
                problem, hint = (
                    f"`{verb}` never matches: {rule}",
                    suggest_one_of(verb, possible_verbs),
                )
                yield ("when", "verb"), ScenarioError("scenario.contradiction", problem, hint=hint)


class _FaultSpecBase(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="effect"
):
    """A fault in a scenario."""

    @property
    def fault(self) -> faults.Fault:
        raise NotImplementedError

    def find_problems(self) -> Iterator[FileProblem]:
        """Yield problems that types cannot express."""
        yield from ()


class _WindowSpec(_FaultSpecBase, frozen=True, kw_only=True):
    """A fault with a time window."""

    start: Duration | None = msgspec.field(default=None, name="from")
    """Start of the time window."""
    until: Duration | None = None
    """End of the time window; None for no end."""

    def find_problems(self) -> Iterator[FileProblem]:
        if self.until is not None and self.until <= (self.start or 0):
            problem = "`until` is not later than `from`"
            hint = "both count from the start of the simulation"
            yield ("until",), ScenarioError("scenario.contradiction", problem, hint=hint)


class _RecurringSpec(_WindowSpec, frozen=True, kw_only=True):
    """A fault that hits some of the matching calls."""

    every: Count | None = None
    """Every how many matching calls the fault occurs."""
    probability: Probability | None = None
    """The share of matching calls."""
    times: Count | None = None
    """Maximum number of hits."""

    @property
    def frequency(self) -> faults.Frequency:
        return faults.Frequency(
            every=self.every or 1,
            probability=self.probability,
            times=self.times,
            start=self.start or Ms(0),
            until=self.until,
        )

    def find_problems(self) -> Iterator[FileProblem]:
        yield from super().find_problems()
        if self.every is not None and self.probability is not None:
            yield _exclusive_problem("every", "probability")


class _CallFaultSpec(_RecurringSpec, frozen=True, kw_only=True):
    """A fault that affects single calls."""

    when: _CallSelector = _CallSelector()
    """The affected calls."""
    verbs: ClassVar[tuple[str, ...]] = ()
    """The verbs that the fault can affect; empty for all."""
    fixed_effect: ClassVar[faults.CallEffect]
    """The effect, if it has no options."""

    def effect(self) -> faults.CallEffect:
        return self.fixed_effect

    @property
    def fault(self) -> faults.Fault:
        return faults.CallFault(self.effect(), self.when.to_selector(self.verbs), self.frequency)

    def find_problems(self) -> Iterator[FileProblem]:
        yield from super().find_problems()
        yield from self.when.find_problems(self.verbs)


class _Conflict(_CallFaultSpec, frozen=True, kw_only=True, tag="conflict"):
    """A write that fails with a conflict."""

    verbs = faults.WRITES
    fixed_effect: ClassVar[faults.CallEffect] = faults.Rejection(faults.CONFLICT)


class _Throttle(_CallFaultSpec, frozen=True, kw_only=True, tag="throttle"):
    """A call that the server rejects because of its load."""

    after: PositiveSeconds | None = None
    """Whole seconds only, because servers send it in `Retry-After`."""

    def effect(self) -> faults.CallEffect:
        return faults.Rejection(faults.too_many_requests(self.after or SECOND))


class _Error(_CallFaultSpec, frozen=True, kw_only=True, tag="error"):
    """A call that fails with a server error."""

    fixed_effect: ClassVar[faults.CallEffect] = faults.Rejection(faults.ERROR)


class _Slow(_CallFaultSpec, frozen=True, kw_only=True, tag="slow"):
    """A call with a slow response."""

    by: Duration
    """The delay of the response."""

    def effect(self) -> faults.CallEffect:
        return faults.Delay(self.by)


class _LoseBefore(_CallFaultSpec, frozen=True, kw_only=True, tag="lose-before"):
    """A call that is lost before the server performs it."""

    fixed_effect: ClassVar[faults.CallEffect] = faults.ResponseLoss(is_performed=False)


class _LoseAfter(_CallFaultSpec, frozen=True, kw_only=True, tag="lose-after"):
    """A call that the server performs, and whose response is lost."""

    fixed_effect: ClassVar[faults.CallEffect] = faults.ResponseLoss(is_performed=True)


class _WatchFaultSpec(_RecurringSpec, frozen=True, kw_only=True):
    """A fault of watches: at a time for all open ones, or for each when it is opened."""

    when: _ObjectSelector = _ObjectSelector()
    """The affected watches."""
    at: Duration | None = None
    """The time of the fault, for all open watches."""
    after: Duration | None = None
    """Time from the opening of a watch to the fault."""

    def effect(self) -> faults.StreamDrop | faults.StreamSilence:
        raise NotImplementedError

    @property
    def fault(self) -> faults.Fault:
        if self.at is None:
            return faults.CallFault(
                self.effect(), self.when.to_selector(("watch",)), self.frequency
            )
        return faults.TimedFault(self.at, self.effect(), self.when.to_selector())

    def find_problems(self) -> Iterator[FileProblem]:
        yield from super().find_problems()
        field_names = {"from": "start"}
        for key in ("after", *FREQUENCY_KEYS):
            if self.at is not None and getattr(self, field_names.get(key, key)) is not None:
                yield _exclusive_problem("at", key)


class _Drop(_WatchFaultSpec, frozen=True, kw_only=True, tag="drop-watches"):
    """A watch whose stream breaks."""

    def effect(self) -> faults.StreamDrop:
        return faults.StreamDrop(self.after or Ms(0))


class _Silence(_WatchFaultSpec, frozen=True, kw_only=True, tag="silence-watches"):
    """A watch whose stream is silent."""

    duration: Duration | None = msgspec.field(default=None, name="for")
    """The duration of the silence; None means forever."""

    def effect(self) -> faults.StreamSilence:
        return faults.StreamSilence(self.duration, self.after or Ms(0))


class _Compact(_FaultSpecBase, frozen=True, kw_only=True, tag="compact"):
    """A compaction of the history."""

    at: Duration
    """The time of the compaction."""
    when: _ClusterSelector = _ClusterSelector()
    """The affected clusters."""

    @property
    def fault(self) -> faults.Fault:
        return faults.TimedFault(self.at, faults.Compaction(), self.when.to_selector())


class _Down(_WindowSpec, frozen=True, kw_only=True, tag="down"):
    """An outage of a cluster."""

    when: _ClusterSelector = _ClusterSelector()
    """The affected clusters."""

    @property
    def fault(self) -> faults.Fault:
        return faults.TimedFault(
            self.start or Ms(0), faults.Outage(self.until), self.when.to_selector()
        )


FaultSpec = (
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


def _exclusive_problem(first: str, second: str) -> FileProblem:
    """Return the problem of two keys that exclude each other."""
    problem = f"`{first}` cannot be combined with `{second}`"
    hint = "remove one of the two"
    return (second,), ScenarioError("scenario.contradiction", problem, hint=hint)


class _BehaviourSpecBase(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="effect"
):
    """Behavior of containers: fields of their ContainerProfile, under the keys of a scenario."""

    when: ContainerSelector = ContainerSelector()
    """The containers."""

    def changes(self) -> ProfileChanges:
        return {key: getattr(self, key) for key in self.__struct_fields__ if key != "when"}

    @property
    def rule(self) -> ContainerRule:
        return ContainerRule(self.when, self.changes())


class _Fails(_BehaviourSpecBase, frozen=True, kw_only=True, tag="fails"):
    """A container that exits with an error."""

    times: Count | None = None
    """Number of attempts that fail; None for all."""
    after: WholeSeconds | None = None
    """Time from start to exit; None: when the work would have been done."""
    code: ExitCode = msgspec.field(default=1, name="exit")
    """The exit code."""

    def changes(self) -> ProfileChanges:
        return {"failure": ContainerFailure(after=self.after, times=self.times, code=self.code)}


class _Crashes(_Fails, frozen=True, kw_only=True, tag="crashes"):
    """A container that crashes again and again."""

    after: WholeSeconds
    """Time from start to exit."""


class _NeverReady(_BehaviourSpecBase, frozen=True, kw_only=True, tag="never-ready"):
    """A container that never becomes ready."""

    def changes(self) -> ProfileChanges:
        return {"never_ready": True}


class _Flaps(_BehaviourSpecBase, frozen=True, kw_only=True, tag="flaps"):
    """A container that alternates between ready and not ready."""

    flaps: WholeSeconds = msgspec.field(name="every")
    """The period."""


class _SlowContainer(_BehaviourSpecBase, frozen=True, kw_only=True, tag="slow"):
    """A container that takes longer."""

    slow: WholeSeconds = msgspec.field(name="by")
    """The additional duration."""


class _Unpullable(_BehaviourSpecBase, frozen=True, kw_only=True, tag="unpullable"):
    """A container whose image cannot be pulled."""

    pullable_after: WholeSeconds | None = msgspec.field(default=None, name="for")
    """Time until the image can be pulled; None for never."""

    def changes(self) -> ProfileChanges:
        return {"unpullable": True, **super().changes()}


class _Unschedulable(_BehaviourSpecBase, frozen=True, kw_only=True, tag="unschedulable"):
    """A pod that no node accepts."""

    unschedulable: str = msgspec.field(default="1 Insufficient memory", name="message")
    """The reason of the scheduler."""


class _Prints(_BehaviourSpecBase, frozen=True, kw_only=True, tag="prints"):
    """A container that prints log lines when it starts."""

    lines: str | tuple[str, ...]
    """The lines."""

    def changes(self) -> ProfileChanges:
        return {"lines": (self.lines,) if isinstance(self.lines, str) else self.lines}


BehaviourSpec = (
    _Fails
    | _Crashes
    | _NeverReady
    | _Flaps
    | _SlowContainer
    | _Unpullable
    | _Unschedulable
    | _Prints
)
