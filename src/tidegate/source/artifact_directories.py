"""Directories of a Flux ArtifactGenerator, found by the name of the artifact."""

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
    discovery: ArtifactDiscovery, files: Iterable[str], artifact_name: str
) -> Mapping[str, str] | None:
    """Return the value of each placeholder for the directory of an artifact.

    None if the generator creates other artifacts. Raises SourceError if it creates none at all.

    Like `buildArtifactRequests` in `internal/controller/artifactgenerator_pathpattern.go` of
    source-watcher 2.2.2.
    """
    directory_by_name: dict[str, tuple[str, Mapping[str, str]]] = {}
    for directory in sorted(list_parent_directories(files)):
        match = placeholder_regex(discovery.pattern).fullmatch(directory)
        if match is None:
            continue
        values = match.groupdict()
        lowered = {key: value.lower() for key, value in values.items()}
        name = fill_placeholders(discovery.name, lowered)
        if not all(map(LABEL.fullmatch, lowered.values())) or not NAME.fullmatch(name):
            reason = f"the directory `{sanitize(directory)}` is not a valid label or object name"
            raise _generator_error(discovery, reason)
        if name in directory_by_name:
            directories = f"`{sanitize(directory_by_name[name][0])}` and `{sanitize(directory)}`"
            raise _generator_error(discovery, f"the directories {directories} both create `{name}`")
        directory_by_name[name] = directory, values
    return directory_by_name[artifact_name][1] if artifact_name in directory_by_name else None


def fill_artifact_copy(artifact_copy: ArtifactCopy, values: Mapping[str, str]) -> ArtifactCopy:
    """Return a copy rule with the placeholders filled in."""
    return msgspec.structs.replace(
        artifact_copy,
        pattern=fill_placeholders(artifact_copy.pattern, values),
        destination=fill_placeholders(artifact_copy.destination, values),
    )


def list_parent_directories(files: Iterable[str]) -> set[str]:
    """Return all directories that contain files, without the root."""
    directories = set[str]()
    for file in files:
        directory = posixpath.dirname(file)
        while directory and directory not in directories:
            directories.add(directory)
            directory = posixpath.dirname(directory)
    return directories


def _generator_error(discovery: ArtifactDiscovery, reason: str) -> SourceError:
    problem = f"the generator creates nothing: {reason}"
    return SourceError("source.copy", problem, location=discovery.location)
