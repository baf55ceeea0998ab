"""Duration profiles learned from a real cluster or a dump; the cluster is only read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tidegate.clusters.sandboxes import SimulationConfig, load_knowledge
from tidegate.clusters.session import ClusterTargets, Session, describe_targets, open_session
from tidegate.documents import read_documents
from tidegate.errors import FileError, Location
from tidegate.files import read_user_file
from tidegate.knowledge.catalog import KindCatalog
from tidegate.model.k8s.json_fields import get_mappings, object_ref
from tidegate.model.k8s.kinds import CONFIG_MAP, EVENT, JOB, POD, REPLICA_SET
from tidegate.model.k8s.objects import Json, Kind, ServedKind, object_body
from tidegate.sandbox.kinds import WORKLOADS
from tidegate.sandbox.measurements.measures import Measurements
from tidegate.sandbox.measurements.operators import measure_operators
from tidegate.sandbox.measurements.pods import measure_pods
from tidegate.sandbox.measurements.profile import build_profile_document, summarize
from tidegate.sandbox.node.profile_file import default_profile
from tidegate.sandbox.object_cache import InformerCache
from tidegate.sandbox.server.store import StoredObject
from tidegate.schema.custom_kinds import builtin_groups
from tidegate.workers.rendering import RenderSettings
from tidegate.world.requests import Selection

PAGE_SIZE = 500
READ_KINDS = (POD, EVENT, JOB, REPLICA_SET, *WORKLOADS, CONFIG_MAP)
"""Kinds that are read besides custom resources: owners, operators and pods."""
PROFILE_NAME = "learned"


class LearnedProfile(msgspec.Struct, frozen=True):
    """A profile file, and notes on how it was measured."""

    document: dict[str, Json]
    notes: tuple[str, ...]


class _ClusterDump(msgspec.Struct):
    """Objects of a cluster."""

    bodies: list[dict[str, Json]] = msgspec.field(default_factory=list)
    unreadable_kinds: list[str] = msgspec.field(default_factory=list)
    """Kinds that may not be listed."""


def learn_from_file(path: Path, operators: Path | None = None) -> LearnedProfile:
    """Learn a profile from output of `kubectl get … -o json` or `-o yaml`.

    Raises FileError if the dump has no Pod.
    """
    dump = _ClusterDump([*_parse_dump(read_user_file(path), str(path))])
    if not any(body.get("kind") == POD.name for body in dump.bodies):
        problem = "the dump contains no Pod"
        hint = "create it with `kubectl get pods,events,jobs -A -o json`"
        raise FileError("file.missing", problem, location=Location(str(path)), hint=hint)
    return _build_profile(dump, str(path.name), operators)


async def learn_from_cluster(
    target: ClusterTargets, render_settings: RenderSettings, operators: Path | None = None
) -> LearnedProfile:
    """Learn a profile from a cluster; all objects are read, page by page."""
    async with open_session(target, render_settings) as session:
        dump = await _read_cluster(session)
    return _build_profile(dump, describe_targets(target)[0], operators)


def _build_profile(dump: _ClusterDump, source: str, operators: Path | None) -> LearnedProfile:
    knowledge = load_knowledge(SimulationConfig(operators=operators))
    view, measures, shipped = (
        InformerCache.from_objects(_stored_objects(dump.bodies)),
        Measurements(),
        default_profile(),
    )
    measure_pods(view, shipped, measures)
    custom = (kind for kind in view.kinds if _is_custom(kind))
    measure_operators(view, custom, KindCatalog.from_rows(knowledge.rows), measures)
    for name in dump.unreadable_kinds:
        measures.skipped[f"{name}: forbidden"] += 1
    document = build_profile_document(PROFILE_NAME, source, measures, shipped)
    return LearnedProfile(document, tuple(summarize(measures)))


def _is_custom(kind: Kind) -> bool:
    return "." in kind.group and kind.group not in builtin_groups()


def _parse_dump(content: bytes, name: str) -> Iterator[dict[str, Json]]:
    """Yield the objects of a dump, out of their lists; JSON is tried first, as it is faster."""
    try:
        bodies = [msgspec.json.decode(content)]
    except (msgspec.DecodeError, UnicodeDecodeError):
        bodies = [document.body for document in read_documents(content, name)]
    for body in bodies:
        items = get_mappings(body, "items")
        yield from items or ([body] if isinstance(body, dict) else [])


def _stored_objects(bodies: Iterable[dict[str, Json]]) -> Iterator[StoredObject]:
    for body in bodies:
        ref = object_ref(body)
        if ref.kind.name and ref.name:
            yield StoredObject(ref, body, (), 0)


async def _read_cluster(session: Session) -> _ClusterDump:
    dump = _ClusterDump()
    served = await session.kinds()
    for kind in (*READ_KINDS, *_custom_kinds(served)):
        await _read_kind(session, kind, dump)
    return dump


def _custom_kinds(served: Iterable[ServedKind]) -> Iterator[Kind]:
    """Yield each custom kind once, in the preferred version of its group."""
    kinds: dict[tuple[str, str], Kind] = {}
    for served_kind in served:
        if _is_custom(served_kind.kind) and "list" in served_kind.verbs:
            kinds.setdefault((served_kind.kind.group, served_kind.kind.name), served_kind.kind)
    yield from kinds.values()


async def _read_kind(session: Session, kind: Kind, dump: _ClusterDump) -> None:
    """Read all objects of a kind into the dump.

    A kind that may not be listed is recorded; for pods the error is raised.
    """
    listing = await session.reader().list_each((Selection(kind),), page_size=PAGE_SIZE)
    if kind == POD:
        listing.raise_errors("listing objects in the cluster")
    dump.unreadable_kinds += [kind.name] if listing.errors else []
    dump.bodies += map(object_body, listing.items)
