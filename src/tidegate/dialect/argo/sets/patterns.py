"""Patterns of paths in a Git repository, as Argo CD and Git read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from tidegate.dialect.argo.sets.asking import Fault
from tidegate.errors import foreign
from tidegate.globs import compile_name, expand_braces

DEEP = "**"
SIGNS = frozenset("*?[\\")


def directories_of(files: Iterable[str]) -> list[str]:
    """The directories that hold files, as one walks through them; hidden ones are passed over."""
    found: set[tuple[str, ...]] = set()
    for file in files:
        parts = file.split("/")[:-1]
        shown = next((at for at, one in enumerate(parts) if one.startswith(".")), len(parts))
        found |= {tuple(parts[:depth]) for depth in range(1, shown + 1)}
    return ["/".join(one) for one in sorted(found)]


def directory_pattern(pattern: str) -> Callable[[str], bool]:
    """No star reaches over a slash. What is no pattern matches nothing.

    It is Go that reads it, to whom `[!a]` is one of the two.
    """
    try:
        parts = [compile_name(one) for one in pattern.replace("[!", r"[\!").split("/")]
    except ValueError:
        return lambda _: False

    def is_meant(path: str) -> bool:
        names = path.split("/")
        return len(names) == len(parts) and all(
            part.fullmatch(name) for part, name in zip(parts, names, strict=True)
        )

    return is_meant


def file_pattern(pattern: str, *, doublestar: bool) -> Callable[[str], bool]:
    """As `git ls-files` reads it: stars reach over slashes, and a directory is all files in it."""
    if not doublestar and (not pattern or pattern.startswith("/")):
        said = f"`{foreign(pattern)}` is no path of the repository"
        raise Fault("argo.set-pattern", said, "write it from the top of the repository")
    try:
        if doublestar:
            return _doublestar(pattern)
        pattern = pattern.removeprefix("./")
        whole = compile_name(pattern)
    except ValueError as error:
        said = f"`{foreign(pattern)}` is no pattern: {error}"
        raise Fault("argo.set-pattern", said, "correct it") from None
    start = pattern.rstrip("/")
    if SIGNS & set(pattern):
        return lambda path: whole.fullmatch(path) is not None
    return lambda path: start in {"", ".", path} or path.startswith(f"{start}/")


def literal_start(pattern: str) -> str:
    """The directories of a pattern before its first star."""
    parts = pattern.split("/")
    plain = next((at for at, one in enumerate(parts) if SIGNS & set(one)), len(parts))
    return "/".join(parts[:plain]) or "."


def _doublestar(pattern: str) -> Callable[[str], bool]:
    choices = [one.removeprefix("/").split("/") for one in expand_braces(pattern)]
    return lambda path: any(_goes_along(one, path.split("/")) for one in choices)


def _goes_along(pattern: Sequence[str], names: Sequence[str]) -> bool:
    @cache
    def fits(at: int, name: int) -> bool:
        if at == len(pattern):
            return name == len(names)
        if pattern[at] == DEEP:
            return fits(at + 1, name) or (name < len(names) and fits(at, name + 1))
        is_there = name < len(names) and compile_name(pattern[at]).fullmatch(names[name])
        return bool(is_there) and fits(at + 1, name + 1)

    return fits(0, 0)
