"""Path patterns of Git generators, like Argo CD and Git read them.

Like `filterApps` and `generateParamsForGitFiles` in `applicationset/generators/git.go` of Argo CD
3.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from tidegate.dialect.argo.appset.queries import GeneratorError
from tidegate.errors import sanitize
from tidegate.globs import compile_name_glob, expand_braces

DOUBLE_STAR = "**"
GLOB_CHARS = frozenset("*?[\\")


def list_directories(files: Iterable[str]) -> list[str]:
    """Return the directories that contain files, sorted; hidden ones are skipped."""
    directories: set[tuple[str, ...]] = set()
    for file in files:
        parts = file.split("/")[:-1]
        visible = next(
            (index for index, name in enumerate(parts) if name.startswith(".")), len(parts)
        )
        directories |= {tuple(parts[:depth]) for depth in range(1, visible + 1)}
    return ["/".join(directory) for directory in sorted(directories)]


def compile_directory_pattern(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern whose stars do not match a slash. An invalid pattern matches nothing.

    Go reads the pattern, for which `[!a]` means `!` or `a`.
    """
    try:
        segments = [
            compile_name_glob(segment) for segment in pattern.replace("[!", r"[\!").split("/")
        ]
    except ValueError:
        return lambda _: False

    def is_match(path: str) -> bool:
        names = path.split("/")
        return len(names) == len(segments) and all(
            part.fullmatch(name) for part, name in zip(segments, names, strict=True)
        )

    return is_match


def compile_file_pattern(pattern: str, *, doublestar: bool) -> Callable[[str], bool]:
    """Compile a pattern like `git ls-files`: stars match slashes, directories all their files.

    Raises a GeneratorError for an invalid pattern.
    """
    if not doublestar and (not pattern or pattern.startswith("/")):
        message = f"`{sanitize(pattern)}` is not a path in the repository"
        fix = "write it relative to the root of the repository"
        raise GeneratorError("appset.pattern", message, fix)
    try:
        if doublestar:
            return _compile_doublestar(pattern)
        pattern = pattern.removeprefix("./")
        regex = compile_name_glob(pattern)
    except ValueError as error:
        message = f"`{sanitize(pattern)}` is not a valid pattern: {error}"
        raise GeneratorError("appset.pattern", message, "correct the pattern") from None
    prefix = pattern.rstrip("/")
    if GLOB_CHARS & set(pattern):
        return lambda path: regex.fullmatch(path) is not None
    return lambda path: prefix in {"", ".", path} or path.startswith(f"{prefix}/")


def literal_prefix(pattern: str) -> str:
    """Return the directories of a pattern before its first wildcard."""
    parts = pattern.split("/")
    literal = next(
        (index for index, part in enumerate(parts) if GLOB_CHARS & set(part)), len(parts)
    )
    return "/".join(parts[:literal]) or "."


def _compile_doublestar(pattern: str) -> Callable[[str], bool]:
    choices = [choice.removeprefix("/").split("/") for choice in expand_braces(pattern)]
    return lambda path: any(_matches_segments(choice, path.split("/")) for choice in choices)


def _matches_segments(pattern: Sequence[str], names: Sequence[str]) -> bool:
    @cache
    def match_from(index: int, name_index: int) -> bool:
        if index == len(pattern):
            return name_index == len(names)
        if pattern[index] == DOUBLE_STAR:
            return match_from(index + 1, name_index) or (
                name_index < len(names) and match_from(index, name_index + 1)
            )
        is_match = name_index < len(names) and compile_name_glob(pattern[index]).fullmatch(
            names[name_index]
        )
        return bool(is_match) and match_from(index + 1, name_index + 1)

    return match_from(0, 0)
