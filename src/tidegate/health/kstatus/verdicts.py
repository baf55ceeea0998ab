"""Kstatus' three answers as verdicts: Current, InProgress, Failed."""

from __future__ import annotations

from tidegate.health.kstatus.fields import NO_CONDITION, Condition
from tidegate.model.verdict import Health, Verdict


def current(reason: str, sentence: str, *, by: Condition = NO_CONDITION) -> Verdict:
    return Verdict(Health.HEALTHY, reason, sentence, speaks_of=by.observed)


def in_progress(reason: str, sentence: str, *, by: Condition = NO_CONDITION) -> Verdict:
    return Verdict(Health.PROGRESSING, reason, sentence, speaks_of=by.observed)


def failed(reason: str, sentence: str, *, by: Condition = NO_CONDITION) -> Verdict:
    return Verdict(Health.DEGRADED, reason, sentence, speaks_of=by.observed)
