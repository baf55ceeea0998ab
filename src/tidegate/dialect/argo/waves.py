"""Sync waves: Argo CD's annotation, or Helm's hook weight if there is none.

A wave in Git must be an integer: an error is better than a silently changed order. A wave of a
live object is read like Argo CD does: anything else than an integer is ignored.

Like `Wave` in `gitops-engine/pkg/sync/syncwaves/waves.go` of Argo CD 3.6.
"""

from __future__ import annotations

import msgspec

from tidegate.dialect.argo.options import string_annotations
from tidegate.documents import Document
from tidegate.errors import DialectError, Location, sanitize
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.text.lazy_regex import lazy_regex

WAVE = "argocd.argoproj.io/sync-wave"
WEIGHT = "helm.sh/hook-weight"
NUMBER = lazy_regex(r"[+-]?[0-9]{1,40}")
LIMIT = 2**63


def manifest_wave(document: Document) -> int:
    """Return the wave of a manifest. Raises DialectError if the annotation is not an integer."""
    annotations = get_mapping(document.body, "metadata", "annotations")
    for name in (WAVE, WEIGHT):
        value = annotations.get(name)
        if value is None:
            continue
        wave = _parse_wave(value) if isinstance(value, str) else None
        if wave is None:
            raise _wave_error(name, value, document.location)
        return wave
    return 0


def live_wave(body: JsonObject) -> int:
    """Return the wave of a live object; 0 if it has no valid one."""
    annotations = string_annotations(body)
    waves = (_parse_wave(annotations[name]) for name in (WAVE, WEIGHT) if name in annotations)
    return next((wave for wave in waves if wave is not None), 0)


def _parse_wave(text: str) -> int | None:
    """Parse a signed 64-bit integer; None for anything else."""
    wave = int(text) if NUMBER.fullmatch(text) else LIMIT
    return wave if -LIMIT <= wave < LIMIT else None


def _wave_error(name: str, value: object, document_location: Location) -> DialectError:
    location = Location(
        document_location.name, document_location.line, field=f'metadata.annotations["{name}"]'
    )
    if isinstance(value, int) and not isinstance(value, bool):
        problem = f"`{name}` is the number {value}; annotation values must be strings"
        return DialectError(
            "dialect.wave", problem, location=location, hint=f'write the value as `"{value}"`'
        )
    problem = f"`{name}` is {_describe(value)}, which is not an integer"
    hint = 'write an integer in quotes, such as `"-1"`'
    return DialectError("dialect.wave", problem, location=location, hint=hint)


def _describe(value: object) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"`{sanitize(text)}`"
