"""Splitting of a long list of plain files into parts that are built separately.

Kustomize compares each object that it reads with all others: a list twice as long takes four times
as long. A kustomization that only lists files treats each file independently, except that it
rejects objects with the same name.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from msgspec.structs import replace

from tidegate.documents import Document
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import JsonObject
from tidegate.render.kustomize.collect import OverlayInputs
from tidegate.render.kustomize.tree import BuildCopy

LIST_FIELDS = frozenset({"apiVersion", "kind", "metadata", "resources", "sortOptions"})
FIFO_ORDER = {"order": "fifo"}
"""Flux sets it; by default, kustomize sorts the objects."""
MAX_FILES = 250
"""Files in one part: starting kustomize takes as long as dozens of files."""


def split_inputs(inputs: OverlayInputs) -> list[OverlayInputs]:
    """Return the parts of a long list, in its order. Anything else is one part."""
    files = _listed_files(inputs)
    if len(files) <= MAX_FILES:
        return [inputs]
    names = list(files)
    return [
        _part(inputs, {name: files[name] for name in names[start : start + MAX_FILES]})
        for start in range(0, len(names), MAX_FILES)
    ]


def _listed_files(inputs: OverlayInputs) -> dict[str, str]:
    """Return the file of each listed name; empty if the kustomization does anything else."""
    body, copy = inputs.body, inputs.copy
    names = body.get("resources")
    other_fields = {key for key, value in body.items() if value is not None} - LIST_FIELDS
    is_sorted = body.get("sortOptions") != FIFO_ORDER
    if other_fields or is_sorted or copy.links or not isinstance(names, list):
        return {}
    directory = posixpath.dirname(inputs.top_file)
    files = {str(name): posixpath.normpath(posixpath.join(directory, str(name))) for name in names}
    is_plain = len(files) == len(names) and all(path in copy.files for path in files.values())
    return files if is_plain else {}


def _part(inputs: OverlayInputs, files: dict[str, str]) -> OverlayInputs:
    body: JsonObject = {**inputs.body, "resources": [*files]}
    texts = {path: inputs.copy.files[path] for path in files.values()}
    texts[inputs.top_file] = to_yaml(body).encode()
    return replace(inputs, copy=BuildCopy(texts), body=body)


def are_distinct(objects: Iterable[Document]) -> bool:
    """Return whether kustomize would certainly accept the objects in one build.

    Like `Append` in `resmap/reswrangler.go` of sigs.k8s.io/kustomize/api 0.21.1.
    """
    names = [_object_name(document) for document in objects]
    return len(set(names)) == len(names)


def _object_name(document: Document) -> tuple[str, str, str]:
    kind, names = get_text(document.body, "kind"), get_mapping(document.body, "metadata")
    return (kind, get_text(names, "namespace") or "default", get_text(names, "name"))
