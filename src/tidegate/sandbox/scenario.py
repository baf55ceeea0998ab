"""Scenario files: what a simulation is to go through, with a line for each mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from tidegate.documents.decoding import Flaw, decode_one, suggest
from tidegate.errors import FileError, ScenarioError, foreign
from tidegate.knowledge.reader import builtin
from tidegate.model.moment import Ms, parse_moment
from tidegate.model.objects import Json
from tidegate.sandbox.faults import Fault
from tidegate.sandbox.forms import Behaviour, FaultForm
from tidegate.sandbox.physics.profile import CourseRule


class GivenOperator(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operator that is in the cluster already; in its usual namespace if none is named."""

    name: str
    namespace: str = ""


class GivenCluster(msgspec.Struct, frozen=True, kw_only=True):
    """What is in the cluster already."""

    objects: tuple[dict[str, Json], ...] = ()
    operators: tuple[GivenOperator, ...] = ()


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulation is to go through."""

    seed: int = 0
    start: Ms = Ms(0)
    """When it begins, by its own clock; 0 is when every simulation does."""
    faults: tuple[Fault, ...] = ()
    behaviours: tuple[CourseRule, ...] = ()
    """What befalls containers; comes after the rules of a profile."""
    given: GivenCluster = GivenCluster()


class _Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    objects: tuple[dict[str, object], ...] = ()
    operators: tuple[str | GivenOperator, ...] = ()

    @property
    def seats(self) -> tuple[GivenOperator, ...]:
        return tuple(GivenOperator(one) if isinstance(one, str) else one for one in self.operators)


class _ScenarioFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a scenario."""

    seed: int = 0
    start: str = ""
    faults: tuple[FaultForm, ...] = ()
    behaviours: tuple[Behaviour, ...] = ()
    given: _Given = _Given()


def read_scenario(text: bytes, name: str, *, operators: Sequence[str] = ()) -> Scenario:
    """Read a scenario file. Raises one ExceptionGroup with an error for each mistake in it.

    `operators` are those that it may name besides the ones that are shipped.
    """
    file = decode_one(
        text, name, _ScenarioFile, noun="scenario", check=lambda file: _flaws(file, operators)
    )
    objects = cast("tuple[dict[str, Json], ...]", file.given.objects)
    return Scenario(
        seed=file.seed,
        start=parse_moment(file.start) if file.start else Ms(0),
        faults=tuple(one.fault for one in file.faults),
        behaviours=tuple(one.rule for one in file.behaviours),
        given=GivenCluster(objects=objects, operators=file.given.seats),
    )


def _flaws(file: _ScenarioFile, operators: Sequence[str]) -> Iterator[Flaw]:
    yield from _wrong_start(file.start)
    for place, fault in enumerate(file.faults):
        for path, error in fault.flaws():
            yield ("faults", place, *path), error
    for path, error in (*_wrong_objects(file.given), *_wrong_operators(file.given, operators)):
        yield ("given", *path), error


def _wrong_start(start: str) -> Iterator[Flaw]:
    try:
        _ = parse_moment(start) if start else None
    except ValueError:
        problem = f"`{foreign(start)}` is no moment"
        hint = "write it like `2026-11-17T22:00:00Z`"
        yield ("start",), FileError("file.value", problem, hint=hint)


def _wrong_objects(given: _Given) -> Iterator[Flaw]:
    for place, one in enumerate(given.objects):
        for key in ("apiVersion", "kind", "metadata"):
            if not one.get(key):
                hint = "write it as for `kubectl apply`"
                missing = FileError("file.missing", f"an object needs `{key}`", hint=hint)
                yield ("objects", place), missing


def _wrong_operators(given: _Given, operators: Sequence[str]) -> Iterator[Flaw]:
    names = [one.name for one in given.seats]
    known = sorted({*operators, *(one.name for one in builtin().operators)}) if names else ()
    for place, name in enumerate(names):
        at = ("operators", place)
        if name not in known:
            problem, hint = f"there is no operator `{foreign(name)}`", suggest(name, known)
            yield at, FileError("file.value", problem, hint=hint)
        elif name in names[:place]:
            problem, hint = f"the operator `{name}` is given twice", "remove one of the two"
            yield at, ScenarioError("scenario.contradiction", problem, hint=hint)
