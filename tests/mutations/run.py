"""Linting of mutated repositories, and the comparison with the original ones."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path

import msgspec

# Importing a module of operators registers them.
from tests.mutations import argocd, flux, harmless, objects
from tests.mutations.operator import OPERATORS
from tests.mutations.repository import Change, Repository
from tests.support.in_process_command import run_in_process

OPERATOR_MODULES = (objects, argocd, flux, harmless)
REPORTED = frozenset({"error", "warning"})


class Mutation(msgspec.Struct, frozen=True):
    """One change of one repository."""

    operator: str
    repository: str
    change: Change


class Occurrence(msgspec.Struct, frozen=True):
    """Another place of a finding."""

    message: str


class LintFinding(msgspec.Struct, frozen=True, rename="camel"):
    """A finding in the JSON output of `lint`."""

    code: str
    severity: str
    message: str
    file: str = ""
    fix: str = ""
    steps: tuple[str, ...] = msgspec.field(default=(), name="story")
    same_cause: tuple[Occurrence, ...] = ()

    @property
    def text(self) -> str:
        others = (item.message for item in self.same_cause)
        return " ".join((self.message, self.file, self.fix, *self.steps, *others))


class LintDocument(msgspec.Struct, frozen=True):
    """The JSON output of `lint`."""

    findings: tuple[LintFinding, ...]


class Outcome(msgspec.Struct, frozen=True):
    """A mutation, and the findings that the original repository does not have."""

    mutation: Mutation
    new_findings: tuple[LintFinding, ...]
    is_expected: bool
    """A breaking mutation is reported with its cause; a harmless one causes no alarm."""
    crash: str = ""


def choose_mutations(
    repositories: Iterable[Repository], operators: Sequence[str], places: int, seed: int
) -> list[Mutation]:
    """Return mutations of some operators, at most `places` of each sort, unless 0.

    Each operator has as many as the others, if it has enough places.
    """
    generator = random.Random(seed)
    repositories = [*repositories]
    chosen: list[Mutation] = []
    for is_breaking in (True, False):
        names = [name for name in operators if OPERATORS[name].is_breaking == is_breaking]
        by_operator = [_mutations_of(name, repositories) for name in names]
        for mutations in by_operator:
            generator.shuffle(mutations)
        in_turn = [mutation for turn in zip_longest(*by_operator) for mutation in turn if mutation]
        chosen += sorted(in_turn[: places or None], key=lambda item: names.index(item.operator))
    return chosen


def _mutations_of(name: str, repositories: Iterable[Repository]) -> list[Mutation]:
    return [
        Mutation(name, repository.name, change)
        for repository in repositories
        for change in OPERATORS[name].apply(repository)
    ]


def run_mutations(
    repositories: Iterable[Repository], mutations: Sequence[Mutation], *, processes: int
) -> list[Outcome]:
    """Return the outcome of each mutation, in this order."""
    by_name = {repository.name: repository for repository in repositories}
    used = dict.fromkeys(mutation.repository for mutation in mutations)
    # A fork of a process with threads may hang; Python 3.12 warns about it.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        originals = pool.map(lint_changed, (by_name[name] for name in used), ({} for _ in used))
        baseline = dict(zip(used, originals, strict=True))
        changed = pool.map(
            lint_changed,
            (by_name[mutation.repository] for mutation in mutations),
            (mutation.change.files for mutation in mutations),
            chunksize=4,
        )
        return [
            judge(mutation, baseline[mutation.repository], result)
            for mutation, result in zip(mutations, changed, strict=True)
        ]


def lint_changed(
    repository: Repository, changes: dict[str, str | None]
) -> tuple[LintFinding, ...] | str:
    """Return the errors and warnings of a changed repository, or the output of a crash."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / repository.name
        repository.write_to(root, changes)
        environment = {"HOME": _user_home().name, "PATH": "/usr/bin:/bin"}
        run = run_in_process(root, environment, ("lint", ".", "--offline", "-o", "json"))
        try:
            document = msgspec.json.decode(run.stdout, type=LintDocument)
        except msgspec.DecodeError:
            return run.stderr or run.stdout or f"exit code {run.code}"
    return tuple(finding for finding in document.findings if finding.severity in REPORTED)


@cache
def _user_home() -> tempfile.TemporaryDirectory[str]:
    """Return the home of this process; most units of a changed repository are in its cache."""
    return tempfile.TemporaryDirectory()


def judge(
    mutation: Mutation,
    original: tuple[LintFinding, ...] | str,
    changed: tuple[LintFinding, ...] | str,
) -> Outcome:
    """Return whether the new findings are those that the operator expects."""
    if isinstance(original, str) or isinstance(changed, str):
        return Outcome(mutation, (), is_expected=False, crash=str(changed))
    operator = OPERATORS[mutation.operator]
    new = tuple(_new_findings(original, changed))
    if not operator.is_breaking:
        return Outcome(mutation, new, is_expected=not new)
    names = mutation.change.names
    is_reported = any(
        finding.code in operator.codes
        and (not names or any(name in finding.text for name in names))
        for finding in new
    )
    return Outcome(mutation, new, is_expected=is_reported)


def _new_findings(
    original: Iterable[LintFinding], changed: Iterable[LintFinding]
) -> Iterator[LintFinding]:
    """Yield findings that were not there before; a code with the same count is not new.

    A message may contain a wave or a line that moved: if a message is new, but the number of
    findings of its code is the same, the finding counts as moved when its file had that code.
    """
    known = Counter((finding.code, finding.message) for finding in original)
    for finding in changed:
        key = (finding.code, finding.message)
        if known[key]:
            known[key] -= 1
        else:
            yield finding
