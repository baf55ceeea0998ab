"""Waves: Argo CD's annotation, or Helm's weight where that is absent.

What Git says must be a whole number: a wave that is silently taken for another one is worse than a
refusal. What lives is read as Argo CD reads it: whatever is no number does not count.
"""

from __future__ import annotations

from tidegate.dialect.argo.options import Body, notes_of
from tidegate.documents import Document
from tidegate.errors import DialectError, Place, foreign
from tidegate.model.patterns import late
from tidegate.model.reading import mapping

WAVE = "argocd.argoproj.io/sync-wave"
WEIGHT = "helm.sh/hook-weight"
NUMBER = late(r"[+-]?[0-9]{1,40}")
LIMIT = 2**63


def wave_of(document: Document) -> int:
    """The wave an object of Git asks for."""
    notes = mapping(document.body, "metadata", "annotations")
    for name in (WAVE, WEIGHT):
        said = notes.get(name)
        if said is None:
            continue
        wave = _number(said) if isinstance(said, str) else None
        if wave is None:
            raise _no_number(name, said, document.place)
        return wave
    return 0


def live_wave(body: Body) -> int:
    """The wave a living object has."""
    notes = notes_of(body)
    found = (_number(notes[name]) for name in (WAVE, WEIGHT) if name in notes)
    return next((wave for wave in found if wave is not None), 0)


def _number(text: str) -> int | None:
    """What fits into 64 bits, with a sign or without."""
    wave = int(text) if NUMBER.fullmatch(text) else LIMIT
    return wave if -LIMIT <= wave < LIMIT else None


def _no_number(name: str, said: object, place: Place) -> DialectError:
    shown = foreign(said) if isinstance(said, str) else str(said)
    where = Place(place.name, place.line, field=f'metadata.annotations["{name}"]')
    if isinstance(said, int) and not isinstance(said, bool):
        problem = f"`{name}` is the number {shown}, and annotations are texts"
        return DialectError("dialect.wave", problem, where=where, hint=f'write "{shown}" in quotes')
    if not isinstance(said, str):
        shown = type(said).__name__
    problem = f"`{name}` is `{shown}`, which is not a whole number"
    hint = 'write a number in quotes, such as "-1"'
    return DialectError("dialect.wave", problem, where=where, hint=hint)
