"""A recorded sync beside its simulation: order, times, retries, and the final state of units.

order      per unit: what is written in a later step, or later in its step, comes later
starts     units that start more than a second apart start in the same order
refused    the same objects are refused
waits      each object that an operation waited for kept a gate closed
units      sync status, health, phase of the operation and retries
times      gaps between the writes of a unit, within 1 s or 20 %
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.conformance.peers.cases import Case, simulation_inputs
from tests.conformance.peers.records import RecordedCase, RecordedSync, RecordedUnit, RecordedWrite
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.json_fields import get_int, get_list, get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND

URL = "https://git.example.com/shop/platform.git"
COMMIT_GAP = 600
"""Simulated seconds between two commits."""
TOLERANCE_SECONDS, TOLERANCE_SHARE = 1.0, 0.2
PLURALS = {"Ingress": "ingresses", "NetworkPolicy": "networkpolicies"}
REFUSED, NOT_FOUND = 400, 404
WAITED = re.compile(r"^(?P<unit>\S+): waiting for .* (?P<group>\S*)/(?P<kind>\w+)/(?P<name>\S+)")
HOOK = "argocd.argoproj.io/hook"


class Written(NamedTuple):
    """A write of a simulated or recorded sync."""

    seconds: float
    object: str
    rank: tuple[int, float] = (0, 0.0)
    """Position of a simulated write in its unit: its step, and the time in it."""


class SimulatedRun(NamedTuple):
    """The simulated sync of one commit."""

    writes: Mapping[str, list[Written]]
    """By unit."""
    refused: frozenset[str]
    gated: frozenset[str]
    """Objects that kept a gate closed."""


class Agreement(NamedTuple):
    """What differs between a record and its simulation, by aspect; empty where both agree."""

    case: str
    differences: tuple[tuple[str, str], ...]

    def about(self, *aspects: str) -> list[str]:
        return [text for aspect, text in self.differences if aspect in aspects]


def compare(case: Case, record: RecordedCase, folder: Path) -> Agreement:
    """Simulate a case and compare it with its record."""
    documents = simulate(case, folder)
    runs = [*_split_runs(documents, len(record.syncs))]
    states = {
        get_text(unit, "unit").rpartition("/")[2]: unit
        for unit in get_list(documents[-1], "units")
        if isinstance(unit, dict) and get_text(unit, "unit").startswith("Application/")
    }
    hooks = _hook_names(case)
    differences: list[tuple[str, str]] = []
    for number, (sync, run) in enumerate(zip(record.syncs, runs, strict=True), 1):
        label = f"sync {number}: " if len(record.syncs) > 1 else ""
        for aspect, text in (*_compare_writes(sync, run, hooks), *_compare_waits(sync, run)):
            differences.append((aspect, f"{label}{text}"))
    differences += _compare_units(record.syncs[-1].units, states)
    return Agreement(case.name, tuple(differences))


def simulate(case: Case, folder: Path) -> list[JsonObject]:
    """Return the documents of a simulation with the native semantics."""
    root = folder / "repo"
    case.write(root, case.files, URL)
    if case.settings:
        settings: JsonObject = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "argocd-cm", "namespace": "argocd"},
            "data": case.settings,
        }
        (folder / "argocd-cm.json").write_text(json.dumps(settings))
    profile, scenario = simulation_inputs(case)
    commits: list[Json] = []
    for number, files in enumerate(case.commits, 1):
        later = folder / f"commit-{number}"
        later.mkdir()
        case.write(later, {path: bodies for path, bodies in files.items() if bodies}, URL)
        removed: list[Json] = [path for path, bodies in files.items() if not bodies]
        commits.append({"at": f"{number * COMMIT_GAP}s", "files": str(later), "removes": removed})
    argocd: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}
    given: list[Json] = [argocd, *(case.place(body, URL) for body in case.given)]
    scenario |= {"commits": commits} if commits else {}
    scenario |= {"given": {"objects": given}}
    (folder / "profile.json").write_text(json.dumps(profile))
    (folder / "scenario.json").write_text(json.dumps(scenario))
    rules = ("--health-rules", folder / "argocd-cm.json") if case.settings else ()
    # A map would also hide the files of later commits.
    repository = () if case.commits else ("--repo-map", f"{URL}={root}")
    ran = tidegate(
        *("simulate", root, *repository, "--offline", "--empty-cluster", "-o", "json", *rules),
        *("--profile", folder / "profile.json", "--scenario", folder / "scenario.json"),
    )
    documents: list[JsonObject] = [json.loads(line) for line in ran.stdout.splitlines()]
    assert documents, ran.stderr
    return documents


def _split_runs(documents: Sequence[JsonObject], count: int) -> Iterator[SimulatedRun]:
    """Yield the simulated syncs by commit."""
    events = [document for document in documents if "at" in document]
    start = get_int(events[0], "at") if events else 0
    for number in range(count):
        first, last = number * COMMIT_GAP, (number + 1) * COMMIT_GAP
        events_of_commit = [
            event
            for event in events
            if first <= (get_int(event, "at") - start) / SECOND < last or count == 1
        ]
        yield _read_run(events_of_commit, start)


def _read_run(events: Sequence[JsonObject], start: int) -> SimulatedRun:
    writes: dict[str, list[Written]] = {}
    steps: dict[str, int] = {}
    for event in events:
        if get_text(event, "event") == "step.applying":
            steps[get_text(event, "step")] = len(steps)
        if get_text(event, "event") in {"object.written", "object.pruned"}:
            seconds = (get_int(event, "at") - start) / SECOND
            is_pruned = get_text(event, "event") == "object.pruned"
            rank = (steps.get(get_text(event, "step"), 0), -1.0 if is_pruned else seconds)
            unit = get_text(event, "unit").rpartition("/")[2]
            writes.setdefault(unit, []).append(Written(seconds, _event_object(event), rank))
    gated = {
        _event_object(event)
        for event in events
        if get_text(event, "event").startswith(("gate.", "hook.", "object."))
    }
    refused = (event for event in events if get_text(event, "event") == "object.refused")
    return SimulatedRun(writes, frozenset(map(_event_object, refused)), frozenset(gated))


def _event_object(event: JsonObject) -> str:
    return f"{_plural(get_text(event, 'kind'))}/{get_text(event, 'name')}"


def _plural(kind: str) -> str:
    return PLURALS.get(kind, f"{kind.lower()}s")


def _hook_names(case: Case) -> frozenset[str]:
    return frozenset(
        f"{_plural(str(body['kind']))}/{get_text(body, 'metadata', 'name')}"
        for body in case.all_bodies
        if HOOK in get_mapping(body, "metadata", "annotations")
    )


def _compare_writes(
    sync: RecordedSync, run: SimulatedRun, hooks: frozenset[str]
) -> Iterator[tuple[str, str]]:
    owners = {item.object: unit for unit, written in run.writes.items() for item in written}
    pruned = {
        item.object for written in run.writes.values() for item in written if item.rank[1] < 0
    }
    recorded: dict[str, list[Written]] = {}
    for write in sync.writes:
        is_release = write.object in hooks and write.verb != "create"
        is_replacement = write.verb == "delete" and write.object not in pruned
        is_unit = write.object.startswith("application")  # no event is about its resource
        if write.code < REFUSED and not (is_release or is_replacement or is_unit):
            unit = owners.get(write.object, "?")
            recorded.setdefault(unit, []).append(Written(write.at, write.object))
    refused = {write.object for write in sync.writes if _is_refused(write)}
    if refused != run.refused:
        yield "refused", f"refused {sorted(refused)}, simulated {sorted(run.refused)}"
    for unit in sorted({*recorded, *run.writes}):
        real, simulated = recorded.get(unit, []), run.writes.get(unit, [])
        counts, expected = (Counter(item.object for item in items) for items in (real, simulated))
        if counts != expected:
            only_real, only_simulated = counts - expected, expected - counts
            yield (
                "order",
                f"`{unit}` only real {dict(only_real)}, only simulated {dict(only_simulated)}",
            )
            continue
        yield from _compare_sequence(unit, real, simulated)
    yield from _compare_starts(recorded, run.writes)


def _is_refused(write: RecordedWrite) -> bool:
    """Return whether a write failed; an object that is gone already is deleted."""
    return write.code >= REFUSED and not (write.verb == "delete" and write.code == NOT_FOUND)


def _compare_sequence(
    unit: str, real: Sequence[Written], simulated: Sequence[Written]
) -> Iterator[tuple[str, str]]:
    """Compare the order and the gaps of the same writes."""
    matches: dict[str, list[Written]] = {}
    for item in sorted(simulated, key=lambda written: written.seconds):
        matches.setdefault(item.object, []).append(item)
    pairs = [(item, matches[item.object].pop(0)) for item in real]
    for (first, first_match), (second, second_match) in pairwise(pairs):
        if first_match.rank > second_match.rank:
            yield "order", f"`{unit}` {first.object} before {second.object}, simulated after"
            return
    gaps = [
        (second.seconds - first.seconds, second_match.seconds - first_match.seconds, second.object)
        for (first, first_match), (second, second_match) in pairwise(pairs)
    ]
    off = [
        f"{name} after {real_gap:.1f} s, simulated {gap:.1f} s"
        for real_gap, gap, name in gaps
        if abs(real_gap - gap) > max(TOLERANCE_SECONDS, TOLERANCE_SHARE * max(real_gap, gap))
    ]
    if off:
        yield "times", f"`{unit}` {', '.join(off)}"


def _compare_starts(
    recorded: Mapping[str, Sequence[Written]], simulated: Mapping[str, Sequence[Written]]
) -> Iterator[tuple[str, str]]:
    common = sorted({*recorded} & {*simulated})
    real, expected = (
        {unit: min(item.seconds for item in writes[unit]) for unit in common}
        for writes in (recorded, simulated)
    )
    for first in common:
        for second in common:
            is_first = expected[first] + TOLERANCE_SECONDS < expected[second]
            if is_first and real[first] > real[second] + TOLERANCE_SECONDS:
                yield "starts", f"`{second}` starts before `{first}`, simulated after"


def _compare_waits(sync: RecordedSync, run: SimulatedRun) -> Iterator[tuple[str, str]]:
    for message in sync.waits:
        match = WAITED.match(message)
        if match is None:
            continue
        waited = f"{_plural(match['kind'])}/{match['name'].split()[0]}"
        if match["kind"] in {"Application", "ApplicationSet"}:
            continue  # the steps of a parent wait for the unit
        if waited not in run.gated:
            yield "waits", f"waits for {waited}, which no simulated gate does"


def _compare_units(
    units: Sequence[RecordedUnit], states: Mapping[str, JsonObject]
) -> Iterator[tuple[str, str]]:
    for unit in units:
        state = states.get(unit.name, {})
        real: dict[str, Json] = {
            "sync": unit.sync,
            "health": unit.health,
            "operation": unit.operation,
            "retries": unit.retries,
        }
        simulated = {name: state.get(name, 0 if name == "retries" else "") for name in real}
        differing = [
            f"{name} {real[name]}, simulated {simulated[name] or 'none'}"
            for name in real
            if real[name] != simulated[name]
        ]
        if differing:
            yield "units", f"`{unit.name}` {'; '.join(differing)}"
