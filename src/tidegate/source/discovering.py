"""Directories that make artifacts: which of them is meant by the name of one, and what it is of."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping

import msgspec

from tidegate.errors import SourceError, foreign
from tidegate.model.braces import braces_shape, fill_braces
from tidegate.model.patterns import late
from tidegate.model.source import Discovery, Portion

LABEL = late(r"[a-z0-9]([a-z0-9_.-]{0,61}[a-z0-9])?")
NAME = late(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def find_directory(
    discovery: Discovery, files: Iterable[str], wanted: str
) -> Mapping[str, str] | None:
    """What stands for each name in braces, in the directory that makes the wanted artifact.

    Raises SourceError where the generator makes nothing at all. None: it makes others.
    """
    found: dict[str, tuple[str, Mapping[str, str]]] = {}
    for folder in sorted(directories_of(files)):
        match = braces_shape(discovery.pattern).fullmatch(folder)
        if match is None:
            continue
        values = match.groupdict()
        lowered = {key: one.lower() for key, one in values.items()}
        name = fill_braces(discovery.name, lowered)
        if not all(map(LABEL.fullmatch, lowered.values())) or not NAME.fullmatch(name):
            why = f"the directory `{foreign(folder)}` cannot be a label, or the name of an object"
            raise _refused(discovery, why)
        if name in found:
            both = f"`{foreign(found[name][0])}` and `{foreign(folder)}`"
            raise _refused(discovery, f"the directories {both} both make `{name}`")
        found[name] = folder, values
    return found[wanted][1] if wanted in found else None


def fill_portion(portion: Portion, values: Mapping[str, str]) -> Portion:
    return msgspec.structs.replace(
        portion,
        pattern=fill_braces(portion.pattern, values),
        into=fill_braces(portion.into, values),
    )


def directories_of(files: Iterable[str]) -> set[str]:
    """All directories that files lie in, but the root."""
    found = set[str]()
    for file in files:
        folder = posixpath.dirname(file)
        while folder and folder not in found:
            found.add(folder)
            folder = posixpath.dirname(folder)
    return found


def _refused(discovery: Discovery, why: str) -> SourceError:
    problem = f"its generator makes nothing: {why}"
    return SourceError("source.portion", problem, where=discovery.where)
