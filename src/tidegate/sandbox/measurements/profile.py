"""A profile file from measurements: medians, with the 10th and 90th percentiles as range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidegate.model.k8s.objects import Json
from tidegate.model.times import SECOND, Ms, format_duration
from tidegate.sandbox.measurements.measures import Measurements, RuleSelector
from tidegate.sandbox.node.profile import ContainerIdentity, OwnerName, Profile

MIN_SAMPLES = 3
"""Minimum number of measurements for a range."""
LOW_PERCENTILE, MEDIAN_PERCENTILE, HIGH_PERCENTILE = 10, 50, 90
"""In percent of the measurements."""
METRICS = ("pull", "start", "ready", "run", "init")
SAMPLE_NOUNS = {"pull": "pull", "start": "start", "ready": "start", "run": "task", "init": "task"}
"""The noun for one measurement of a metric."""


def build_profile_document(
    name: str, source: str, measurements: Measurements, base: Profile
) -> dict[str, Json]:
    """Return a profile file that extends `base` with the measured durations."""
    all_durations = {
        metric: _sorted_durations(measurements.for_metric(metric)) for metric in METRICS
    }
    durations: dict[str, Json] = {
        metric: _range_entry(samples, SAMPLE_NOUNS[metric], SECOND)
        for metric, samples in all_durations.items()
        if samples
    }
    count = sum(
        len(samples)
        for by_selector in measurements.durations.values()
        for samples in by_selector.values()
    )
    claim = f"durations are as measured: {count} measurements"
    document: dict[str, Json] = {
        "name": name,
        "durations": durations,
        "rules": [*_rule_entries(measurements, all_durations, base)],
        "stages": [*_stage_entries(measurements)],
        "assumptions": [{"name": "learned", "claim": claim, "source": source}],
    }
    return {key: value for key, value in document.items() if value}


def _sorted_durations(by_selector: dict[RuleSelector, list[Ms]]) -> list[Ms]:
    return sorted(duration for durations in by_selector.values() for duration in durations)


def _rule_entries(
    measurements: Measurements, all_durations: dict[str, list[Ms]], base: Profile
) -> Iterator[Json]:
    """Yield rules for the selectors whose durations differ from the general ones."""
    rules: dict[RuleSelector, dict[str, Json]] = {}
    for metric in METRICS:
        general = _range_entry(all_durations[metric], SAMPLE_NOUNS[metric], SECOND)
        for selector, durations in measurements.for_metric(metric).items():
            specific = _range_entry(sorted(durations), SAMPLE_NOUNS[metric], SECOND)
            if specific["likely"] != general["likely"] or _has_rule(base, selector, metric):
                rules.setdefault(selector, {})[metric] = specific
    for selector, fields in sorted(rules.items()):
        yield {"when": {**selector.to_when}, **fields}


def _has_rule(profile: Profile, selector: RuleSelector, metric: str) -> bool:
    """Return whether an existing rule would override a general duration."""
    identity = ContainerIdentity(
        (OwnerName(selector.kind, selector.name),), "", selector.container, selector.image
    )
    specific, general = (
        getattr(container_profile, metric)
        for container_profile in (profile.container_profile(identity), profile.durations)
    )
    return bool(specific != general)


def _stage_entries(measurements: Measurements) -> Iterator[Json]:
    for selector, durations in sorted(measurements.for_metric("after").items()):
        yield {
            "when": {**selector.to_when},
            "after": _range_entry(sorted(durations), "object", Ms(1)),
        }


def _range_entry(durations: Sequence[Ms], sample: str, step: Ms) -> dict[str, Json]:
    """Return a range in the format of a profile file; `durations` are sorted."""
    if not durations:
        return {"likely": ""}
    source = f"{len(durations)} {sample}s" if len(durations) > 1 else f"1 {sample}"
    entry: dict[str, Json] = {
        "likely": _format_rounded(_percentile(durations, MEDIAN_PERCENTILE), step)
    }
    if len(durations) >= MIN_SAMPLES:
        entry["optimistic"] = _format_rounded(_percentile(durations, LOW_PERCENTILE), step)
        entry["pessimistic"] = _format_rounded(_percentile(durations, HIGH_PERCENTILE), step)
    return {**entry, "source": source}


def _percentile(durations: Sequence[Ms], percent: int) -> Ms:
    """Return the percentile of sorted durations by the nearest-rank method."""
    return durations[max(0, -(-percent * len(durations) // 100) - 1)]


def _format_rounded(duration: Ms, step: Ms) -> str:
    return format_duration(Ms(int(duration / step + 0.5) * step))


def summarize(measurements: Measurements) -> Iterable[str]:
    """Yield a line for each metric, and for each reason why durations were skipped."""
    for metric in (*METRICS, "after"):
        durations = _sorted_durations(measurements.for_metric(metric))
        name = "operators" if metric == "after" else metric
        if durations:
            low, high = format_duration(durations[0]), format_duration(durations[-1])
            middle = format_duration(_percentile(durations, MEDIAN_PERCENTILE))
            yield (f"{name}: {len(durations)} measured, {low} to {high}, median {middle}")
        else:
            yield f"{name}: no measurements; the default profile applies"
    for reason, count in sorted(measurements.skipped.items()):
        yield f"skipped: {reason} ({count})"
