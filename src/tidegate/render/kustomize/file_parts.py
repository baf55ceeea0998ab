"""A long list of plain files, in parts that are built apart.

Kustomize compares each object that it reads with all that it has: a list twice as long takes four
times as long. A kustomization that does nothing but list files does nothing to one of them because
of another, save that it refuses objects of one name.
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

LISTS_ONLY = frozenset({"apiVersion", "kind", "metadata", "resources", "sortOptions"})
AS_LISTED = {"order": "fifo"}
"""Flux asks for it; without a word objects are sorted at the end."""
MOST = 250
"""Files in one part: starting kustomize takes as long as many dozens of them."""


def split_inputs(gathering: OverlayInputs) -> list[OverlayInputs]:
    """The parts of a long list, in its order. Anything else is one part: itself."""
    files = _listed_files(gathering)
    if len(files) <= MOST:
        return [gathering]
    names = list(files)
    return [
        _part(gathering, {name: files[name] for name in names[start : start + MOST]})
        for start in range(0, len(names), MOST)
    ]


def _listed_files(gathering: OverlayInputs) -> dict[str, str]:
    """The file of each name, if files are all that is listed, and listing all that is done."""
    body, copy = gathering.body, gathering.copy
    names = body.get("resources")
    more = {key for key, value in body.items() if value is not None} - LISTS_ONLY
    is_sorted = body.get("sortOptions") != AS_LISTED
    if more or is_sorted or copy.links or not isinstance(names, list):
        return {}
    start = posixpath.dirname(gathering.top)
    files = {str(name): posixpath.normpath(posixpath.join(start, str(name))) for name in names}
    is_plain = len(files) == len(names) and all(path in copy.files for path in files.values())
    return files if is_plain else {}


def _part(gathering: OverlayInputs, files: dict[str, str]) -> OverlayInputs:
    body: JsonObject = {**gathering.body, "resources": [*files]}
    texts = {path: gathering.copy.files[path] for path in files.values()}
    texts[gathering.top] = to_yaml(body).encode()
    return replace(gathering, copy=BuildCopy(texts), body=body)


def are_distinct(objects: Iterable[Document]) -> bool:
    """Whether kustomize would take them together, for sure."""
    names = [_name(one) for one in objects]
    return len(set(names)) == len(names)


def _name(document: Document) -> tuple[str, str, str]:
    kind, names = get_text(document.body, "kind"), get_mapping(document.body, "metadata")
    return (kind, get_text(names, "namespace") or "default", get_text(names, "name"))
