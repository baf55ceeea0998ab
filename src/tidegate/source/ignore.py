"""Ignore rules of sources: `.sourceignore` files, and rules of the source object.

The syntax is Git's, read as source-controller reads it. That differs from Git: each file is judged
alone, so a file can be re-included from an excluded directory; `**` takes the first directory that
matches and never another one; `[!a]` is no negation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from tidegate.globs import character_class, join_stars
from tidegate.model.text.lazy_regex import lazy_regex

FILE_NAME = ".sourceignore"
ALWAYS_IGNORED = (".git/", ".gitignore", ".gitmodules", ".gitattributes")
IGNORED_WITHOUT_RULES = (
    *("*.jpg", "*.jpeg", "*.gif", "*.png", "*.wmv", "*.flv", "*.tar.gz", "*.zip"),
    *(".github/", ".circleci/", ".travis.yml", ".gitlab-ci.yml", "appveyor.yml", ".drone.yml"),
    *("cloudbuild.yaml", "codeship-services.yml", "codeship-steps.yml"),
    *("**/.goreleaser.yml", "**/.sops.yaml", "**/.flux.yaml"),
)
ANY_DEPTH = "**"
MANIFEST_SUFFIXES = (".yaml", ".yml")
_MAY_BE_IGNORED = lazy_regex(r"/(\.|appveyor|cloudbuild|codeship)")
"""Matches all paths of manifests that the defaults ignore, and few others."""


class IgnoreRule(msgspec.Struct, frozen=True, dict=True):
    """One line of an ignore file."""

    segments: tuple[str, ...]
    """The pattern, split at slashes."""
    directory: tuple[str, ...] = ()
    """Directory that the rule applies to."""
    is_negated: bool = False
    """Whether the rule re-includes paths (`!pattern`)."""
    directories_only: bool = False
    """Whether the rule matches only directories."""

    @cached_property
    def _regexes(self) -> tuple[re.Pattern[str] | None, ...]:
        return tuple(compile_segment(segment) for segment in self.segments)

    @property
    def is_valid(self) -> bool:
        """Whether the rule can match anything."""
        return None not in self._regexes

    def matches(self, path: Sequence[str], *, is_directory: bool) -> bool:
        """Return whether the rule applies to a path."""
        depth = len(self.directory)
        if len(path) <= depth or tuple(path[:depth]) != self.directory:
            return False
        relative_path = path[depth:]
        # A rule without a slash matches a name anywhere in the path.
        is_name = len(self.segments) == 1
        end = (
            _find(self._regexes[0], relative_path, 0)
            if is_name
            else self._end_of_path(relative_path)
        )
        if end is None:
            return False
        return not self.directories_only or is_directory or end < len(relative_path)

    def _end_of_path(self, path: Sequence[str]) -> int | None:
        """Return how many segments of the path the rule matches; None if it does not match."""
        end, matched, any_depth = 0, False, False
        last = len(self.segments) - 1
        for number, segment in enumerate(self.segments):
            if segment == ANY_DEPTH:
                any_depth = number != last
            elif not segment:
                any_depth = False
            else:
                stop = len(path) if any_depth else end + 1
                segment_end = _find(self._regexes[number], path[:stop], end)
                if ANY_DEPTH in segment or segment_end is None:
                    return None
                end, matched, any_depth = segment_end, True, False
        return end if matched else None


def read_rules(text: str, directory: tuple[str, ...] = ()) -> tuple[IgnoreRule, ...]:
    """Return the rules in a text, one per line. `directory` is what they apply to."""
    lines = text.split("\n")
    return tuple(
        _read_rule(line.removesuffix("\r"), directory)
        for line in lines
        if line.strip() and not line.startswith("#")
    )


def is_rule(line: str) -> bool:
    """Return whether a line is one valid rule."""
    rules = read_rules(line)
    return len(rules) == 1 and rules[0].is_valid


def load_rules(root: Path, files: Iterable[str]) -> tuple[IgnoreRule, ...]:
    """Return the rules of every `.sourceignore` among the files, the outermost first.

    Like `LoadIgnorePatterns` in `sourceignore.go` of fluxcd/pkg/sourceignore 0.18.0.
    """
    paths = (tuple(file.split("/")) for file in files)
    rules: list[IgnoreRule] = []
    for path in sorted(path for path in paths if path[-1] == FILE_NAME):
        text = root.joinpath(*path).read_text(encoding="utf-8", errors="replace")
        rules += read_rules(text, directory=path[:-1])
    return tuple(rules)


def with_defaults(rules: Sequence[IgnoreRule]) -> tuple[IgnoreRule, ...]:
    """Add the default rules before the rules; most apply only without rules.

    Like `DefaultPatterns` and `VCSPatterns` in `sourceignore.go` of fluxcd/pkg/sourceignore 0.18.0.
    """
    defaults = ALWAYS_IGNORED if rules else (*ALWAYS_IGNORED, *IGNORED_WITHOUT_RULES)
    return (*read_rules("\n".join(defaults)), *rules)


def ignores_manifests_by_default(files: Iterable[str]) -> bool:
    """Return whether the default rules ignore a manifest among the files."""
    rules = with_defaults(())
    candidates = (
        file
        for file in files
        if file.endswith(MANIFEST_SUFFIXES) and _MAY_BE_IGNORED.search(f"/{file}")
    )
    return any(is_ignored(file, rules) for file in candidates)


def is_ignored(path: str, rules: Sequence[IgnoreRule], *, is_directory: bool = False) -> bool:
    """Return whether a path is ignored: the last rule that matches decides."""
    parts = path.split("/")
    for rule in reversed(rules):
        if rule.matches(parts, is_directory=is_directory):
            return not rule.is_negated
    return False


def filter_files(root: Path, files: Sequence[str], extra: str = "") -> tuple[str, ...]:
    """Return the files that are not ignored. `extra` rules come last. Links are always ignored.

    Like `NewDefaultMatcher` in `sourceignore.go` of fluxcd/pkg/sourceignore 0.18.0.
    """
    rules = with_defaults((*load_rules(root, files), *read_rules(extra)))
    return tuple(
        file
        for file in files
        if not is_ignored(file, rules) and not root.joinpath(file).is_symlink()
    )


def _read_rule(line: str, directory: tuple[str, ...]) -> IgnoreRule:
    is_negated = line.startswith("!")
    text = line[1:] if is_negated else line
    if not text.endswith("\\ "):
        text = text.rstrip(" ")
    directories_only = text.endswith("/")
    segments = tuple(text.removesuffix("/").split("/"))
    return IgnoreRule(segments, directory, is_negated, directories_only)


def _find(regex: re.Pattern[str] | None, path: Sequence[str], start: int) -> int | None:
    """Return the index after the first segment of the path that matches."""
    if regex is None:
        return None
    return next(
        (index + 1 for index in range(start, len(path)) if regex.fullmatch(path[index])), None
    )


_TOKEN = lazy_regex(
    r"(?P<star>\*+)|(?P<one>\?)|\\(?P<escaped>.)|(?P<set>\[\^?(?:(?:\\.|[^\]\\-])(?:-(?:\\.|[^\]\\-]))?)+\])"
    r"|(?P<plain>[^\\\[])",
    re.DOTALL,
)


def compile_segment(segment: str) -> re.Pattern[str] | None:
    """Compile one segment of a pattern; None if it is invalid."""
    pieces, position = [""], 0
    while position < len(segment):
        token = _TOKEN.match(segment, position)
        if token is None:
            return None
        position = token.end()
        if token.lastgroup == "star":
            pieces.append("")
        else:
            pieces[-1] += _token_regex(token)
    return re.compile(join_stars(pieces), re.DOTALL)


def _token_regex(token: re.Match[str]) -> str:
    match token.lastgroup:
        case "one":
            return "."
        case "set":
            return _set_regex(token["set"])
        case _:
            return re.escape(token["escaped"] or token["plain"])


def _set_regex(text: str) -> str:
    negated = text.startswith("[^")
    inside = text[2 if negated else 1 : -1]
    ranges = re.findall(r"(\\.|[^\\])(?:-(\\.|[^\\]))?", inside, re.DOTALL)
    return character_class([(low[-1], (high or low)[-1]) for low, high in ranges], negated=negated)
