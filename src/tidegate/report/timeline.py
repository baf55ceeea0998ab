"""Timeline of a simulation: one line per change of an object.

A line consists of phases, conditions, counts and Event messages. Values of Secrets and
ConfigMaps are never shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject, Ref
from tidegate.model.simulation.timeline import TimelineEntry

STATUS_COUNTS = (
    ("replicas", "replicas"),
    ("readyReplicas", "ready"),
    ("availableReplicas", "available"),
    ("active", "active"),
    ("succeeded", "succeeded"),
    ("failed", "failed"),
)
REDUNDANT_CONDITIONS = frozenset({"PodReadyToStartContainers", "Initialized", "ContainersReady"})
"""Pod conditions that repeat what other conditions report."""


class TimelineLine(msgspec.Struct, frozen=True):
    """One line of a timeline."""

    at: int
    object: str
    what: str


def timeline_lines(entries: Iterable[TimelineEntry]) -> Iterator[TimelineLine]:
    """Yield the lines of a timeline; a change without news has none."""
    status_by_ref: dict[Ref, dict[str, str]] = {}
    last_by_subject: dict[str, str] = {}
    for entry in entries:
        subject = _subject(entry)
        message = ", ".join(_changes(entry, status_by_ref))
        if message and not _is_repeated(entry, last_by_subject.get(subject, "")):
            last_by_subject[subject] = message
            yield TimelineLine(entry.at, subject, message)


def _is_repeated(entry: TimelineEntry, last: str) -> bool:
    """Return whether an Event only repeats the previous line of its object."""
    if entry.ref.kind.name != "Event":
        return False
    message = sanitize(get_text(_body(entry), "message"))
    return bool(message) and message in last


def format_timeline(lines: Iterable[TimelineLine]) -> Iterator[str]:
    """Yield the lines, aligned."""
    all_lines = list(lines)
    width = max((len(line.object) for line in all_lines), default=0)
    for line in all_lines:
        yield f"{line.at / 1_000:8.1f}s  {line.object:{width}}  {line.what}"


def _subject(entry: TimelineEntry) -> str:
    if entry.ref.kind.name == "Event":
        involved = get_mapping(_body(entry), "involvedObject")
        name = f"{get_text(involved, 'namespace')}/{get_text(involved, 'name')}".lstrip("/")
        return f"{get_text(involved, 'kind')} {name}"
    return str(entry.ref)


def _changes(entry: TimelineEntry, status_by_ref: dict[Ref, dict[str, str]]) -> Iterator[str]:
    if entry.change == "refused":
        yield f"rejected: {sanitize(entry.reason)}"
    elif entry.change == "deleted":
        status_by_ref.pop(entry.ref, None)
        yield "gone"
    elif entry.ref.kind.name == "Event":
        body = _body(entry)
        yield f"{get_text(body, 'reason')}: {sanitize(get_text(body, 'message'))}"
    else:
        before = status_by_ref.get(entry.ref)
        now = dict(_status_parts(_body(entry)))
        status_by_ref[entry.ref] = now
        if before is None:
            yield "created"
        for name, status_text in now.items():
            if (before or {}).get(name) != status_text:
                yield status_text


def _status_parts(body: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the parts of a status by topic."""
    status = get_mapping(body, "status")
    if "deletionTimestamp" in get_mapping(body, "metadata"):
        yield "deleting", "is being deleted"
    if phase := status.get("phase"):
        yield "phase", str(phase)
    for condition in get_mappings(status, "conditions"):
        name, state = str(condition.get("type")), str(condition.get("status"))
        reason = condition.get("reason")
        if name in REDUNDANT_CONDITIONS or (name == "PodScheduled" and state == "True"):
            continue
        yield f"condition {name}", f"{name}={state}" + (f" ({reason})" if reason else "")
    counts = [f"{status[key]} {word}" for key, word in STATUS_COUNTS if status.get(key)]
    if counts:
        yield "counts", " ".join(counts)
    for container in get_mappings(status, "containerStatuses"):
        if text := _container_text(container):
            yield f"container {container.get('name')}", text


def _container_text(container: JsonObject) -> str:
    name = container.get("name")
    state_text, message = "", ""
    if waiting := get_mapping(container, "state", "waiting"):
        state_text, message = f"{name}: {waiting.get('reason')}", get_text(waiting, "message")
    elif terminated := get_mapping(container, "state", "terminated"):
        state_text = f"{name}: {terminated.get('reason')}, exit code {terminated.get('exitCode')}"
        message = get_text(terminated, "message")
    return f"{state_text} ({sanitize(message)})" if message else state_text


def _body(entry: TimelineEntry) -> JsonObject:
    live = entry.live
    return {} if live is None else get_mapping(msgspec.json.decode(live.body))
