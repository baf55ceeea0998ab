"""Profile files: the default profile, and those that users write.

A duration is a single value (`5s`), or a range with its source. Which end of a range counts
depends on the estimate: optimistic, likely or pessimistic. A `Profile` holds the resolved
values only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Generic, TypeAlias, TypeVar

import msgspec

from tidegate.documents.decoder import FileProblem, decode_single
from tidegate.errors import FileError, sanitize
from tidegate.model.operators.rows import WILDCARD, KindRow
from tidegate.model.simulation.duration_estimate import DurationEstimate
from tidegate.model.text.suggest import suggest_one_of
from tidegate.model.times import SECOND, Duration, Ms, PositiveSeconds, WholeSeconds
from tidegate.sandbox.node.profile import (
    Assumption,
    ContainerRule,
    ContainerSelector,
    DurationSpread,
    Profile,
    ProfileChanges,
    StageRule,
    StageSelector,
)

DEFAULT_PROFILE_FILE = Path(__file__).with_name("typical.yaml")
OneOrMoreTexts = str | tuple[str, ...]
_S = TypeVar("_S")


class DurationRange(
    msgspec.Struct, Generic[_S], frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A range of durations, and its source."""

    likely: _S
    """The likely duration."""
    optimistic: _S | None = None
    """The shortest duration; None for `likely` times the spread factor."""
    pessimistic: _S | None = None
    """The longest duration; None for `likely` times the spread factor."""
    source: str = ""
    """The source of the durations."""


DurationValue: TypeAlias = Ms | DurationRange[Ms] | None


class _DurationResolver(msgspec.Struct, frozen=True):
    """A resolver of durations; one without a range is multiplied by a factor."""

    estimate: DurationEstimate
    """The end of a range that counts."""
    factor: float
    """The factor for durations without a range."""

    def resolve(
        self, value: Ms | DurationRange[Ms], *, step: Ms = Ms(1), minimum: Ms = Ms(0)
    ) -> Ms:
        """Return the duration that counts, in whole steps."""
        if not isinstance(value, DurationRange):
            likely, explicit = value, None
        else:
            likely, explicit = value.likely, getattr(value, self.estimate)
        stretched = Ms(int(likely * self.factor / step + 0.5) * step)
        return max(minimum, stretched) if explicit is None else explicit


class _Durations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The general durations of a profile file."""

    pull: WholeSeconds | DurationRange[WholeSeconds] | None = None
    """From the binding of a pod until the image is pulled."""
    start: WholeSeconds | DurationRange[WholeSeconds] | None = None
    """From the pulled image until the container is running."""
    ready: WholeSeconds | DurationRange[WholeSeconds] | None = None
    """From start until the probes succeed."""
    run: WholeSeconds | DurationRange[WholeSeconds] | None = None
    """From start to end, for containers that terminate."""
    init: WholeSeconds | DurationRange[WholeSeconds] | None = None
    """From start to end, for init containers."""
    dial: PositiveSeconds | DurationRange[PositiveSeconds] | None = None
    """Never zero: a call that takes no time would be repeated endlessly at the same time."""
    poll: PositiveSeconds | DurationRange[PositiveSeconds] | None = None
    """Pause between two calls of a container that waits for a Service."""
    stop: WholeSeconds | DurationRange[WholeSeconds] | None = None
    """Time from SIGTERM until the container has ended."""

    def changes(self, resolver: _DurationResolver) -> ProfileChanges:
        values = {key: getattr(self, key) for key in DURATIONS}
        return {
            key: resolver.resolve(
                value, step=SECOND, minimum=SECOND if key in NONZERO_DURATIONS else Ms(0)
            )
            for key, value in values.items()
            if value is not None
        }


DURATIONS = _Durations.__struct_fields__
NONZERO_DURATIONS = ("dial", "poll")


class _Rule(_Durations, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule of a profile file."""

    when: ContainerSelector = ContainerSelector()
    """The containers."""
    dials: bool | None = None
    """Whether a long-running container exits when a Service it names has no ready endpoints."""

    def changes(self, resolver: _DurationResolver) -> ProfileChanges:
        dials = {} if self.dials is None else {"dials": self.dials}
        return super().changes(resolver) | dials


class _StageEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule for stages of operators."""

    after: Duration | DurationRange[Duration]
    """The duration of the stage."""
    when: StageSelector = StageSelector()
    """The stages."""


class _Factors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The factors of `spread`."""

    optimistic: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """The factor of the optimistic estimate."""
    pessimistic: Annotated[float, msgspec.Meta(ge=1)] | None = None
    """The factor of the pessimistic estimate."""

    def apply_to(self, other: DurationSpread) -> DurationSpread:
        """Return these factors, with unset ones taken from another spread."""
        values = msgspec.structs.asdict(self)
        changes = {key: value for key, value in values.items() if value is not None}
        return msgspec.structs.replace(other, **changes)


class _ProfileFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a profile file."""

    name: str = ""
    """The name of the profile."""
    durations: _Durations = _Durations()
    """The general durations."""
    spread: _Factors = _Factors()
    """Factors for durations without a range."""
    rules: tuple[_Rule, ...] = ()
    """Rules for some containers."""
    stages: tuple[_StageEntry, ...] = ()
    """Durations of operator stages."""
    polls: OneOrMoreTexts = ()
    """Regular expressions of commands that wait for a Service."""
    telemetry: OneOrMoreTexts = ()
    """Regular expressions of variables and hosts of telemetry."""
    certifies: OneOrMoreTexts = ()
    """Patterns of images and commands that issue certificates."""
    assumptions: tuple[Assumption, ...] = ()
    """The assumptions of the profile."""


@cache
def default_profile(estimate: DurationEstimate = DurationEstimate.LIKELY) -> Profile:
    """Return the default profile."""
    return read_profile(
        DEFAULT_PROFILE_FILE.read_bytes(),
        DEFAULT_PROFILE_FILE.name,
        base=Profile(),
        estimate=estimate,
    )


def read_profile(
    text: bytes,
    name: str,
    *,
    base: Profile,
    operators: Iterable[KindRow] = (),
    estimate: DurationEstimate = DurationEstimate.LIKELY,
) -> Profile:
    """Read a profile file, which extends another profile and overrides it.

    Raises one ExceptionGroup with an error for each mistake in the file. Names of stages are
    checked against the rows of `operators`, if there are any.
    """
    rows = tuple(operators)
    file = decode_single(
        text, name, _ProfileFile, noun="profile", check=lambda file: _problems(file, rows)
    )
    spread = file.spread.apply_to(base.spread)
    resolver = _DurationResolver(estimate, spread.factor(estimate))
    stages = (
        StageRule(when=entry.when, after=resolver.resolve(entry.after)) for entry in file.stages
    )
    return Profile(
        name=file.name or base.name,
        durations=msgspec.structs.replace(base.durations, **file.durations.changes(resolver)),
        spread=spread,
        rules=(
            *base.rules,
            *(ContainerRule(rule.when, rule.changes(resolver)) for rule in file.rules),
        ),
        stages=(*base.stages, *stages),
        polls=(*base.polls, *_as_tuple(file.polls)),
        telemetry=(*base.telemetry, *_as_tuple(file.telemetry)),
        certifies=(*base.certifies, *_as_tuple(file.certifies)),
        assumptions=(*base.assumptions, *file.assumptions),
    )


def _as_tuple(texts: OneOrMoreTexts) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else texts


def _problems(file: _ProfileFile, rows: tuple[KindRow, ...]) -> Iterator[FileProblem]:
    for index, stage in enumerate(file.stages):
        stage_names = _stage_names(stage.when, rows)
        if stage_names and not any(
            fnmatchcase(stage_name, stage.when.stage) for stage_name in stage_names
        ):
            problem = f"unknown stage `{sanitize(stage.when.stage)}`"
            hint = suggest_one_of(stage.when.stage, stage_names)
            yield ("stages", index, "when", "stage"), FileError("file.value", problem, hint=hint)
        yield from _range_problems(("stages", index, "after"), stage.after)
    for key in DURATIONS:
        yield from _range_problems(("durations", key), getattr(file.durations, key))
        for index, rule in enumerate(file.rules):
            yield from _range_problems(("rules", index, key), getattr(rule, key))
    for key in ("polls", "telemetry", "certifies"):
        for pattern in _as_tuple(getattr(file, key)):
            try:
                re.compile(pattern)
            except re.error:
                problem = f"`{key}` has a pattern that is not a regular expression"
                hint = "escape brackets with `\\`"
                yield (key,), FileError("file.value", problem, hint=hint)


def _range_problems(path: tuple[str | int, ...], value: DurationValue) -> Iterator[FileProblem]:
    """Yield a problem if the ends of a range are not in ascending order."""
    if not isinstance(value, DurationRange):
        return
    ends = (value.optimistic, value.likely, value.pessimistic)
    bounds = [end for end in ends if end is not None]
    if bounds != sorted(bounds):
        problem = f"`{path[-1]}` is not a range: its values are not in ascending order"
        hint = "`optimistic` is at most `likely`, and `pessimistic` at least"
        yield path, FileError("file.value", problem, hint=hint)


def _stage_names(selector: StageSelector, rows: tuple[KindRow, ...]) -> tuple[str, ...]:
    """Return the names of the stages that a selector can match.

    A rule for an unknown stage would silently have no effect.
    """
    matching = [row for row in rows if selector.can_match(row)]
    specific = [row for row in matching if row.group != WILDCARD]
    return tuple(dict.fromkeys(stage.name for row in specific or matching for stage in row.stages))
