"""What a scenario lets befall containers: one struct for each effect of its `behaviours`."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tidegate.model.moment import Seconds
from tidegate.sandbox.physics.course import CourseChanges, Failure, Fit, Rule

Count = Annotated[int, msgspec.Meta(ge=1)]
ExitCode = Annotated[int, msgspec.Meta(ge=1, le=255)]


class _Behaviour(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="effect"
):
    when: Fit = Fit()

    def changes(self) -> CourseChanges:
        raise NotImplementedError

    @property
    def rule(self) -> Rule:
        return Rule(self.when, self.changes())


class _Fails(_Behaviour, frozen=True, kw_only=True, tag="fails"):
    times: Count | None = None
    after: Seconds | None = None
    code: ExitCode = msgspec.field(default=1, name="exit")

    def changes(self) -> CourseChanges:
        return {"failure": Failure(after=self.after, times=self.times, code=self.code)}


class _Crashes(_Fails, frozen=True, kw_only=True, tag="crashes"):
    after: Seconds


class _NeverReady(_Behaviour, frozen=True, kw_only=True, tag="never-ready"):
    def changes(self) -> CourseChanges:
        return {"never_ready": True}


class _Flaps(_Behaviour, frozen=True, kw_only=True, tag="flaps"):
    every: Seconds

    def changes(self) -> CourseChanges:
        return {"flaps": self.every}


class _Slow(_Behaviour, frozen=True, kw_only=True, tag="slow"):
    by: Seconds

    def changes(self) -> CourseChanges:
        return {"slow": self.by}


class _Unpullable(_Behaviour, frozen=True, kw_only=True, tag="unpullable"):
    lasts: Seconds | None = msgspec.field(default=None, name="for")

    def changes(self) -> CourseChanges:
        return {"unpullable": True, "pullable_after": self.lasts}


class _Unschedulable(_Behaviour, frozen=True, kw_only=True, tag="unschedulable"):
    message: str = "1 Insufficient memory"

    def changes(self) -> CourseChanges:
        return {"unschedulable": self.message}


class _Prints(_Behaviour, frozen=True, kw_only=True, tag="prints"):
    lines: str | tuple[str, ...]

    def changes(self) -> CourseChanges:
        return {"lines": (self.lines,) if isinstance(self.lines, str) else self.lines}


Behaviour = (
    _Fails | _Crashes | _NeverReady | _Flaps | _Slow | _Unpullable | _Unschedulable | _Prints
)
