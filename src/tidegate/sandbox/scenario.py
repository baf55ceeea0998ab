"""Scenario files: what a simulation is to go through, with a line for each mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from tidegate.documents.decoding import Flaw, decode_one, suggest
from tidegate.errors import FileError, ScenarioError, foreign
from tidegate.knowledge.reader import builtin
from tidegate.model.commit import Commit
from tidegate.model.given import GivenCluster, GivenKind, GivenOperator
from tidegate.model.moment import Ms, parse_moment
from tidegate.model.objects import Json
from tidegate.sandbox.edit_forms import CommitForm, EditForm
from tidegate.sandbox.faults import Fault, TimedFault
from tidegate.sandbox.forms import Behaviour, FaultForm
from tidegate.sandbox.physics.profile import CourseRule


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulation is to go through."""

    seed: int = 0
    start: Ms = Ms(0)
    """When it begins, by its own clock; 0 is when every simulation does."""
    faults: tuple[Fault, ...] = ()
    edits: tuple[TimedFault, ...] = ()
    """What others do to objects."""
    commits: tuple[Commit, ...] = ()
    """What comes into the repository; in the order of their times."""
    behaviours: tuple[CourseRule, ...] = ()
    """What befalls containers; comes after the rules of a profile."""
    given: GivenCluster = GivenCluster()


class _Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    objects: tuple[dict[str, object], ...] = ()
    operators: tuple[str | GivenOperator, ...] = ()
    kinds: tuple[str | GivenKind, ...] = ()
    namespaces: tuple[str, ...] = ()
    names: dict[str, tuple[str, ...]] = {}

    @property
    def seats(self) -> tuple[GivenOperator, ...]:
        return tuple(GivenOperator(one) if isinstance(one, str) else one for one in self.operators)

    @property
    def cluster(self) -> GivenCluster:
        kinds = (GivenKind(one) if isinstance(one, str) else one for one in self.kinds)
        return GivenCluster(
            operators=self.seats,
            kinds=tuple(kinds),
            namespaces=self.namespaces,
            names=self.names,
            objects=cast("tuple[dict[str, Json], ...]", self.objects),
        )


class _ScenarioFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a scenario."""

    seed: int = 0
    start: str = ""
    faults: tuple[FaultForm, ...] = ()
    edits: tuple[EditForm, ...] = ()
    commits: tuple[CommitForm, ...] = ()
    behaviours: tuple[Behaviour, ...] = ()
    given: _Given = _Given()


def read_scenario(text: bytes, name: str, *, operators: Sequence[str] = ()) -> Scenario:
    """Read a scenario file. Raises one ExceptionGroup with an error for each mistake in it.

    `operators` are those that it may name besides the ones that are shipped.
    """
    file = decode_one(
        text, name, _ScenarioFile, noun="scenario", check=lambda file: _flaws(file, operators)
    )
    return Scenario(
        seed=file.seed,
        start=parse_moment(file.start) if file.start else Ms(0),
        faults=tuple(one.fault for one in file.faults),
        edits=tuple(one.edit for one in file.edits),
        commits=tuple(sorted((one.commit(name) for one in file.commits), key=lambda one: one.at)),
        behaviours=tuple(one.rule for one in file.behaviours),
        given=file.given.cluster,
    )


def _flaws(file: _ScenarioFile, operators: Sequence[str]) -> Iterator[Flaw]:
    yield from _wrong_start(file.start)
    for place, fault in enumerate(file.faults):
        for path, error in fault.flaws():
            yield ("faults", place, *path), error
    for key, forms in (("edits", file.edits), ("commits", file.commits)):
        for place, one in enumerate(forms):
            for path, error in one.flaws():
                yield (key, place, *path), error
    given = file.given
    wrong = (*_wrong_objects(given), *_wrong_kinds(given), *_wrong_operators(given, operators))
    for path, error in wrong:
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


def _wrong_kinds(given: _Given) -> Iterator[Flaw]:
    """A kind of Kubernetes' own is there in any case, and a custom one has a group."""
    for place, one in enumerate(given.cluster.kinds):
        if not all((one.kind.group, one.kind.version, one.kind.name)):
            problem = f"`{foreign(one.name)}` is not GROUP/VERSION/KIND"
            hint = "such as cert-manager.io/v1/Certificate"
            yield ("kinds", place), FileError("file.value", problem, hint=hint)


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
