"""Look through a tree for what could be units: files with their objects, overlays, charts.

Nothing is rendered here. A file is read only if its text names one of the dialects' own kinds; what
lies in a chart's templates is no manifest yet, and a dot-directory is somebody else's.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from tidegate.dialect.declared import Declared
from tidegate.dialect.units import FLUX_HOME, UnitFinder
from tidegate.documents import Document, read
from tidegate.errors import DocumentError
from tidegate.files import StrayPathError, Within
from tidegate.flows.discover.inclusions import Inclusions
from tidegate.flows.discover.nearest import Nearest
from tidegate.model.finding import Finding, Severity
from tidegate.model.patterns import late
from tidegate.model.reading import text
from tidegate.model.source import DeclaredSource, SourceObject
from tidegate.model.unit import Unit
from tidegate.render.kustomize.tree import KUSTOMIZATION_NAMES
from tidegate.render.sops import placeholders

NOTHING = Declared()
MANIFESTS = (".yaml", ".yml", ".json")
CHART = "Chart.yaml"
TEMPLATES = "templates"
NO_OBJECT = "documents.object"
"""The code of what is no mapping: a list for a test, and other things that nobody applies."""
LARGEST = 32 * 1024 * 1024
VALUES = late(r"(?:.*/)?values[^/]*\.ya?ml")
SYNCED = ("GitRepository", "OCIRepository")
HOLDERS = ("ConfigMap", "Secret")
Held: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name; the namespace is empty where none is named."""
_GROUPS = (b"argoproj.io/", b".toolkit.fluxcd.io/", b"source.extensions.fluxcd.io/")
_OWN_KINDS = late(
    rb"""(?:^[\s-]*|[{,]\s*)["']?apiVersion["']?\s*:\s*["']?(?:argoproj\.io|[a-z]+\.(?:toolkit|extensions)\.fluxcd\.io)/""",
    re.MULTILINE,
)
_UNIT_KINDS = late(
    rb"""^[\s-]*kind\s*:\s*["']?(?:Application|ApplicationSet|Kustomization|HelmRelease)\b""",
    re.MULTILINE,
)
_ANY_OBJECT = late(rb"""^["']?apiVersion["']?\s*:""", re.MULTILINE)
_DATA_KINDS = late(rb"""^["']?kind["']?\s*:\s*["']?(?:ConfigMap|Secret)\b""", re.MULTILINE)


@dataclass(frozen=True)
class Scan:
    """A tree, and what stands in it as text. Paths start at `root`; `below` is where to look.

    `generated`: by file, what is declared in it with what its sets generate, once that is known.
    """

    root: Path
    files: tuple[str, ...]
    below: str = "."
    broken: list[Finding] = field(default_factory=list)
    generated: dict[str, Declared] = field(default_factory=dict)
    units: UnitFinder = field(default_factory=UnitFinder, repr=False, compare=False)
    _hidden: dict[str, bool] = field(default_factory=dict, repr=False)

    def inside(self, folder: str) -> Scan:
        """The same, seen from a directory that holds the place to look at, or lies in it."""
        if folder == ".":
            return self
        files = tuple(
            one.removeprefix(f"{folder}/") for one in self.files if one.startswith(f"{folder}/")
        )
        is_deeper = self.below.startswith(f"{folder}/")
        below = self.below.removeprefix(f"{folder}/") if is_deeper else "."
        return Scan(self.root / folder, files, below)

    def is_below(self, path: str) -> bool:
        return self.below in {".", path} or path.startswith(f"{self.below}/")

    @cached_property
    def charts(self) -> frozenset[str]:
        """The directories of charts."""
        return frozenset(_folder(one) for one in self.files if _last(one) == CHART)

    @cached_property
    def unit_charts(self) -> list[str]:
        """The charts below the place to look at whose templates make units: apps of apps."""
        found: set[str] = set()
        for name in self.files:
            folder = self._chart_of(name) if name.endswith(MANIFESTS) else None
            if folder is not None and folder not in found and self.is_below(folder):
                content = self._content(name)
                if _names_own_kinds(content) and _UNIT_KINDS.search(content):
                    found.add(folder)
        return [
            one for one in sorted(found) if not any(up in self.charts for up in folders_of(one))
        ]

    def _chart_of(self, name: str) -> str | None:
        """The chart among whose templates a file lies."""
        above, found, _ = f"/{name}".rpartition(f"/{TEMPLATES}/")
        chart = above.removeprefix("/") or "."
        return chart if found and chart in self.charts else None

    @cached_property
    def overlays(self) -> dict[str, str]:
        """The directories with a kustomization, and the file of each."""
        return {
            _folder(one): one
            for one in self.files
            if _last(one) in KUSTOMIZATION_NAMES and not self._is_hidden(one)
        }

    @cached_property
    def declared(self) -> dict[str, Declared]:
        """By file, what the dialects' own objects in it declare, as they stand there."""
        find = self.units.find
        found = {name: find(documents) for name, documents in self.documents.items()}
        return {name: one for name, one in found.items() if one != NOTHING}

    @cached_property
    def declaring(self) -> frozenset[str]:
        """The directories with files, at any depth, that declare something to look at."""
        return frozenset(folder for name, _ in self.declared_below for folder in folders_of(name))

    @cached_property
    def documents(self) -> dict[str, tuple[Document, ...]]:
        """By file, all objects of the files that have one of the dialects' own kinds."""
        found = {
            name: self._read(name, content, tells=True) for name, content in self._marked[0].items()
        }
        return {name: documents for name, documents in found.items() if documents}

    def read_again(self, content: bytes, name: str) -> tuple[Document, ...]:
        """The objects of a text; of a file that was looked at here, and is the same, as they are.

        Most files with units are applied by some unit, and so are read for it as well.
        """
        is_known = "documents" in self.__dict__ and self._marked[0].get(name) == content
        return (self.documents.get(name) if is_known else None) or read(content, name)

    @cached_property
    def sources(self) -> Nearest[SourceObject, DeclaredSource]:
        """What is declared anywhere."""
        found = Nearest[SourceObject, DeclaredSource]()
        for name, declared in self.declared.items():
            for one in declared.sources:
                found.add(one.id, name, one)
        return found

    @cached_property
    def is_synced(self) -> bool:
        """Whether units of it lie where a source is that is called as Flux calls its own."""
        folders = {folder for file in self.files for folder in folders_of(file)}
        named = (
            each.path
            for declared in self.declared.values()
            for unit in declared.units
            for each in unit.sources
            if isinstance(each.source, SourceObject) and is_synced(each.source)
        )
        return any(path in {"", "."} or path in folders for path in named)

    @cached_property
    def held(self) -> Nearest[Held, Document]:
        """All ConfigMaps and Secrets."""
        found = Nearest[Held, Document]()
        for name in self._marked[1]:
            for key, document in holders(self._read(name, self._content(name))):
                found.add(key, name, document)
        return found

    def data_with(self, mark: bytes) -> Iterator[Document]:
        """The objects of files with a ConfigMap or a Secret, and with this text in them."""
        for name in filter(self.is_below, self._marked[1]):
            content = self._content(name)
            if mark in content:
                yield from self._read(name, content)

    @cached_property
    def plain(self) -> frozenset[str]:
        """The directories with files of objects, whatever their kinds."""
        return frozenset(
            _folder(one)
            for one in self.files
            if one.endswith(MANIFESTS)
            and self.is_below(one)
            and not self._is_hidden(one)
            and _ANY_OBJECT.search(self._content(one))
        )

    @property
    def candidates(self) -> list[Unit]:
        """The units that stand below the place to look at, file after file."""
        return [
            unit
            for name, declared in self.declared_below
            for unit in self.generated.get(name, declared).units
        ]

    @property
    def has_units(self) -> bool:
        """Whether something stands there that is a unit, or that generates some."""
        return any(declared.units or declared.sets for _, declared in self.declared_below)

    @property
    def declared_below(self) -> list[tuple[str, Declared]]:
        """What is declared below the place to look at, file after file.

        Where no text there names the dialects' own kinds, nothing else of the tree is read.
        """
        if not self._names_own_kinds_below:
            return []
        return [(name, one) for name, one in self.declared.items() if self.is_below(name)]

    @cached_property
    def inclusions(self) -> Inclusions:
        """What its overlays name."""
        return Inclusions.of(
            (folder, document.body)
            for folder, name in self.overlays.items()
            for document in self._read(name, self._content(name))
        )

    @cached_property
    def _marked(self) -> tuple[dict[str, bytes], list[str]]:
        """The files with the dialects' own kinds and their texts; those that have data."""
        own, data = dict[str, bytes](), list[str]()
        for name in self.files:
            is_part = self.inclusions.is_part(name)
            if name.endswith(MANIFESTS) and not is_part and not self._is_hidden(name):
                content = self._content(name)
                if _names_own_kinds(content):
                    own[name] = content
                if _DATA_KINDS.search(content):
                    data.append(name)
        return own, data

    @cached_property
    def _names_own_kinds_below(self) -> bool:
        return any(
            _names_own_kinds(self._content(name))
            for name in self.files
            if name.endswith(MANIFESTS) and self.is_below(name)
        )

    @cached_property
    def _within(self) -> Within:
        return Within(self.root)

    def _content(self, name: str) -> bytes:
        """The text of a file; nothing where it cannot be read."""
        try:
            with self._within.open(name) as file:
                return file.read(LARGEST)
        except (OSError, StrayPathError):
            return b""

    def _read(self, name: str, content: bytes, *, tells: bool = False) -> tuple[Document, ...]:
        """The objects of a file; what is broken may be told, and stops nothing."""
        try:
            return read(content, name)
        except DocumentError as error:
            if tells and error.code != NO_OBJECT and self.is_below(name):
                self.broken.append(finding_of(error))
            return ()

    def _is_hidden(self, name: str) -> bool:
        """Whether it lies in a dot-directory, among the templates of a chart, or is its values."""
        folder = _folder(name)
        if folder in self.charts and VALUES.fullmatch(name):
            return True
        return self._is_hidden_folder(folder)

    def _is_hidden_folder(self, folder: str) -> bool:
        if folder == ".":
            return False
        if folder not in self._hidden:
            above, last = _folder(folder), _last(folder)
            is_hidden = last.startswith(".") or (last == TEMPLATES and above in self.charts)
            self._hidden[folder] = is_hidden or self._is_hidden_folder(above)
        return self._hidden[folder]


def _last(path: str) -> str:
    """The last part of a path; all files of a repository are asked for theirs."""
    return path.rpartition("/")[2]


def _names_own_kinds(content: bytes) -> bool:
    return any(one in content for one in _GROUPS) and _OWN_KINDS.search(content) is not None


def is_synced(source: SourceObject) -> bool:
    """Whether Flux's operator makes it of the repository that it looks after."""
    return source.kind in SYNCED and source.name == FLUX_HOME


def holders(documents: Iterable[Document]) -> Iterator[tuple[Held, Document]]:
    """The ConfigMaps and Secrets by kind, namespace and name.

    Of what is encrypted nobody knows the values: placeholders stand for them.
    """
    for document in documents:
        body = document.body
        kind = text(body, "kind")
        if kind in HOLDERS and text(body, "apiVersion") == "v1":
            yield (
                (kind, text(body, "metadata", "namespace"), text(body, "metadata", "name")),
                placeholders(document) if "sops" in body else document,
            )


def finding_of(error: DocumentError) -> Finding:
    return Finding(
        code=error.code,
        severity=Severity.ERROR,
        sentence=error.problem,
        where=error.where,
        fix=error.hint,
    )


def tops(folders: Iterable[str], scan: Scan) -> list[str]:
    """Of what can be pointed at, what no other is a part of."""
    known = set(folders)
    return sorted(
        one
        for one in known
        if not scan.inclusions.by(one) and not any(above in known for above in folders_of(one))
    )


def folders_of(path: str) -> Iterator[str]:
    """The directories that a path lies in, the nearest first."""
    while path != ".":
        path = _folder(path)
        yield path


def _folder(name: str) -> str:
    return posixpath.dirname(name) or "."
