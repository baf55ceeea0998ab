"""What happened to each object, line by line: only what is new about it.

Takes happenings in order, gives lines. Values of Secrets and ConfigMaps are never shown: a line is
made of phases, conditions, counts and the words of Events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.errors import foreign
from tidegate.model.happening import Happening
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import mapping, mappings, text

Part = dict[str, Json]
COUNTS = (
    ("replicas", "replicas"),
    ("readyReplicas", "ready"),
    ("availableReplicas", "available"),
    ("active", "active"),
    ("succeeded", "succeeded"),
    ("failed", "failed"),
)


QUIET = frozenset({"PodReadyToStartContainers", "Initialized", "ContainersReady"})
"""Conditions of pods that say nothing which others do not say."""


class TimelineLine(msgspec.Struct, frozen=True):
    """One line of a timeline."""

    at: int
    object: str
    what: str


def timeline(happenings: Iterable[Happening]) -> Iterator[TimelineLine]:
    """The lines of a story; a change that says nothing new has none."""
    known: dict[Ref, dict[str, str]] = {}
    said: dict[str, str] = {}
    for happening in happenings:
        subject = _subject(happening)
        told = ", ".join(_news(happening, known))
        if told and not _is_said(happening, said.get(subject, "")):
            said[subject] = told
            yield TimelineLine(happening.at, subject, told)


def _is_said(happening: Happening, last: str) -> bool:
    """Whether an Event only says what the line before said of the same object."""
    if happening.ref.kind.name != "Event":
        return False
    message = foreign(text(_body(happening), "message"))
    return bool(message) and message in last


def as_text(lines: Iterable[TimelineLine]) -> Iterator[str]:
    """Aligned for people."""
    shown = list(lines)
    width = max((len(line.object) for line in shown), default=0)
    for line in shown:
        yield f"{line.at / 1_000:8.1f}s  {line.object:{width}}  {line.what}"


def _subject(happening: Happening) -> str:
    if happening.ref.kind.name == "Event":
        involved = mapping(_body(happening), "involvedObject")
        name = f"{text(involved, 'namespace')}/{text(involved, 'name')}".lstrip("/")
        return f"{text(involved, 'kind')} {name}"
    return str(happening.ref)


def _news(happening: Happening, known: dict[Ref, dict[str, str]]) -> Iterator[str]:
    if happening.change == "refused":
        yield f"refused: {foreign(happening.why)}"
    elif happening.change == "deleted":
        known.pop(happening.ref, None)
        yield "gone"
    elif happening.ref.kind.name == "Event":
        body = _body(happening)
        yield f"{text(body, 'reason')}: {foreign(text(body, 'message'))}"
    else:
        before = known.get(happening.ref)
        now = dict(_parts(_body(happening)))
        known[happening.ref] = now
        if before is None:
            yield "created"
        for name, told in now.items():
            if (before or {}).get(name) != told:
                yield told


def _parts(body: Part) -> Iterator[tuple[str, str]]:
    """What there is to say of an object, by topic."""
    status = mapping(body, "status")
    if "deletionTimestamp" in mapping(body, "metadata"):
        yield "deleting", "is being deleted"
    if phase := status.get("phase"):
        yield "phase", str(phase)
    for condition in mappings(status, "conditions"):
        name, state = str(condition.get("type")), str(condition.get("status"))
        reason = condition.get("reason")
        if name in QUIET or (name == "PodScheduled" and state == "True"):
            continue
        yield f"condition {name}", f"{name}={state}" + (f" ({reason})" if reason else "")
    counts = [f"{status[key]} {word}" for key, word in COUNTS if status.get(key)]
    if counts:
        yield "counts", " ".join(counts)
    for container in mappings(status, "containerStatuses"):
        if told := _container(container):
            yield f"container {container.get('name')}", told


def _container(container: Part) -> str:
    name = container.get("name")
    told, message = "", ""
    if waiting := mapping(container, "state", "waiting"):
        told, message = f"{name}: {waiting.get('reason')}", text(waiting, "message")
    elif ended := mapping(container, "state", "terminated"):
        told = f"{name}: {ended.get('reason')}, exit code {ended.get('exitCode')}"
        message = text(ended, "message")
    return f"{told} ({foreign(message)})" if message else told


def _body(happening: Happening) -> Part:
    live = happening.live
    return {} if live is None else mapping(msgspec.json.decode(live.body))
