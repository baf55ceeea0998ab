"""Scenario files: faults, edits and commits of a simulation. Every mistake has its line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from tidegate.documents.decoder import FileProblem, decode_single
from tidegate.errors import FileError, ScenarioError, sanitize
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.model.k8s.objects import Json
from tidegate.model.simulation.commit import Commit
from tidegate.model.simulation.preinstalled import GivenCluster, GivenKind, GivenOperator
from tidegate.model.text.suggest import suggest_one_of
from tidegate.model.times import Ms, parse_timestamp
from tidegate.sandbox.faults import Fault, TimedFault
from tidegate.sandbox.node.profile import ContainerRule
from tidegate.sandbox.scenario_edits import CommitSpec, EditSpec
from tidegate.sandbox.scenario_faults import BehaviourSpec, FaultSpec


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """The events and conditions of a simulation."""

    seed: int = 0
    """The seed of generated names and random faults."""
    start: Ms = Ms(0)
    """Start of the simulated clock; 0 for the default start."""
    faults: tuple[Fault, ...] = ()
    """The faults."""
    edits: tuple[TimedFault, ...] = ()
    """Writes of other clients to objects."""
    commits: tuple[Commit, ...] = ()
    """Commits to the repository, in the order of their times."""
    behaviours: tuple[ContainerRule, ...] = ()
    """Behavior of containers; these rules come after those of a profile."""
    given: GivenCluster = GivenCluster()
    """Objects and operators that exist from the start."""


class _GivenSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `given` of a scenario file."""

    objects: tuple[dict[str, object], ...] = ()
    """Manifests of existing objects."""
    operators: tuple[str | GivenOperator, ...] = ()
    """Installed operators."""
    kinds: tuple[str | GivenKind, ...] = ()
    """Served custom kinds."""
    namespaces: tuple[str, ...] = ()
    """Existing namespaces."""
    names: dict[str, tuple[str, ...]] = {}
    """Names of existing objects, by kind."""

    @property
    def given_operators(self) -> tuple[GivenOperator, ...]:
        return tuple(
            GivenOperator(operator) if isinstance(operator, str) else operator
            for operator in self.operators
        )

    @property
    def cluster(self) -> GivenCluster:
        kinds = (GivenKind(kind) if isinstance(kind, str) else kind for kind in self.kinds)
        return GivenCluster(
            operators=self.given_operators,
            kinds=tuple(kinds),
            namespaces=self.namespaces,
            names=self.names,
            objects=cast("tuple[dict[str, Json], ...]", self.objects),
        )


class _ScenarioFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a scenario file."""

    seed: int = 0
    """The seed of generated names and random faults."""
    start: str = ""
    """Start of the simulated clock; empty for the default start."""
    faults: tuple[FaultSpec, ...] = ()
    """The faults."""
    edits: tuple[EditSpec, ...] = ()
    """Writes of other clients to objects."""
    commits: tuple[CommitSpec, ...] = ()
    """Commits to the repository."""
    behaviours: tuple[BehaviourSpec, ...] = ()
    """Behavior of containers."""
    given: _GivenSection = _GivenSection()
    """Objects and operators that exist from the start."""


def read_scenario(text: bytes, name: str, *, operators: Sequence[str] = ()) -> Scenario:
    """Read a scenario file. Raises one ExceptionGroup with an error for each mistake in it.

    `operators` are names that the file may use besides those of the built-in rows.
    """
    file = decode_single(
        text, name, _ScenarioFile, noun="scenario", check=lambda file: _problems(file, operators)
    )
    return Scenario(
        seed=file.seed,
        start=parse_timestamp(file.start) if file.start else Ms(0),
        faults=tuple(fault.fault for fault in file.faults),
        edits=tuple(edit.edit for edit in file.edits),
        commits=tuple(
            sorted(
                (commit.to_commit(name) for commit in file.commits), key=lambda commit: commit.at
            )
        ),
        behaviours=tuple(behaviour.rule for behaviour in file.behaviours),
        given=file.given.cluster,
    )


def _problems(file: _ScenarioFile, operators: Sequence[str]) -> Iterator[FileProblem]:
    yield from _start_problems(file.start)
    for index, fault in enumerate(file.faults):
        for path, error in fault.find_problems():
            yield ("faults", index, *path), error
    for key, items in (("edits", file.edits), ("commits", file.commits)):
        for index, item in enumerate(items):
            for path, error in item.find_problems():
                yield (key, index, *path), error
    given = file.given
    problems = (
        *_object_problems(given),
        *_kind_problems(given),
        *_operator_problems(given, operators),
    )
    for path, error in problems:
        yield ("given", *path), error


def _start_problems(start: str) -> Iterator[FileProblem]:
    try:
        _ = parse_timestamp(start) if start else None
    except ValueError:
        problem = f"`{sanitize(start)}` is not a timestamp"
        hint = "write it like `2026-11-17T22:00:00Z`"
        yield ("start",), FileError("file.value", problem, hint=hint)


def _object_problems(given: _GivenSection) -> Iterator[FileProblem]:
    for index, body in enumerate(given.objects):
        for key in ("apiVersion", "kind", "metadata"):
            if not body.get(key):
                hint = "write it as for `kubectl apply`"
                error = FileError("file.missing", f"an object needs `{key}`", hint=hint)
                yield ("objects", index), error


def _kind_problems(given: _GivenSection) -> Iterator[FileProblem]:
    """Yield a problem for each kind that is not `group/version/Kind`.

    Kinds of the core group are rejected as well: they always exist.
    """
    for index, kind in enumerate(given.cluster.kinds):
        if not all((kind.kind.group, kind.kind.version, kind.kind.name)):
            problem = f"`{sanitize(kind.name)}` is not GROUP/VERSION/KIND"
            hint = "such as cert-manager.io/v1/Certificate"
            yield ("kinds", index), FileError("file.value", problem, hint=hint)


def _operator_problems(given: _GivenSection, operators: Sequence[str]) -> Iterator[FileProblem]:
    names = [operator.name for operator in given.given_operators]
    known_names = (
        sorted({*operators, *(operator.name for operator in load_builtin_knowledge().operators)})
        if names
        else ()
    )
    for index, name in enumerate(names):
        path = ("operators", index)
        if name not in known_names:
            problem, hint = (
                f"unknown operator `{sanitize(name)}`",
                suggest_one_of(name, known_names),
            )
            yield path, FileError("file.value", problem, hint=hint)
        elif name in names[:index]:
            problem, hint = f"the operator `{name}` is given twice", "remove one of the two"
            yield path, ScenarioError("scenario.contradiction", problem, hint=hint)
