"""What a rule is, and what one says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from tidegate.documents import Document, FieldPath
from tidegate.errors import Place
from tidegate.lint.scene import LintScene
from tidegate.model.finding import Finding, Severity


class Mark(NamedTuple):
    """A field of an object, as it stands in its file."""

    document: Document
    path: FieldPath = ()


Spotted = Mark | Place | None
"""What a remark is about: a field, a place that is known, or nothing that has one."""
PlaceOf = Callable[[Mark], Place]


class RuleRemark(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule says once; what it leaves out is as the rule has it."""

    sentence: str
    at: Spotted
    severity: Severity | None = None
    story: tuple[str, ...] = ()
    also: tuple[Spotted, ...] = ()
    why: str = ""
    fix: str = ""
    paste: str = ""
    semantics: tuple[str, ...] = ()


Look = Callable[[LintScene], Iterable[RuleRemark]]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """An id, a title, how bad it is at worst, why that is so, and what to do about it."""

    id: str
    title: str
    severity: Severity
    why: str
    fix: str
    look: Look

    def say(self, remark: RuleRemark, place_of: PlaceOf) -> Finding:
        return Finding(
            code=self.id,
            severity=remark.severity or self.severity,
            sentence=remark.sentence,
            where=_place(remark.at, place_of),
            why=remark.why or self.why,
            fix=remark.fix or self.fix,
            semantics=remark.semantics,
            story=remark.story,
            also=tuple(place for one in remark.also if (place := _place(one, place_of))),
            paste=remark.paste,
        )


class RuleBook(msgspec.Struct):
    """All rules, by their ids."""

    rules: dict[str, Rule] = msgspec.field(default_factory=dict)

    def rule(
        self, rule_id: str, title: str, severity: Severity, *, why: str, fix: str
    ) -> Callable[[Look], Look]:
        """Make a function a rule."""

        def enter(look: Look) -> Look:
            if rule_id in self.rules:
                raise ValueError(rule_id)
            self.rules[rule_id] = Rule(
                id=rule_id, title=title, severity=severity, why=why, fix=fix, look=look
            )
            return look

        return enter


REGISTRY = RuleBook()
rule = REGISTRY.rule


def check(scene: LintScene, rules: Iterable[Rule]) -> Iterator[tuple[Rule, RuleRemark]]:
    """What these rules say of a scene, each remark once."""
    for one in rules:
        seen: set[tuple[str, str]] = set()
        for remark in one.look(scene):
            key = (remark.sentence, _key(remark.at))
            if key not in seen:
                seen.add(key)
                yield one, remark


def _key(at: Spotted) -> str:
    if isinstance(at, Mark):
        return f"{at.document.place} {at.path}"
    return str(at)


def _place(at: Spotted, place_of: PlaceOf) -> Place | None:
    return place_of(at) if isinstance(at, Mark) else at
