"""Directories that make artifacts: which of them is meant by the name of one, and what it is of."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping

import msgspec

from tidegate.errors import SourceError, sanitize
from tidegate.model.operators.placeholders import fill_placeholders, placeholder_regex
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.source import ArtifactCopy, ArtifactDiscovery

LABEL = lazy_regex(r"[a-z0-9]([a-z0-9_.-]{0,61}[a-z0-9])?")
NAME = lazy_regex(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def find_artifact_directory(
    discovery: ArtifactDiscovery, files: Iterable[str], wanted: str
) -> Mapping[str, str] | None:
    """What stands for each name in braces, in the directory that makes the wanted artifact.

    Raises SourceError where the generator makes nothing at all. None: it makes others.
    """
    found: dict[str, tuple[str, Mapping[str, str]]] = {}
    for folder in sorted(list_parent_directories(files)):
        match = placeholder_regex(discovery.pattern).fullmatch(folder)
        if match is None:
            continue
        values = match.groupdict()
        lowered = {key: one.lower() for key, one in values.items()}
        name = fill_placeholders(discovery.name, lowered)
        if not all(map(LABEL.fullmatch, lowered.values())) or not NAME.fullmatch(name):
            why = f"the directory `{sanitize(folder)}` cannot be a label, or the name of an object"
            raise _refused(discovery, why)
        if name in found:
            both = f"`{sanitize(found[name][0])}` and `{sanitize(folder)}`"
            raise _refused(discovery, f"the directories {both} both make `{name}`")
        found[name] = folder, values
    return found[wanted][1] if wanted in found else None


def fill_artifact_copy(portion: ArtifactCopy, values: Mapping[str, str]) -> ArtifactCopy:
    return msgspec.structs.replace(
        portion,
        pattern=fill_placeholders(portion.pattern, values),
        destination=fill_placeholders(portion.destination, values),
    )


def list_parent_directories(files: Iterable[str]) -> set[str]:
    """All directories that files lie in, but the root."""
    found = set[str]()
    for file in files:
        folder = posixpath.dirname(file)
        while folder and folder not in found:
            found.add(folder)
            folder = posixpath.dirname(folder)
    return found


def _refused(discovery: ArtifactDiscovery, why: str) -> SourceError:
    problem = f"its generator makes nothing: {why}"
    return SourceError("source.portion", problem, location=discovery.location)
