"""Scan of a tree for files with units, for overlays and for charts.

Nothing is rendered here. A file is parsed only if it contains a kind of Argo CD or Flux.
Chart templates are not manifests, and directories that start with a dot are skipped.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from tidegate.dialect.argo.settings import read_chart_values, read_settings
from tidegate.dialect.declared import Declarations
from tidegate.dialect.units import FLUX_NAMESPACE, UnitFinder
from tidegate.documents import Document, read_documents
from tidegate.errors import DocumentError
from tidegate.files import PathEscapeError, RootedFiles
from tidegate.model.config import ControllerSetting
from tidegate.model.finding import Finding
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.source import DeclaredSource, SourceObject
from tidegate.model.units.unit import Unit
from tidegate.render.kustomize.tree import KUSTOMIZATION_NAMES
from tidegate.render.sops import replace_with_placeholders
from tidegate.workspace.discovery.closest_file import ClosestFileIndex
from tidegate.workspace.discovery.overlays import OverlayIndex
from tidegate.workspace.locations import FieldLocator

NO_DECLARATIONS = Declarations()
MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")
CHART_FILE = "Chart.yaml"
TEMPLATES_DIRECTORY = "templates"
NOT_AN_OBJECT = "documents.object"
"""Error code of a document that is not a mapping, such as test data: no unit applies it."""
IS_TEMPLATE = "documents.template"
"""Error code of a file with the syntax of Go or Jinja templates."""
MAX_FILE_SIZE = 32 * 1024 * 1024
MAX_KEPT_SIZE = 128 * 1024 * 1024
"""Total size in bytes of the contents that a scan keeps; other files are read again."""
VALUES_FILE = lazy_regex(r"(?:.*/)?values[^/]*\.ya?ml")
BOOTSTRAP_KINDS = ("GitRepository", "OCIRepository")
DATA_OBJECT_KINDS = ("ConfigMap", "Secret")
DataKey: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name; the namespace is empty if none is set."""
_UNIT_API_GROUPS = (
    *(b"argoproj.io/", b".toolkit.fluxcd.io/", b"source.extensions.fluxcd.io/"),
    b"fluxcd.controlplane.io/",
)
_UNIT_API_VERSION = lazy_regex(
    rb"""(?:^[\s-]*|[{,]\s*)["']?apiVersion["']?\s*:\s*["']?(?:argoproj\.io|(?:[a-z]+\.(?:toolkit|extensions)\.fluxcd|fluxcd\.controlplane)\.io)/""",
    re.MULTILINE,
)
_TEMPLATE_SYNTAX = lazy_regex(
    r"\$\{|\$\([A-Z]|\{\{|\{%|<%|\[\[|<[A-Z][A-Z0-9_-]*>|@[A-Z][A-Z0-9_]*@"
    r"|__[A-Z][A-Z0-9_]*__|%[A-Z][A-Z0-9_]+%"
)
"""Expressions of templates, and placeholders in capital letters."""
_UNIT_KINDS = lazy_regex(
    rb"""^[\s-]*kind\s*:\s*["']?(?:Application|ApplicationSet|Kustomization|HelmRelease)\b""",
    re.MULTILINE,
)
_ANY_OBJECT = lazy_regex(rb"""^["']?apiVersion["']?\s*:""", re.MULTILINE)
_DATA_KINDS = lazy_regex(rb"""^["']?kind["']?\s*:\s*["']?(?:ConfigMap|Secret)\b""", re.MULTILINE)


_ARGOCD_OBJECT = lazy_regex(rb"""^["']?kind["']?\s*:\s*["']?ArgoCD\b""", re.MULTILINE)
_ARGOCD_VALUES = lazy_regex(
    rb"""\bconfigs["']?:\s[\s\S]*?^\s+["']?(?:cm|params)["']?:""", re.MULTILINE
)
ARGOCD_CM_MARKER = b"argocd-cm"
"""Text in every ConfigMap with settings of Argo CD."""


@dataclass(frozen=True)
class RepositoryScan:
    """A tree of files, and what they define. Paths start at `root`."""

    root: Path
    files: tuple[str, ...]
    search_path: str = "."
    """The path in which units are searched."""
    escaping_links: tuple[str, ...] = ()
    """Links that lead out of the tree; they are not read."""
    parse_findings: list[Finding] = field(default_factory=list)
    """Findings about files that cannot be parsed."""
    generated: dict[str, Declarations] = field(default_factory=dict)
    """By file, its declarations with the units that its ApplicationSets generate, once expanded."""
    generator_inputs: set[str] = field(default_factory=set)
    """Files that git generators of ApplicationSets read: their contents are data."""
    template_files: set[str] = field(default_factory=set)
    """Files that are no YAML because they have template syntax."""
    unit_finder: UnitFinder = field(default_factory=UnitFinder, repr=False, compare=False)
    _hidden: dict[str, bool] = field(default_factory=dict, repr=False)
    _parsed: dict[str, tuple[Document, ...]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """By file, the objects in these contents."""

    def relative_to(self, folder: str) -> RepositoryScan:
        """Return the scan as seen from a directory above or below the search path."""
        if folder == ".":
            return self
        files = tuple(
            file.removeprefix(f"{folder}/") for file in self.files if file.startswith(f"{folder}/")
        )
        is_deeper = self.search_path.startswith(f"{folder}/")
        search_path = self.search_path.removeprefix(f"{folder}/") if is_deeper else "."
        links = tuple(
            link.removeprefix(f"{folder}/")
            for link in self.escaping_links
            if link.startswith(f"{folder}/")
        )
        return RepositoryScan(self.root / folder, files, search_path, links)

    def is_searched(self, path: str) -> bool:
        """Return whether a path is the search path or below it."""
        return self.search_path in {".", path} or path.startswith(f"{self.search_path}/")

    @cached_property
    def charts(self) -> frozenset[str]:
        """The directories of charts."""
        return frozenset(_parent(file) for file in self.files if _base_name(file) == CHART_FILE)

    @cached_property
    def unit_charts(self) -> list[str]:
        """The charts in the search path whose templates create units: apps of apps."""
        unit_charts: set[str] = set()
        for name in self.files:
            folder = self._chart_of_template(name) if name.endswith(MANIFEST_SUFFIXES) else None
            if folder is not None and folder not in unit_charts and self.is_searched(folder):
                content = self.content(name)
                if _contains_unit_kinds(content) and _UNIT_KINDS.search(content):
                    unit_charts.add(folder)
        return [
            chart
            for chart in sorted(unit_charts)
            if not any(parent in self.charts for parent in parent_directories(chart))
        ]

    def _chart_of_template(self, name: str) -> str | None:
        """Return the chart that has a file among its templates; None without one."""
        parent, separator, _ = f"/{name}".rpartition(f"/{TEMPLATES_DIRECTORY}/")
        chart = parent.removeprefix("/") or "."
        return chart if separator and chart in self.charts else None

    @cached_property
    def overlays(self) -> dict[str, str]:
        """The directories with a kustomization, and the file of each."""
        return {
            _parent(file): file
            for file in self.files
            if _base_name(file) in KUSTOMIZATION_NAMES and not self._is_hidden(file)
        }

    @cached_property
    def declared(self) -> dict[str, Declarations]:
        """By file, what its Argo CD and Flux resources declare, as they are written."""
        find = self.unit_finder.find
        declarations = {name: find(documents) for name, documents in self.documents.items()}
        return {
            name: declared for name, declared in declarations.items() if declared != NO_DECLARATIONS
        }

    @cached_property
    def unit_directories(self) -> frozenset[str]:
        """The directories with files, at any depth, that declare something to search."""
        return frozenset(
            folder for name, _ in self.searched_declarations for folder in parent_directories(name)
        )

    @cached_property
    def documents(self) -> dict[str, tuple[Document, ...]]:
        """By file, all objects of the files with Argo CD or Flux resources."""
        by_file = {
            name: self._parse(name, content, reports_errors=True)
            for name, content in self._relevant_files[0].items()
        }
        applied = {
            name: tuple(document for document in documents if not _is_exported(document))
            for name, documents in by_file.items()
        }
        return {name: documents for name, documents in applied.items() if documents}

    def read_documents(self, content: bytes, name: str) -> tuple[Document, ...]:
        """Return the objects of a text; those of an unchanged file that was scanned are reused.

        Most files are rendered by some unit, and rules and locations need their objects again.
        """
        if self.rooted_files.kept(name) != content:
            return read_documents(content, name)
        if name not in self._parsed:
            self._parsed[name] = read_documents(content, name)
        return self._parsed[name]

    @cached_property
    def sources(self) -> ClosestFileIndex[SourceObject, DeclaredSource]:
        """The sources that are declared anywhere."""
        index = ClosestFileIndex[SourceObject, DeclaredSource]()
        for name, declared in self.declared.items():
            for source in declared.sources:
                index.add(source.id, name, source)
        return index

    @cached_property
    def is_bootstrap_repository(self) -> bool:
        """Whether units with a path in this tree use the source of a Flux bootstrap."""
        folders = {folder for file in self.files for folder in parent_directories(file)}
        declarations = self.declared.values()
        paths = [
            source.path
            for declared in declarations
            for unit in declared.units
            for source in unit.sources
            if isinstance(source.source, SourceObject) and is_bootstrap_source(source.source)
        ]
        paths += (
            copy.base_directory
            for declared in declarations
            for declared_source in declared.sources
            for copy in declared_source.copies
            if is_bootstrap_source(copy.source)
        )
        return any(path in {"", "."} or path in folders for path in paths)

    @cached_property
    def data_objects(self) -> ClosestFileIndex[DataKey, Document]:
        """All ConfigMaps and Secrets."""
        return self.index_data_objects()

    def index_data_objects(
        self, *, without: Collection[str] = ()
    ) -> ClosestFileIndex[DataKey, Document]:
        """Return the ConfigMaps and Secrets, without those of some files."""
        index = ClosestFileIndex[DataKey, Document]()
        for name in self.data_files:
            if name not in without:
                for key, document in find_data_objects(self._parse(name, self.content(name))):
                    index.add(key, name, document)
        return index

    @property
    def data_files(self) -> list[str]:
        """The files with a ConfigMap or a Secret."""
        return self._relevant_files[1]

    def documents_containing(self, marker: bytes) -> tuple[Document, ...]:
        """Return the objects of files that contain a ConfigMap or a Secret, and this text.

        Each ApplicationSet asks for the same, so the files are read once.
        """
        if marker not in self._marked_documents:
            names = filter(self.is_searched, self.data_files)
            contents = ((name, self.content(name)) for name in names)
            self._marked_documents[marker] = tuple(
                document
                for name, content in contents
                if marker in content
                for document in self._parse(name, content)
            )
        return self._marked_documents[marker]

    @cached_property
    def _marked_documents(self) -> dict[bytes, tuple[Document, ...]]:
        return {}

    @cached_property
    def argocd_settings(self) -> tuple[ControllerSetting, ...]:
        """The settings of Argo CD in files: ConfigMaps, ArgoCD objects and values of its chart."""
        settings = [*read_settings(self.documents_containing(ARGOCD_CM_MARKER))]
        for name in self.files:
            if not name.endswith(MANIFEST_SUFFIXES) or not self.is_searched(name):
                continue
            content = self.content(name)
            if _ARGOCD_VALUES.search(content) or _ARGOCD_OBJECT.search(content):
                for document in self._parse(name, content):
                    settings += read_settings((document,))
                    settings += read_chart_values(document.body, document.location)
        return tuple(settings)

    @cached_property
    def manifest_files(self) -> tuple[str, ...]:
        """The files of objects in the search path, whatever their kinds."""
        return tuple(
            file
            for file in self.files
            if file.endswith(MANIFEST_SUFFIXES)
            and self.is_searched(file)
            and not self._is_hidden(file)
            and _ANY_OBJECT.search(self.content(file))
        )

    @cached_property
    def manifest_directories(self) -> frozenset[str]:
        """The directories with files of objects, whatever their kinds."""
        return frozenset(map(_parent, self.manifest_files))

    @property
    def candidates(self) -> list[Unit]:
        """The units in the search path, file after file, without data and templates."""
        return [
            unit
            for name, declared in self.searched_declarations
            for unit in self.generated.get(name, declared).units
            if name not in self.generator_inputs and not is_template(unit)
        ]

    def list_templates(self, created: Collection[str]) -> list[str]:
        """Return the files in the search path that are templates of units.

        `created`: the locations of units that a parent creates.
        """
        names = {
            name
            for name, declared in self.searched_declarations
            for unit in declared.units
            if is_template(unit) and str(unit.location) not in created
        }
        return sorted({*names, *self.template_files})

    @property
    def has_units(self) -> bool:
        """Whether the search path has a unit or an ApplicationSet."""
        return any(
            declared.units or declared.application_sets
            for _, declared in self.searched_declarations
        )

    @property
    def searched_declarations(self) -> list[tuple[str, Declarations]]:
        """The declarations in the search path, file after file.

        Where no text there names a kind of Argo CD or Flux, no other file of the tree is read.
        """
        if not self._has_unit_kinds:
            return []
        return [
            (name, declared) for name, declared in self.declared.items() if self.is_searched(name)
        ]

    @cached_property
    def overlay_index(self) -> OverlayIndex:
        """The index of the files that overlays include."""
        return OverlayIndex.from_kustomizations(
            (folder, document.body)
            for folder, name in self.overlays.items()
            for document in self._parse(name, self.content(name))
        )

    @cached_property
    def components(self) -> frozenset[str]:
        """The directories of Kustomize components, which are never built by themselves."""
        return frozenset(
            folder
            for folder, name in self.overlays.items()
            if any(
                get_text(document.body, "kind") == "Component"
                for document in self._parse(name, self.content(name))
            )
        )

    @cached_property
    def _relevant_files(self) -> tuple[dict[str, bytes], list[str]]:
        """The files with Argo CD or Flux resources and their contents, and the files with data."""
        unit_files, data_files = dict[str, bytes](), list[str]()
        for name in self.files:
            is_input = self.overlay_index.is_input(name)
            if name.endswith(MANIFEST_SUFFIXES) and not is_input and not self._is_hidden(name):
                content = self.content(name)
                if _contains_unit_kinds(content):
                    unit_files[name] = content
                if _DATA_KINDS.search(content):
                    data_files.append(name)
        return unit_files, data_files

    @cached_property
    def _has_unit_kinds(self) -> bool:
        return any(
            _contains_unit_kinds(self.content(name))
            for name in self.files
            if name.endswith(MANIFEST_SUFFIXES) and self.is_searched(name)
        )

    @cached_property
    def rooted_files(self) -> RootedFiles:
        """The files, for reading; discovery, rendering and rules share what was read."""
        return RootedFiles(self.root, MAX_KEPT_SIZE)

    def content(self, name: str, limit: int = MAX_FILE_SIZE) -> bytes:
        """Return the start of a file; empty if it cannot be read."""
        try:
            return self.rooted_files.read(name, limit)
        except (OSError, PathEscapeError, ValueError):
            return b""

    @cached_property
    def locator(self) -> FieldLocator:
        """The locator of fields in the files, which are not read again."""
        files = frozenset(self.files)
        return FieldLocator(
            self.root,
            lambda name: self.content(name) if name in files else None,
            self.read_documents,
        )

    def _parse(
        self, name: str, content: bytes, *, reports_errors: bool = False
    ) -> tuple[Document, ...]:
        """Return the objects of a file; none of an invalid one, which may be reported."""
        try:
            return self.read_documents(content, name)
        except DocumentError as error:
            if reports_errors and error.code != NOT_AN_OBJECT and self.is_searched(name):
                if error.code == IS_TEMPLATE or _is_at_variable(content, error):
                    self.template_files.add(name)
                else:
                    self.parse_findings.append(Finding.from_error(error))
            return ()

    def _is_hidden(self, name: str) -> bool:
        """Return whether a file is below a dot-directory, a template of a chart, or its values."""
        folder = _parent(name)
        if folder in self.charts and VALUES_FILE.fullmatch(name):
            return True
        return self._is_hidden_folder(folder)

    def _is_hidden_folder(self, folder: str) -> bool:
        if folder == ".":
            return False
        if folder not in self._hidden:
            parent, last = _parent(folder), _base_name(folder)
            is_hidden = last.startswith(".") or (
                last == TEMPLATES_DIRECTORY and parent in self.charts
            )
            self._hidden[folder] = is_hidden or self._is_hidden_folder(parent)
        return self._hidden[folder]


def _base_name(path: str) -> str:
    """Return the last part of a path; fast, as it is called for all files of a repository."""
    return path.rpartition("/")[2]


def _contains_unit_kinds(content: bytes) -> bool:
    return (
        any(group in content for group in _UNIT_API_GROUPS)
        and _UNIT_API_VERSION.search(content) is not None
    )


def is_template(unit: Unit) -> bool:
    """Return whether a unit has template syntax in its name, its sources or its destination.

    A program fills in the values before the file is applied: Helm, cookiecutter, envsubst, or Flux
    where a parent substitutes variables. Then the parent creates the unit.
    """
    sources = (f"{source.source} {source.path}" for source in unit.sources)
    destination = (unit.destination.cluster, unit.destination.namespace)
    texts = (unit.id.namespace, unit.id.name, *destination, *sources)
    return not unit.generated_by and any(map(_TEMPLATE_SYNTAX.search, texts))


def _is_at_variable(content: bytes, error: DocumentError) -> bool:
    """Return whether the line of a syntax error has a variable, such as `{name: ${NAME}}`."""
    line = error.location.line if error.location else 0
    return b"${" in b"".join(content.splitlines()[max(line - 1, 0) : line])


def _is_exported(document: Document) -> bool:
    """Return whether an object is a copy from a cluster; the API server creates none of these.

    `BeforeCreate` in `pkg/registry/rest/create.go` and `Create` in
    `pkg/registry/generic/registry/store.go` of k8s.io/apiserver 0.36.4 refuse a resourceVersion.
    """
    metadata = get_mapping(document.body, "metadata")
    return bool(metadata.get("uid") and metadata.get("resourceVersion"))


def is_bootstrap_source(source: SourceObject) -> bool:
    """Return whether the Flux operator creates the source, for the repository that it syncs."""
    return source.kind in BOOTSTRAP_KINDS and source.name == FLUX_NAMESPACE


def find_data_objects(documents: Iterable[Document]) -> Iterator[tuple[DataKey, Document]]:
    """Yield the ConfigMaps and Secrets by kind, namespace and name.

    Encrypted values are unknown, and replaced by placeholders.
    """
    for document in documents:
        body = document.body
        kind = get_text(body, "kind")
        if kind in DATA_OBJECT_KINDS and get_text(body, "apiVersion") == "v1":
            yield (
                (kind, get_text(body, "metadata", "namespace"), get_text(body, "metadata", "name")),
                replace_with_placeholders(document) if "sops" in body else document,
            )


def topmost(folders: Iterable[str], scan: RepositoryScan) -> list[str]:
    """Return the directories that are not part of another one."""
    known = set(folders)
    return sorted(
        folder
        for folder in known
        if not scan.overlay_index.including(folder)
        and not any(parent in known for parent in parent_directories(folder))
    )


def parent_directories(path: str) -> Iterator[str]:
    """Yield the directories that contain a path, the closest first."""
    while path != ".":
        path = _parent(path)
        yield path


def _parent(name: str) -> str:
    return posixpath.dirname(name) or "."
