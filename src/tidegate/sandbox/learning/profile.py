"""Measurements become a profile: medians, with the range that nine of ten are in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidegate.model.moment import SECOND, Ms, format_duration
from tidegate.model.objects import Json
from tidegate.sandbox.learning.measures import Measures, Whom
from tidegate.sandbox.physics.profile import Named, Profile, Subject

FEW = 3
"""With fewer measurements nothing is said of a range."""
LOW, MIDDLE, HIGH = 10, 50, 90
"""In percent of the measurements."""
PARTS = ("pull", "start", "ready", "run", "init")
SAMPLE = {"pull": "pull", "start": "start", "ready": "start", "run": "task", "init": "task"}
"""What one measurement of a part is called."""


def profile_document(name: str, source: str, measures: Measures, onto: Profile) -> dict[str, Json]:
    """A profile file that comes on top of `onto` and says what was measured."""
    general = {part: _all(measures.of(part)) for part in PARTS}
    durations: dict[str, Json] = {
        part: _written(spans, SAMPLE[part], SECOND) for part, spans in general.items() if spans
    }
    count = sum(len(spans) for part in measures.spans.values() for spans in part.values())
    claim = f"what is here takes as long as it did there: {count} measurements"
    document: dict[str, Json] = {
        "name": name,
        "durations": durations,
        "rules": [*_rules(measures, general, onto)],
        "stages": [*_stages(measures)],
        "assumptions": [{"name": "learned", "claim": claim, "source": source}],
    }
    return {key: part for key, part in document.items() if part}


def _all(spans: dict[Whom, list[Ms]]) -> list[Ms]:
    return sorted(span for some in spans.values() for span in some)


def _rules(measures: Measures, general: dict[str, list[Ms]], onto: Profile) -> Iterator[Json]:
    """Whom the general durations are wrong for."""
    found: dict[Whom, dict[str, Json]] = {}
    for part in PARTS:
        usual = _written(general[part], SAMPLE[part], SECOND)
        for whom, spans in measures.of(part).items():
            own = _written(sorted(spans), SAMPLE[part], SECOND)
            if own["likely"] != usual["likely"] or _is_ruled(onto, whom, part):
                found.setdefault(whom, {})[part] = own
    for whom, parts in sorted(found.items()):
        yield {"when": {**whom.keys}, **parts}


def _is_ruled(profile: Profile, whom: Whom, part: str) -> bool:
    """Whether a rule that is there already would win over a general duration."""
    subject = Subject((Named(whom.kind, whom.name),), "", whom.container, whom.image)
    own, usual = (getattr(one, part) for one in (profile.course_of(subject), profile.durations))
    return bool(own != usual)


def _stages(measures: Measures) -> Iterator[Json]:
    for whom, spans in sorted(measures.of("after").items()):
        yield {"when": {**whom.keys}, "after": _written(sorted(spans), "object", Ms(1))}


def _written(spans: Sequence[Ms], sample: str, step: Ms) -> dict[str, Json]:
    """A range as a profile has it; `spans` are sorted."""
    if not spans:
        return {"likely": ""}
    many = f"{len(spans)} {sample}s" if len(spans) > 1 else f"1 {sample}"
    written: dict[str, Json] = {"likely": _spelt(_at(spans, MIDDLE), step)}
    if len(spans) >= FEW:
        written["optimistic"] = _spelt(_at(spans, LOW), step)
        written["pessimistic"] = _spelt(_at(spans, HIGH), step)
    return {**written, "source": many}


def _at(spans: Sequence[Ms], percent: int) -> Ms:
    """The span that so many of them do not exceed: the nearest rank."""
    return spans[max(0, -(-percent * len(spans) // 100) - 1)]


def _spelt(span: Ms, step: Ms) -> str:
    return format_duration(Ms(int(span / step + 0.5) * step))


def summary(measures: Measures) -> Iterable[str]:
    """What was counted and what was not, a line each."""
    for part in (*PARTS, "after"):
        spans = _all(measures.of(part))
        name = "operators" if part == "after" else part
        if spans:
            low, high = format_duration(spans[0]), format_duration(spans[-1])
            middle = format_duration(_at(spans, MIDDLE))
            yield f"{name}: {len(spans)} measured, {low} to {high}, half of them at most {middle}"
        else:
            yield f"{name}: nothing was measured, and the shipped profile counts"
    for why, times in sorted(measures.left_out.items()):
        yield f"left out: {why} ({times})"
