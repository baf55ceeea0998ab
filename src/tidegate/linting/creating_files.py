"""Files that create missing objects, although no unit deploys them: manifests and scripts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property

from tidegate.documents import read_documents
from tidegate.errors import DocumentError
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject, Ref
from tidegate.workspace.discovery.scan import RepositoryScan

MAX_FILE_SIZE = 200_000
YAML_SUFFIXES = (".yaml", ".yml")
TEXT_SUFFIXES = (*YAML_SUFFIXES, ".sh", ".md", ".tf", ".py", ".just", ".mk", ".j2", ".tpl", ".txt")
TEXT_NAMES = ("Makefile", "justfile", "Justfile", "Taskfile")
GENERATORS = {"secretGenerator": "Secret", "configMapGenerator": "ConfigMap"}
CREATED_KINDS = {"ExternalSecret": "Secret", "SealedSecret": "Secret"}


class CreatingFiles:
    """Search for files that create objects. All files are read at most once, at the first query."""

    def __init__(
        self, scan: RepositoryScan, deployed: Collection[str], missing: Collection[Ref]
    ) -> None:
        self._scan = scan
        self._deployed = deployed
        self._missing = missing

    def find(self, ref: Ref) -> str:
        """Return the first file that creates an object; empty if there is none."""
        return self._files_by_object.get((ref.kind.name, ref.namespace, ref.name), "")

    @cached_property
    def _files_by_object(self) -> dict[tuple[str, str, str], str]:
        names = {ref.name for ref in self._missing}
        files: dict[tuple[str, str, str], str] = {}
        if not names:
            return files
        any_name = re.compile(b"|".join(re.escape(name.encode()) for name in sorted(names)))
        for file, content in self._contents():
            if not any_name.search(content):
                continue
            created = set(_created_by_documents(file, content))
            for ref in self._missing:
                is_created = not created.isdisjoint(
                    {(ref.kind.name, namespace, ref.name) for namespace in ("", ref.namespace)}
                )
                if is_created or _is_created_by_command(content, ref):
                    files.setdefault((ref.kind.name, ref.namespace, ref.name), file)
        return files

    def _contents(self) -> Iterator[tuple[str, bytes]]:
        for name in self._scan.files:
            file_name = name.rpartition("/")[2]
            if name in self._deployed or not (
                name.endswith(TEXT_SUFFIXES) or file_name.startswith(TEXT_NAMES)
            ):
                continue
            yield name, self._scan.content(name, MAX_FILE_SIZE)


def _created_by_documents(file: str, content: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield kind, namespace and name of the objects in a file, and of those it generates."""
    if not file.endswith(YAML_SUFFIXES):
        return
    try:
        documents = read_documents(content, file)
    except (DocumentError, ValueError):
        return
    for body in (document.body for document in documents):
        metadata = get_mapping(body, "metadata")
        kind, name = get_text(body, "kind"), get_text(metadata, "name")
        namespace = get_text(metadata, "namespace")
        yield CREATED_KINDS.get(kind, kind), namespace, name
        if kind in CREATED_KINDS:
            yield CREATED_KINDS[kind], namespace, get_text(body, "spec", "target", "name")
        yield from _generated(body)


def _generated(body: JsonObject) -> Iterator[tuple[str, str, str]]:
    namespace = get_text(body, "namespace")
    for key, kind in GENERATORS.items():
        for generator in get_mappings(body, key):
            yield kind, get_text(generator, "namespace") or namespace, get_text(generator, "name")


def _is_created_by_command(content: bytes, ref: Ref) -> bool:
    """Return whether a line is a command like `kubectl create secret generic NAME`."""
    kind, name = (re.escape(text.encode()) for text in (ref.kind.name.lower(), ref.name))
    command = rb"\bcreate\b[^\n]*\b%s\b[^\n]*(?<![\w.-])%s(?![\w.-])"
    return re.search(command % (kind, name), content) is not None
