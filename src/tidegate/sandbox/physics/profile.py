"""How the life of a container goes: how long each part takes, what befalls it, what is assumed.

A `Profile` is a list of rules. Each rule fits some containers and changes some parts of their
course; the last rule that speaks of a part decides it. A profile file adds to the one that is
shipped (`profile_file`), and a scenario adds rules of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.model.expectation import Expectation
from tidegate.model.moment import SECOND, Ms, Span
from tidegate.model.operators import EVERY, Row

CourseChanges: TypeAlias = dict[str, object]
"""Some parts of a course, by name."""


class ContainerFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A container exits by itself: `after` so long, or when its work would have been done."""

    after: Ms | None = None
    times: int | None = None
    """How many attempts fail, counted over restarts and over the pods of a Job; None is all."""
    code: int = 1


class ContainerCourse(msgspec.Struct, frozen=True, kw_only=True):
    """What one container goes through. All durations are whole seconds, as in a pod's status."""

    pull: Ms = Ms(2 * SECOND)
    start: Ms = Ms(SECOND)
    ready: Ms = Ms(SECOND)
    """From its start until its probes succeed."""
    run: Ms = Ms(5 * SECOND)
    """From start to end, for the containers of Jobs and others that end by themselves."""
    init: Ms = Ms(SECOND)
    """The same for init containers."""
    dial: Ms = Ms(SECOND)
    """How long a call to a Service without ready endpoints takes to be refused."""
    poll: Ms = Ms(2 * SECOND)
    """How long a container that waits for a Service pauses between two calls."""
    stop: Ms = Ms(SECOND)
    """From the signal to end until it has ended."""
    dials: bool = False
    """Whether a container that runs for good ends when a Service that it names does not answer."""
    slow: Ms = Ms(0)
    """Added to `ready`, `run` and `init`."""
    never_ready: bool = False
    flaps: Ms = Ms(0)
    """Ready and not ready by turns, each so long."""
    unpullable: bool = False
    pullable_after: Ms | None = None
    """How long its image cannot be pulled; None is for good."""
    unschedulable: str = ""
    """Why there is no node for its pod."""
    failure: ContainerFailure | None = None
    lines: tuple[str, ...] = ()
    """What it prints when it starts."""


class Named(NamedTuple):
    """A link of the chain from a pod to the object that a person wrote."""

    kind: str
    name: str


class Subject(NamedTuple):
    """A container, and whose it is: `owners` begins with its pod."""

    owners: tuple[Named, ...]
    namespace: str
    container: str
    image: str


class Fit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom a rule is for. `*` stands for any text; what is not said fits all."""

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    container: str | None = None
    image: str | None = None

    def fits(self, subject: Subject) -> bool:
        own = (
            (self.image, subject.image),
            (self.namespace, subject.namespace),
            (self.container, subject.container),
        )
        for pattern, text in own:
            if pattern is not None and not fnmatchcase(text, pattern):
                return False
        if self.kind is None and self.name is None:
            return True
        return any(
            (self.kind is None or fnmatchcase(owner.kind, self.kind))
            and (self.name is None or fnmatchcase(owner.name, self.name))
            for owner in subject.owners
        )


class CourseRule(msgspec.Struct, frozen=True):
    """For these containers, this is different."""

    when: Fit
    changes: CourseChanges


class StageFit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which stages of which custom resources. `*` stands for any text."""

    group: str = EVERY
    kind: str = EVERY
    namespace: str = EVERY
    name: str = EVERY
    stage: str = EVERY

    def is_about(self, row: Row) -> bool:
        """Whether an object of a row may fit; the row for all other kinds is about any."""
        if row.group == EVERY:
            return True
        return fnmatchcase(row.group, self.group) and any(
            fnmatchcase(kind, self.kind) for kind in row.kinds
        )


class StageRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """These stages of an operator take so long."""

    after: Span
    when: StageFit = StageFit()


class Assumption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that is taken for true though no cluster vouches for it."""

    name: str
    claim: str
    source: str


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How much shorter and longer a duration may be that has no range of its own."""

    optimistic: float = 1
    pessimistic: float = 1

    def factor(self, expecting: Expectation) -> float:
        match expecting:
            case Expectation.OPTIMISTIC:
                return self.optimistic
            case Expectation.LIKELY:
                return 1
            case Expectation.PESSIMISTIC:
                return self.pessimistic


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """How long things take and what is assumed."""

    name: str = ""
    durations: ContainerCourse = ContainerCourse()
    spread: Spread = Spread()
    rules: tuple[CourseRule, ...] = ()
    stages: tuple[StageRule, ...] = ()
    """How long operators take."""
    polls: tuple[str, ...] = ()
    """Patterns of commands that wait for a Service; regular expressions."""
    telemetry: tuple[str, ...] = ()
    """Patterns of variables and hosts that nobody waits for."""
    certifies: tuple[str, ...] = ()
    """Patterns of images and commands that make certificates, and call no host that they name."""
    assumptions: tuple[Assumption, ...] = ()

    def with_rules(self, rules: Iterable[CourseRule]) -> Profile:
        """This profile and rules that come after its own."""
        return msgspec.structs.replace(self, rules=(*self.rules, *rules))

    def course_of(self, subject: Subject) -> ContainerCourse:
        """What is to happen to a container."""
        changes: CourseChanges = {}
        for rule in self.rules:
            if rule.when.fits(subject):
                changes |= rule.changes
        return msgspec.structs.replace(self.durations, **changes) if changes else self.durations


class Courses:
    """Answers of a profile, remembered: pods of one owner go through the same."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._known: dict[Subject, ContainerCourse] = {}
        self._knows_pods = any(
            rule.when.name is not None and fnmatchcase("Pod", rule.when.kind or "*")
            for rule in profile.rules
        )

    def of(self, subject: Subject) -> ContainerCourse:
        if not self._knows_pods:
            nameless = Named(subject.owners[0].kind, "")
            subject = subject._replace(owners=(nameless, *subject.owners[1:]))
        found = self._known.get(subject)
        if found is None:
            found = self._known[subject] = self._profile.course_of(subject)
        return found
