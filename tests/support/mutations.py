"""Small mistakes in a repository that works: each gives its files anew."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from tests.support.manifest_texts import WAVE

PRODUCERS = frozenset(
    [
        "Secret",
        "ConfigMap",
        "ExternalSecret",
        "SecretStore",
        "SealedSecret",
        "Certificate",
        "Issuer",
        "Cluster",
        "Service",
        "PersistentVolumeClaim",
        "CustomResourceDefinition",
        "Deployment",
        "StatefulSet",
        "Namespace",
    ]
)
_WAVE = re.compile(rf'({re.escape(WAVE)}:\s*)"(-?\d+)"')
_KIND = re.compile(r"^kind: (\w+)$", re.MULTILINE)
_NAME = re.compile(r"^metadata:\s*\{?\s*name: ([\w.-]+)", re.MULTILINE)
_DEPENDS = re.compile(r"^  dependsOn:(?: \[.*\]\n|\n(?:  - .*\n(?:    .*\n)*)+)", re.MULTILINE)
_WAIT = re.compile(r"^  wait: true\n", re.MULTILINE)


class Mutant(NamedTuple):
    """What was done, and the files that came of it."""

    change: str
    files: dict[str, str]


def mutants_of(files: dict[str, str]) -> Iterator[Mutant]:
    """Every one of these mistakes, one at a time."""
    yield from _swapped_waves(files)
    yield from _dropped_producers(files)
    for name, text in files.items():
        for change, pattern in (("dependsOn", _DEPENDS), ("wait", _WAIT)):
            if pattern.search(text):
                yield Mutant(f"drop {change} of {name}", {**files, name: pattern.sub("", text)})


def _swapped_waves(files: dict[str, str]) -> Iterator[Mutant]:
    """Of each pair of waves, one object of the one changes places with one of the other."""
    places = [
        (name, result.start(), result.end(), result[1], int(result[2]))
        for name, text in files.items()
        for result in _WAVE.finditer(text)
    ]
    for item, other in combinations(places, 2):
        if item[4] == other[4]:
            continue
        changed = dict(files)
        for mine, theirs in sorted(((item, other), (other, item)), key=lambda pair: -pair[0][1]):
            name, start, end, key, _ = mine
            text = changed[name]
            changed[name] = f'{text[:start]}{key}"{theirs[4]}"{text[end:]}'
        yield Mutant(f"swap {item[4]} in {item[0]} and {other[4]} in {other[0]}", changed)


def _dropped_producers(files: dict[str, str]) -> Iterator[Mutant]:
    for name, text in files.items():
        parts = re.split(r"^---\n", text, flags=re.MULTILINE)
        for at, part in enumerate(parts):
            kind, called = _KIND.search(part), _NAME.search(part)
            if (
                kind
                and kind[1] in PRODUCERS
                and "{{" not in text
                and not _is_all(files, name, parts)
            ):
                rest = "---\n".join(part for place, part in enumerate(parts) if place != at)
                change = f"drop {kind[1]} {called[1] if called else ''} of {name}"
                yield Mutant(change, {**files, name: rest or "# nothing\n"})


def _is_all(files: dict[str, str], name: str, parts: list[str]) -> bool:
    """Whether it is the only object of its directory: a unit without any is another matter."""
    folder = posixpath.dirname(name)
    others = [file for file in files if posixpath.dirname(file) == folder and file != name]
    return not others and len(parts) == 1
