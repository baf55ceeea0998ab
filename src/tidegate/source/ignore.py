"""Which files of a source count: `.sourceignore` files and rules given with the source.

The rules look like Git's, and are read as the source controller reads them, which is not quite
as Git does: every file is judged alone, so a file can be taken back from a directory that is left
out; `**` takes the first directory that fits and never another one; `[!a]` is no negation.
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
ALWAYS_LEFT_OUT = (".git/", ".gitignore", ".gitmodules", ".gitattributes")
LEFT_OUT_WITHOUT_RULES = (
    *("*.jpg", "*.jpeg", "*.gif", "*.png", "*.wmv", "*.flv", "*.tar.gz", "*.zip"),
    *(".github/", ".circleci/", ".travis.yml", ".gitlab-ci.yml", "appveyor.yml", ".drone.yml"),
    *("cloudbuild.yaml", "codeship-services.yml", "codeship-steps.yml"),
    *("**/.goreleaser.yml", "**/.sops.yaml", "**/.flux.yaml"),
)
ANY_DEPTH = "**"
TEXTS = (".yaml", ".yml")
_MARKED = lazy_regex(r"/(\.|appveyor|cloudbuild|codeship)")
"""In all paths of texts that the defaults leave out, and in few others."""


class IgnoreRule(msgspec.Struct, frozen=True, dict=True):
    """One line: which paths below `below` it is about, and whether it takes them back."""

    segments: tuple[str, ...]
    below: tuple[str, ...] = ()
    takes_back: bool = False
    directories_only: bool = False

    @cached_property
    def _shapes(self) -> tuple[re.Pattern[str] | None, ...]:
        return tuple(compile_segment(segment) for segment in self.segments)

    @property
    def is_sound(self) -> bool:
        """Whether there is anything that it could cover."""
        return None not in self._shapes

    def covers(self, path: Sequence[str], *, is_directory: bool) -> bool:
        depth = len(self.below)
        if len(path) <= depth or tuple(path[:depth]) != self.below:
            return False
        inside = path[depth:]
        # A rule without a slash is about a name, wherever in the path it stands.
        is_name = len(self.segments) == 1
        end = _find(self._shapes[0], inside, 0) if is_name else self._end_of_path(inside)
        if end is None:
            return False
        return not self.directories_only or is_directory or end < len(inside)

    def _end_of_path(self, path: Sequence[str]) -> int | None:
        """How many parts of the path the rule used up; nothing if it does not fit."""
        end, matched, anywhere = 0, False, False
        last = len(self.segments) - 1
        for number, segment in enumerate(self.segments):
            if segment == ANY_DEPTH:
                anywhere = number != last
            elif not segment:
                anywhere = False
            else:
                stop = len(path) if anywhere else end + 1
                found = _find(self._shapes[number], path[:stop], end)
                if ANY_DEPTH in segment or found is None:
                    return None
                end, matched, anywhere = found, True, False
        return end if matched else None


def read_rules(text: str, below: tuple[str, ...] = ()) -> tuple[IgnoreRule, ...]:
    """The rules in a text, one per line. `below` is the directory that they are about."""
    lines = text.split("\n")
    return tuple(
        _read_rule(line.removesuffix("\r"), below)
        for line in lines
        if line.strip() and not line.startswith("#")
    )


def is_rule(line: str) -> bool:
    """Whether a line is one rule, and written as it should be."""
    rules = read_rules(line)
    return len(rules) == 1 and rules[0].is_sound


def load_rules(root: Path, files: Iterable[str]) -> tuple[IgnoreRule, ...]:
    """The rules of every `.sourceignore` among the files, the outermost first."""
    places = (tuple(file.split("/")) for file in files)
    rules: list[IgnoreRule] = []
    for place in sorted(place for place in places if place[-1] == FILE_NAME):
        text = root.joinpath(*place).read_text(encoding="utf-8", errors="replace")
        rules += read_rules(text, below=place[:-1])
    return tuple(rules)


def with_defaults(rules: Sequence[IgnoreRule]) -> tuple[IgnoreRule, ...]:
    """Rules that are always there come first; most defaults only count where there are no rules."""
    left_out = ALWAYS_LEFT_OUT if rules else (*ALWAYS_LEFT_OUT, *LEFT_OUT_WITHOUT_RULES)
    return (*read_rules("\n".join(left_out)), *rules)


def ignores_manifests_by_default(files: Iterable[str]) -> bool:
    """Whether the defaults leave something out that a build would read."""
    rules = with_defaults(())
    texts = (one for one in files if one.endswith(TEXTS) and _MARKED.search(f"/{one}"))
    return any(is_ignored(one, rules) for one in texts)


def is_ignored(path: str, rules: Sequence[IgnoreRule], *, is_directory: bool = False) -> bool:
    """Whether a path is left out: the last rule that covers it decides."""
    parts = path.split("/")
    for rule in reversed(rules):
        if rule.covers(parts, is_directory=is_directory):
            return not rule.takes_back
    return False


def filter_files(root: Path, files: Sequence[str], extra: str = "") -> tuple[str, ...]:
    """The files that count, with `extra` rules behind those of the tree. Links never do."""
    rules = with_defaults((*load_rules(root, files), *read_rules(extra)))
    return tuple(
        file
        for file in files
        if not is_ignored(file, rules) and not root.joinpath(file).is_symlink()
    )


def _read_rule(line: str, below: tuple[str, ...]) -> IgnoreRule:
    takes_back = line.startswith("!")
    text = line[1:] if takes_back else line
    if not text.endswith("\\ "):
        text = text.rstrip(" ")
    directories_only = text.endswith("/")
    segments = tuple(text.removesuffix("/").split("/"))
    return IgnoreRule(segments, below, takes_back, directories_only)


def _find(shape: re.Pattern[str] | None, path: Sequence[str], start: int) -> int | None:
    """The number behind the first part of the path that has this shape."""
    if shape is None:
        return None
    return next((at + 1 for at in range(start, len(path)) if shape.fullmatch(path[at])), None)


_TOKEN = lazy_regex(
    r"(?P<star>\*+)|(?P<one>\?)|\\(?P<escaped>.)|(?P<set>\[\^?(?:(?:\\.|[^\]\\-])(?:-(?:\\.|[^\]\\-]))?)+\])"
    r"|(?P<plain>[^\\\[])",
    re.DOTALL,
)


def compile_segment(segment: str) -> re.Pattern[str] | None:
    """One part of a path as a regular expression; nothing for what is written wrongly."""
    pieces, at = [""], 0
    while at < len(segment):
        token = _TOKEN.match(segment, at)
        if token is None:
            return None
        at = token.end()
        if token.lastgroup == "star":
            pieces.append("")
        else:
            pieces[-1] += _expression(token)
    return re.compile(join_stars(pieces), re.DOTALL)


def _expression(token: re.Match[str]) -> str:
    match token.lastgroup:
        case "one":
            return "."
        case "set":
            return _set_expression(token["set"])
        case _:
            return re.escape(token["escaped"] or token["plain"])


def _set_expression(text: str) -> str:
    negated = text.startswith("[^")
    inside = text[2 if negated else 1 : -1]
    ranges = re.findall(r"(\\.|[^\\])(?:-(\\.|[^\\]))?", inside, re.DOTALL)
    return character_class([(low[-1], (high or low)[-1]) for low, high in ranges], negated=negated)
