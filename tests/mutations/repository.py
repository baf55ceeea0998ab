"""A repository of the corpus in memory, and changes to it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import TypeAlias

import msgspec
import yaml

from tidegate.model.k8s.objects import Json, JsonObject

CORPUS = FilePath(__file__).parents[1] / "data" / "corpus"
GIT_CONFIG = '[core]\n\trepositoryformatversion = 0\n[remote "origin"]\n\turl = {}\n'
URL = "https://git.example.com/acme/{}.git"
YAML_SUFFIXES = (".yaml", ".yml")
Path: TypeAlias = tuple[str | int, ...]
"""Keys and indexes down to a value of a document."""


class Document(msgspec.Struct, frozen=True):
    """A YAML document of a file."""

    file: str
    index: int
    """Position of the document in its file."""
    body: JsonObject

    @property
    def kind(self) -> str:
        return str(self.body.get("kind", ""))

    @property
    def group(self) -> str:
        return str(self.body.get("apiVersion", "")).rpartition("/")[0]

    @property
    def name(self) -> str:
        return str(get_mapping(self.body, "metadata").get("name", ""))

    @property
    def label(self) -> str:
        """The kind and the name, for the description of a mutation."""
        return f"{self.kind} {self.name} in {self.file}"


class Change(msgspec.Struct, frozen=True):
    """New contents of files, and what `lint` has to say about them."""

    files: Mapping[str, str | None]
    """New text by path; None deletes the file."""
    place: str
    """The changed field, object or file."""
    names: tuple[str, ...] = ()
    """Names of which a finding must contain one, so that it has the right cause."""


class Repository(msgspec.Struct, frozen=True):
    """The text files of a repository, and the YAML documents in them."""

    name: str
    files: Mapping[str, str]
    documents: tuple[Document, ...]

    @classmethod
    def load(cls, root: FilePath) -> Repository:
        """Return the repository in a directory of the corpus."""
        files = {
            str(path.relative_to(root)): path.read_text()
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }
        documents = tuple(doc for file, text in files.items() for doc in _read(file, text))
        return cls(root.name, files, documents)

    def write_to(self, directory: FilePath, changes: Mapping[str, str | None]) -> None:
        """Write the files with some changes as a Git repository."""
        for name, text in {**self.files, **changes}.items():
            if text is not None:
                path = directory / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        git = directory / ".git"
        for folder in ("objects", "refs"):
            (git / folder).mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "config").write_text(GIT_CONFIG.format(URL.format(self.name)))

    def replace(
        self, document: Document, edit: Callable[[JsonObject], None], *names: str, place: str
    ) -> Change:
        """Return the change of one document by a function that edits a copy of it."""
        body = copy.deepcopy(document.body)
        edit(body)
        text = self._dump(document, body)
        return Change(
            {document.file: text}, f"{place} of {document.label}", (*names, document.file)
        )

    def set(
        self, document: Document, path: Path, value: Json, *names: str, place: str = ""
    ) -> Change:
        """Return the change that sets one value of a document."""
        place = place or ".".join(map(str, path))
        return self.replace(document, lambda body: set_at(body, path, value), *names, place=place)

    def drop(self, document: Document, path: tuple[str, ...], *names: str) -> Change:
        """Return the change that removes one field of a document."""

        def edit(body: JsonObject) -> None:
            del get_mapping(body, *path[:-1])[path[-1]]

        return self.replace(document, edit, *names, place=".".join(path))

    def remove(self, document: Document, *names: str) -> Change:
        """Return the change that deletes one document from its file."""
        return Change({document.file: self._dump(document, None)}, document.label, names)

    def _dump(self, changed: Document, body: JsonObject | None) -> str:
        bodies = [
            body if document.index == changed.index else document.body
            for document in self.documents
            if document.file == changed.file
        ]
        return dump(*(item for item in bodies if item is not None))

    def find(self, *kinds: str) -> Iterator[Document]:
        """Yield the documents of some kinds."""
        return (document for document in self.documents if document.kind in kinds)


def repositories() -> list[Repository]:
    """Return all repositories of the corpus, by name."""
    roots = (root for dialect in CORPUS.iterdir() for root in dialect.iterdir() if root.is_dir())
    return [Repository.load(root) for root in sorted(roots, key=lambda root: root.name)]


def dump(*bodies: Json) -> str:
    """Return documents as YAML."""
    text: str = yaml.safe_dump_all(bodies, sort_keys=False, width=1000)
    return text


def set_at(body: Json, path: Path, value: Json) -> None:
    """Set the value at a path."""
    parent: Json = body
    for key in path[:-1]:
        if isinstance(parent, dict):
            parent = parent[str(key)]
        elif isinstance(parent, list):
            parent = parent[int(key)]
    if isinstance(parent, dict):
        parent[str(path[-1])] = value
    elif isinstance(parent, list):
        parent[int(path[-1])] = value


def get_mapping(body: Json, *path: str) -> JsonObject:
    """Return the mapping at a path, or an empty one."""
    for key in path:
        body = body.get(key) if isinstance(body, dict) else None
    return body if isinstance(body, dict) else {}


def get_list(body: Json, *path: str) -> list[Json]:
    """Return the list at a path, or an empty one."""
    parent = get_mapping(body, *path[:-1])
    value = parent.get(path[-1])
    return value if isinstance(value, list) else []


def _read(file: str, text: str) -> Iterator[Document]:
    """Yield the documents of a YAML file; none for a template or another format."""
    if not file.endswith(YAML_SUFFIXES) or "{{" in text:
        return
    try:
        bodies = list(yaml.safe_load_all(text))
    except yaml.YAMLError:
        return
    for index, body in enumerate(bodies):
        if isinstance(body, dict):
            yield Document(file, index, body)
