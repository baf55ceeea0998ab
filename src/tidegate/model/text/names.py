"""Resolution of a name that the user gives for a unit or an object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from tidegate.errors import TidegateError, sanitize
from tidegate.model.text.suggest import suggest

NamedT = TypeVar("NamedT")
LIST_UNITS = "list all units with `tidegate units`"


class MakeError(Protocol):
    """A class of errors with its code: `partial(UsageError, "usage.unit")`."""

    def __call__(self, problem: str, *, hint: str) -> TidegateError: ...


def resolve_name(
    name: str,
    candidates: Iterable[tuple[Sequence[str], NamedT]],
    make_error: MakeError,
    *,
    noun: str,
    scope: str = "",
    hint: str = LIST_UNITS,
) -> NamedT:
    """Return the candidate with a name; the last name of a candidate is its full one.

    Raises an error if no candidate or several have the name. `scope`: where they were searched;
    `hint`: how to list them.
    """
    named = [*candidates]
    matches = [(names[-1], candidate) for names, candidate in named if name in names]
    if not matches:
        known = (known_name for names, _ in named for known_name in names)
        raise unknown_name_error(name, known, make_error, noun=noun, scope=scope, hint=hint)
    full_names = dict.fromkeys(full_name for full_name, _ in matches)
    if len(full_names) > 1:
        problem = f"name `{sanitize(name)}` is ambiguous: {', '.join(full_names)}"
        raise make_error(problem, hint="use one of these names")
    if len(matches) > 1:
        problem = f"`{matches[0][0]}` is defined {len(matches)} times{scope}"
        raise make_error(problem, hint="pass a directory with only one of them as PATH")
    return matches[0][1]


def unknown_name_error(
    name: str,
    known: Iterable[str],
    make_error: MakeError,
    *,
    noun: str,
    scope: str = "",
    hint: str = LIST_UNITS,
) -> TidegateError:
    """Return the error about a name that nothing has, with the closest known name."""
    problem = f"{noun} `{sanitize(name)}` not found{scope}"
    return make_error(problem, hint=f"{suggest(name, known)} {hint}".lstrip())
