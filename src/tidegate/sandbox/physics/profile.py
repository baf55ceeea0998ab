"""How the life of a container goes: how long each part takes, what befalls it, what is assumed.

A `Profile` is a list of rules. Each rule fits some containers and changes some parts of their
course; the last rule that speaks of a part decides it. A profile file adds to the one that is
shipped, and a scenario adds rules of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.documents.decoding import Flaw, decode_one, suggest
from tidegate.errors import FileError, foreign
from tidegate.model.moment import SECOND, Ms, Seconds, SomeSeconds, Span
from tidegate.model.operators import EVERY, Row

CourseChanges: TypeAlias = dict[str, object]
"""Some parts of a course, by name."""
TYPICAL = Path(__file__).with_name("typical.yaml")
Texts = str | tuple[str, ...]


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


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """How long things take and what is assumed."""

    name: str = ""
    durations: ContainerCourse = ContainerCourse()
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


class _Durations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pull: Seconds | None = None
    start: Seconds | None = None
    ready: Seconds | None = None
    run: Seconds | None = None
    init: Seconds | None = None
    dial: SomeSeconds | None = None
    """A call that takes no time would be made again and again at the same moment."""
    poll: SomeSeconds | None = None
    stop: Seconds | None = None

    @property
    def changes(self) -> CourseChanges:
        said = {key: getattr(self, key) for key in (*DURATIONS, "dials") if hasattr(self, key)}
        return {key: value for key, value in said.items() if value is not None}


DURATIONS = _Durations.__struct_fields__


class _Rule(_Durations, frozen=True, kw_only=True, forbid_unknown_fields=True):
    when: Fit = Fit()
    dials: bool | None = None


class _ProfileFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a profile."""

    name: str = ""
    durations: _Durations = _Durations()
    rules: tuple[_Rule, ...] = ()
    stages: tuple[StageRule, ...] = ()
    polls: Texts = ()
    telemetry: Texts = ()
    certifies: Texts = ()
    assumptions: tuple[Assumption, ...] = ()


@cache
def typical() -> Profile:
    """The profile that is shipped."""
    return read_profile(TYPICAL.read_bytes(), TYPICAL.name, onto=Profile())


def read_profile(
    text: bytes, name: str, *, onto: Profile, operators: Iterable[Row] = ()
) -> Profile:
    """A profile file, which adds to another profile and wins over it.

    Raises one ExceptionGroup with an error for each mistake in the file. Stages are looked for in
    the rows of `operators`, if there are any.
    """
    rows = tuple(operators)
    file = decode_one(
        text, name, _ProfileFile, noun="profile", check=lambda file: _flaws(file, rows)
    )
    return Profile(
        name=file.name or onto.name,
        durations=msgspec.structs.replace(onto.durations, **file.durations.changes),
        rules=(*onto.rules, *(CourseRule(rule.when, rule.changes) for rule in file.rules)),
        stages=(*onto.stages, *file.stages),
        polls=(*onto.polls, *_listed(file.polls)),
        telemetry=(*onto.telemetry, *_listed(file.telemetry)),
        certifies=(*onto.certifies, *_listed(file.certifies)),
        assumptions=(*onto.assumptions, *file.assumptions),
    )


def _listed(texts: Texts) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else texts


def _flaws(file: _ProfileFile, rows: tuple[Row, ...]) -> Iterator[Flaw]:
    for place, stage in enumerate(file.stages):
        known = _stages_of(stage.when, rows)
        if known and not any(fnmatchcase(one, stage.when.stage) for one in known):
            problem = f"there is no stage `{foreign(stage.when.stage)}`"
            hint = suggest(stage.when.stage, known)
            yield ("stages", place, "when", "stage"), FileError("file.value", problem, hint=hint)
    for key in ("polls", "telemetry", "certifies"):
        for pattern in _listed(getattr(file, key)):
            try:
                re.compile(pattern)
            except re.error:
                problem = f"`{key}` has a pattern that is no regular expression"
                hint = "escape brackets with `\\`"
                yield (key,), FileError("file.value", problem, hint=hint)


def _stages_of(fit: StageFit, rows: tuple[Row, ...]) -> tuple[str, ...]:
    """The stages that may be meant: one that no row has would say nothing, in silence."""
    about = [row for row in rows if fit.is_about(row)]
    own = [row for row in about if row.group != EVERY]
    return tuple(dict.fromkeys(stage.name for row in own or about for stage in row.stages))
