"""The smallest root of an overlay, a chart or a cluster directory outside a repository.

It contains the bases that the path names, or the paths of its Flux units.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tidegate.documents import read_documents
from tidegate.errors import TidegateError
from tidegate.files import read_user_file
from tidegate.model.k8s.json_fields import get_list, get_mappings, get_text
from tidegate.model.k8s.objects import Json
from tidegate.model.units.chart_request import LOCAL_PREFIX
from tidegate.render.kustomize.tree import KUSTOMIZATION_NAMES

CHART_FILE = "Chart.yaml"
FLUX_API_PREFIX = "kustomize.toolkit.fluxcd.io/"
YAML_SUFFIXES = (".yaml", ".yml")
REFERENCE_KEYS = ("resources", "bases", "components")
MAX_VISITED = 100
"""Maximum number of directories that are visited, and of files that are read."""


def smallest_root(path: Path) -> Path:
    """Return the smallest directory that contains a path and all directories it is built from.

    A missing directory counts, so that it is reported as missing and not as outside the root.
    """
    checkout = _flux_checkout(path)
    seen: dict[Path, None] = dict.fromkeys((path, checkout) if checkout else (path,))
    pending = [path]
    while pending and len(seen) < MAX_VISITED:
        for directory in _referenced_directories(pending.pop()):
            if directory not in seen and not os.path.isfile(directory):  # noqa: PTH113 - never raises
                seen[directory] = None
                pending.append(directory)
    common = Path(os.path.commonpath(seen))
    return path if common == Path(common.anchor) else common


def _flux_checkout(path: Path) -> Path | None:
    """Return the closest parent that contains most paths of the Flux units below, or None."""
    unit_paths = {
        unit_path
        for file in islice(_yaml_files(path), MAX_VISITED)
        for unit_path in _unit_paths(file)
    }
    for folder in (path, *path.parents)[:-1] if unit_paths else ():
        existing = sum(os.path.isdir(folder / unit_path) for unit_path in unit_paths)  # noqa: PTH112
        if 2 * existing >= len(unit_paths):
            return folder
    return None


def _yaml_files(path: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (Path(folder, name) for name in sorted(files) if name.endswith(YAML_SUFFIXES))
        yield from paths


def _unit_paths(file: Path) -> Iterator[str]:
    for body in _read_bodies(file, containing=FLUX_API_PREFIX.encode()):
        if (
            get_text(body, "apiVersion").startswith(FLUX_API_PREFIX)
            and get_text(body, "kind") == "Kustomization"
        ):
            path = os.path.normpath(get_text(body, "spec", "path", default=".").lstrip("/"))
            if path != "." and not path.startswith(".."):
                yield path


def _referenced_directories(folder: Path) -> Iterator[Path]:
    """Yield the directories that a kustomization or a chart names, as they are written."""
    for name in KUSTOMIZATION_NAMES:
        for body in _read_bodies(folder / name):
            references = (reference for key in REFERENCE_KEYS for reference in get_list(body, key))
            yield from (
                _resolve_reference(folder, reference)
                for reference in references
                if isinstance(reference, str)
            )
    for body in _read_bodies(folder / CHART_FILE):
        addresses = (
            get_text(dependency, "repository") for dependency in get_mappings(body, "dependencies")
        )
        local = (
            address.removeprefix(LOCAL_PREFIX)
            for address in addresses
            if address.startswith(LOCAL_PREFIX)
        )
        yield from (_resolve_reference(folder, path) for path in local)


def _resolve_reference(folder: Path, reference: str) -> Path:
    return Path(os.path.normpath(folder / reference))


def _read_bodies(file: Path, *, containing: bytes = b"") -> list[Json]:
    """Return the documents of a file with this text.

    None of an invalid file, which rendering reports.
    """
    if not os.path.isfile(file):  # noqa: PTH113 - never raises
        return []
    try:
        content = read_user_file(file)
        if containing not in content:
            return []
        return [document.body for document in read_documents(content, file.name)]
    except TidegateError:
        return []
