"""Apply files to an empty simulated cluster and see what happens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from tidegate.documents import Document, read, refuse_duplicates
from tidegate.errors import DocumentError, Place
from tidegate.files import read_whole
from tidegate.flows.wiring import Simulation, make_living
from tidegate.model.happening import Happening
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Kind, Ref, Served
from tidegate.model.rendering import Directory
from tidegate.render.plain import read_directory
from tidegate.report.rollout.discretion import Discretion
from tidegate.world.ask import ask
from tidegate.world.calls import Kinds, List, Selection, Ticket, Verb, Watch, Write
from tidegate.world.exchange import Exchange
from tidegate.world.facts import (
    Answer,
    Catalogue,
    Changed,
    Fact,
    Listed,
    Missing,
    NotServed,
    is_refusal,
)
from tidegate.world.line import Line

DEFAULT = "default"
TRY_AGAIN = Ms(SECOND)
TRIES = 30
WATCHED = (
    Kind("", "v1", "Event"),
    Kind("", "v1", "PersistentVolumeClaim"),
    Kind("", "v1", "Pod"),
    Kind("apps", "v1", "ReplicaSet"),
    Kind("batch", "v1", "Job"),
)
"""What appears by itself, besides what was applied."""


class _Applying(msgspec.Struct):
    """An object on its way in."""

    write: Write
    tries: int = 0


async def play(
    files: Sequence[Path], simulation: Simulation, *, until: Ms, home: str = DEFAULT
) -> list[Happening]:
    """Everything that happens up to `until`, from the moment when all files are applied at once.

    `home`: the namespace of objects that name none.
    """
    documents = [document for path in files for document in read_objects(path)]
    if not documents:
        problem = "there is no object to apply"
        hint = "name files or directories with Kubernetes manifests"
        raise DocumentError("documents.empty", problem, where=Place(str(files[0])), hint=hint)
    world = Exchange(Line(make_living(simulation)))
    (catalogue,) = await ask(world, Kinds())
    served = catalogue.kinds if isinstance(catalogue, Catalogue) else ()
    cluster_wide = cluster_wide_kinds(served, documents)
    writes = [_write_of(document, cluster_wide, home) for document in documents]
    kinds = list({**{write.ref.kind: None for write in writes}, **dict.fromkeys(WATCHED)})
    given = await _given(world, kinds)
    discretion = Discretion.about((document.body, ()) for document in documents)
    happenings = await _Player(world, writes, discretion).run(kinds, until)
    return [one for one in happenings if one.change != "added" or _uid(one) not in given]


async def _given(world: Exchange, kinds: Iterable[Kind]) -> set[str]:
    """What is there before the story begins, and is no part of it."""
    pages = await ask(world, *(List(Selection(kind)) for kind in kinds))
    return {live.uid for page in pages if isinstance(page, Listed) for live in page.items}


def _uid(happening: Happening) -> str:
    return happening.live.uid if happening.live else ""


def cluster_wide_kinds(
    served: Iterable[Served], documents: Iterable[Document]
) -> set[tuple[str, str]]:
    """The kinds that have no namespace, by group and name: the cluster's, and those to come."""
    found = {(one.kind.group, one.kind.name) for one in served if not one.namespaced}
    for document in documents:
        spec = document.body.get("spec")
        if document.body.get("kind") == "CustomResourceDefinition" and isinstance(spec, dict):
            names = spec.get("names")
            if spec.get("scope") == "Cluster" and isinstance(names, dict):
                found.add((str(spec.get("group")), str(names.get("kind"))))
    return found


def read_objects(path: Path) -> tuple[Document, ...]:
    """The objects of a file or of a directory."""
    if path.is_dir():
        return read_directory(Directory(root=path, recurse=True))
    try:
        content = read_whole(path)
    except OSError as error:
        problem = f"this file cannot be read: {error.strerror}"
        raise DocumentError("documents.file", problem, where=Place(str(path))) from None
    documents = read(content, str(path))
    refuse_duplicates(documents)
    return documents


def _write_of(document: Document, cluster_wide: set[tuple[str, str]], home: str) -> Write:
    body = document.body
    metadata = body.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    kind = Kind.of(str(body.get("apiVersion", "")), str(body.get("kind", "")))
    if not kind.name or not kind.version or not known.get("name"):
        problem = "this is not an object: it needs apiVersion, kind and metadata.name"
        raise DocumentError("documents.incomplete", problem, where=document.place)
    has_none = (kind.group, kind.name) in cluster_wide
    namespace = "" if has_none else str(known.get("namespace") or home)
    ref = Ref(kind, namespace, str(known["name"]))
    return Write(verb=Verb.APPLY, ref=ref, body=msgspec.json.encode(body), manager="kubectl")


class _Player:
    """Applies, watches, and writes down what it sees."""

    def __init__(self, world: Exchange, writes: Iterable[Write], discretion: Discretion) -> None:
        self._world = world
        self._discretion = discretion
        self._party = world.party()
        self._start = world.now()
        self._writes = tuple(writes)
        self._applying: dict[Ticket, _Applying] = {}
        self._again: list[tuple[Ms, _Applying]] = []
        self._seen: list[Happening] = []

    async def run(self, kinds: Iterable[Kind], until: Ms) -> list[Happening]:
        for kind in kinds:
            self._party.submit(Watch(Selection(kind)))
        for write in self._writes:
            self._submit(_Applying(write))
        end = Ms(self._start + until)
        while self._world.now() < end:
            for fact in await self._party.wait(min([end, *(moment for moment, _ in self._again)])):
                self._hear(fact)
            self._retry()
        return self._seen

    def _submit(self, applying: _Applying) -> None:
        applying.tries += 1
        self._applying[self._party.submit(applying.write)] = applying

    def _retry(self) -> None:
        now = self._world.now()
        due = [applying for moment, applying in self._again if moment <= now]
        self._again = [one for one in self._again if one[0] > now]
        for applying in due:
            self._submit(applying)

    def _hear(self, fact: Fact) -> None:
        at = Ms(self._world.now() - self._start)
        match fact:
            case Changed():
                self._seen.append(Happening(at, fact.change.value, fact.live.ref, fact.live))
            case Answer() if fact.ticket in self._applying:
                self._settle(fact, self._applying.pop(fact.ticket), at)
            case _:
                pass

    def _settle(self, fact: Answer, applying: _Applying, at: Ms) -> None:
        """What was refused because something is not there yet is tried again, and told once."""
        if not is_refusal(fact.outcome):
            return
        if applying.tries == 1:
            why = self._discretion.hide(fact.outcome.message)
            self._seen.append(Happening(at, "refused", applying.write.ref, why=why))
        if isinstance(fact.outcome, NotServed | Missing) and applying.tries < TRIES:
            self._again.append((Ms(self._world.now() + TRY_AGAIN), applying))
