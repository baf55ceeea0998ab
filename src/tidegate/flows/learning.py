"""What a cluster tells of how long things take becomes a profile; nothing is written to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tidegate.documents import read
from tidegate.errors import FileError, Place
from tidegate.files import read_users_file
from tidegate.flows.custom_kinds import builtin_groups
from tidegate.flows.looking import body_of
from tidegate.flows.rendering import Setting
from tidegate.flows.session import Session, Target, name_target, open_session
from tidegate.flows.wiring import Simulation, known_to
from tidegate.knowledge.catalogue import KnownRows
from tidegate.model.objects import Json, Kind, Ref, Served
from tidegate.model.reading import mappings, text
from tidegate.sandbox.controllers.writes import EVENT
from tidegate.sandbox.kinds import CONFIG_MAP, JOB, POD, REPLICA_SET, WORKLOADS
from tidegate.sandbox.learning.custom import measure_operators
from tidegate.sandbox.learning.measures import Measures
from tidegate.sandbox.learning.pods import measure_pods
from tidegate.sandbox.learning.profile import profile_document, summary
from tidegate.sandbox.loose import Seen
from tidegate.sandbox.physics.profile_file import typical
from tidegate.sandbox.server.store import Stored
from tidegate.world.ask import ask
from tidegate.world.calls import List, Selection
from tidegate.world.facts import Listed, NotServed, is_refusal
from tidegate.world.refusals import refusal_error

PAGE = 500
LOOKED_AT = (POD, EVENT, JOB, REPLICA_SET, *WORKLOADS, CONFIG_MAP)
"""What is asked for besides custom resources: who owns whom, who serves, what tasks run."""
NAME = "learned"


class LearnedProfile(msgspec.Struct, frozen=True):
    """A profile file, and what is to be said of how it came about."""

    document: dict[str, Json]
    notes: tuple[str, ...]


class _Heap(msgspec.Struct):
    """Objects of a cluster, and what of it may not be seen."""

    bodies: list[dict[str, Json]] = msgspec.field(default_factory=list)
    unseen: list[str] = msgspec.field(default_factory=list)


def learn_from_file(path: Path, operators: Path | None = None) -> LearnedProfile:
    """From a dump: lists or objects as `kubectl get … -o json` or `-o yaml` prints them."""
    heap = _Heap([*_objects_in(read_users_file(path), str(path))])
    if not any(one.get("kind") == POD.name for one in heap.bodies):
        problem = "there is no Pod in this dump"
        hint = "make it with `kubectl get pods,events,jobs -A -o json`"
        raise FileError("file.missing", problem, where=Place(str(path)), hint=hint)
    return _learned(heap, str(path.name), operators)


async def learn_from_cluster(
    target: Target, setting: Setting, operators: Path | None = None
) -> LearnedProfile:
    """From a cluster as it is; all is read, page by page."""
    async with open_session(target, setting) as session:
        heap = await _read_all(session)
    return _learned(heap, name_target(target)[0], operators)


def _learned(heap: _Heap, source: str, operators: Path | None) -> LearnedProfile:
    known = known_to(Simulation(operators=operators))
    view, measures, shipped = Seen.of(_stored(heap.bodies)), Measures(), typical()
    measure_pods(view, shipped, measures)
    custom = (kind for kind in view.kinds if _is_custom(kind))
    measure_operators(view, custom, KnownRows.of(known.rows), measures)
    for name in heap.unseen:
        measures.left_out[f"{name}: it may not be seen"] += 1
    document = profile_document(NAME, source, measures, shipped)
    return LearnedProfile(document, tuple(summary(measures)))


def _is_custom(kind: Kind) -> bool:
    return "." in kind.group and kind.group not in builtin_groups()


def _objects_in(content: bytes, name: str) -> Iterator[dict[str, Json]]:
    """The objects of a dump, out of their lists. JSON of a large cluster is read at once."""
    try:
        bodies = [msgspec.json.decode(content)]
    except (msgspec.DecodeError, UnicodeDecodeError):
        bodies = [document.body for document in read(content, name)]
    for body in bodies:
        items = mappings(body, "items")
        yield from items or ([body] if isinstance(body, dict) else [])


def _stored(bodies: Iterable[dict[str, Json]]) -> Iterator[Stored]:
    for body in bodies:
        kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
        namespace, name = text(body, "metadata", "namespace"), text(body, "metadata", "name")
        if kind.name and name:
            yield Stored(Ref(kind, namespace, name), body, (), 0)


async def _read_all(session: Session) -> _Heap:
    heap = _Heap()
    served = await session.kinds()
    for kind in (*LOOKED_AT, *_custom(served)):
        await _read_kind(session, kind, heap)
    return heap


def _custom(served: Iterable[Served]) -> Iterator[Kind]:
    """Each custom kind once, in the version that its group prefers."""
    found: dict[tuple[str, str], Kind] = {}
    for one in served:
        if _is_custom(one.kind) and "list" in one.verbs:
            found.setdefault((one.kind.group, one.kind.name), one.kind)
    yield from found.values()


async def _read_kind(session: Session, kind: Kind, heap: _Heap) -> None:
    """All objects of a kind. What may not be seen is told; without pods there is nothing to do."""
    resume = ""
    while True:
        (page,) = await ask(session.world, List(Selection(kind), PAGE, resume))
        if not isinstance(page, Listed):
            if kind == POD and is_refusal(page):
                raise refusal_error(page, "looking at the cluster", where=Place(kind.name))
            if not isinstance(page, NotServed):
                heap.unseen.append(kind.name)
            return
        heap.bodies += map(body_of, page.items)
        resume = page.resume
        if not resume:
            return
