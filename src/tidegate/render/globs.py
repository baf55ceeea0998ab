"""Match names against patterns of Argo CD's, and find files by them.

`*` stands for anything, slashes too; `?` for one sign; `[a-c]` and `[!a-c]` for one of some signs,
or none of them; `{a,b}` for one of several patterns; a backslash takes the sign behind it as it is.
In the name of one file or directory, `[a-c_^]` may hold several ranges and signs, and `^` negates
as well as `!`. A pattern cannot make matching slow: the nearest match of each
piece between stars will do, and no other is tried.

In the path of a value file, `**` stands for any number of directories, and does not follow links.
Of what is found, files of a directory come before those further down, and names in their order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tidegate.files import StrayPathError, follow, tidy

MOST_ALTERNATIVES = 1_000
META = frozenset("*?[")
ANY_DEPTH = "**"
MOST_DIRECTORIES = 20_000


def compile_glob(pattern: str) -> re.Pattern[str]:
    """A pattern, for whole names. Raises ValueError for one that is no pattern."""
    shapes = (_shape(text, _class) for text in expand_braces(pattern))
    return re.compile("|".join(f"(?:{shape})" for shape in shapes), re.DOTALL)


def _compile_name(pattern: str) -> re.Pattern[str]:
    """A pattern for one name of a path, without braces."""
    return re.compile(_shape(pattern, _class_of_a_name), re.DOTALL)


def expand_braces(pattern: str) -> list[str]:
    """The pattern without braces: one text for each alternative."""
    texts, rest = [""], pattern
    while rest:
        piece, braces, rest = _until_brace(rest)
        texts = [text + piece for text in texts]
        if braces is not None:
            choices = [inner for choice in _choices(braces) for inner in expand_braces(choice)]
            texts = [text + choice for text in texts for choice in choices]
        if len(texts) > MOST_ALTERNATIVES:
            raise ValueError("too many alternatives")
    return texts


def _until_brace(text: str) -> tuple[str, str | None, str]:
    """The text before a brace, what the braces hold, and the rest."""
    start = _find(text, "{")
    if start < 0:
        return text, None, ""
    depth, at = 1, start + 1
    while depth:
        if at >= len(text):
            raise ValueError("a brace is not closed")
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 2 if text[at] == "\\" else 1
    return text[:start], text[start + 1 : at - 1], text[at:]


def _find(text: str, wanted: str) -> int:
    at = 0
    while at < len(text):
        if text[at] == wanted:
            return at
        at += 2 if text[at] == "\\" else 1
    return -1


def _choices(text: str) -> list[str]:
    """What stands between the commas, except for those in braces further in."""
    choices, depth, start, at = [], 0, 0, 0
    while at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if text[at] == "," and not depth:
            choices.append(text[start:at])
            start = at + 1
        at += 2 if text[at] == "\\" else 1
    return [*choices, text[start:]]


def _shape(text: str, read_class: Callable[[str], str]) -> str:
    """The pattern as a regular expression."""
    pieces, at = [""], 0
    while at < len(text):
        match text[at]:
            case "*":
                pieces.append("")
            case "?":
                pieces[-1] += "."
            case "[":
                end = text.find("]", at + 2)
                if end < 0:
                    raise ValueError("a bracket is not closed")
                pieces[-1] += read_class(text[at + 1 : end])
                at = end
            case "\\" if at + 1 < len(text):
                at += 1
                pieces[-1] += re.escape(text[at])
            case sign:
                pieces[-1] += re.escape(sign)
        at += 1
    first, *between = pieces
    last = f".*{between.pop()}" if between else ""
    nearest = "".join(f"(?>.*?{piece})" for piece in between)
    return first + nearest + last


def _class(text: str) -> str:
    negated = text.startswith("!")
    body = text.removeprefix("!")
    if len(body) == 3 and body[1] == "-":  # noqa: PLR2004  (low, dash, high)
        return _one_of([(body[0], body[2])], negated=negated)
    return _one_of(zip(body, body, strict=True), negated=negated)


def _class_of_a_name(text: str) -> str:
    negated = text[:1] in {"!", "^"}
    rest = [*text[negated:]]
    ranges: list[tuple[str, str]] = []
    while rest:
        low = high = rest.pop(0)
        if len(rest) > 1 and rest[0] == "-":
            high = rest[1]
            del rest[:2]
        ranges.append((low, high))
    return _one_of(ranges, negated=negated)


def _one_of(ranges: Iterable[tuple[str, str]], *, negated: bool) -> str:
    """One sign that is in one of the ranges, or in none of them."""
    spans = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges if low <= high)
    if not spans:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{spans}]"


def is_pattern(text: str) -> bool:
    """Braces alone make no pattern."""
    return not META.isdisjoint(text)


def find_matches(root: Path, pattern: str) -> list[str]:
    """Paths below a directory that fit. Raises ValueError for what is no pattern or leads out."""
    found: dict[str, None] = {}
    for text in expand_braces(pattern):
        names = [name for name in tidy(text.lstrip("/") or ".").split("/") if name != "."]
        for path in _matching(root, [""], names):
            found.setdefault(path)
    return [*found]


def _matching(root: Path, below: list[str], names: list[str]) -> Iterator[str]:
    """What fits, name by name of the pattern."""
    for number, name in enumerate(names):
        is_last = number == len(names) - 1
        if name == ANY_DEPTH:
            below = [deeper for path in below for deeper in _directories(root, path)]
            if is_last:
                below += [file for path in below for file in _named(root, path, _compile_name("*"))]
        elif is_pattern(name):
            glob = _compile_name(name)
            below = [found for path in below for found in _named(root, path, glob)]
        else:
            plain = name.replace("\\", "")
            below = [f"{path}{plain}/" for path in below if os.path.lexists(root / path / plain)]
        if len(below) > MOST_DIRECTORIES:
            raise ValueError("it fits too many paths")
    yield from (path.rstrip("/") for path in below)


def _named(root: Path, path: str, glob: re.Pattern[str]) -> Iterator[str]:
    return (f"{path}{name}/" for name in _names(root, path) if glob.fullmatch(name))


def _directories(root: Path, path: str) -> Iterator[str]:
    """A directory and all below it, each before what it holds."""
    waiting = [path]
    seen = 0
    while waiting:
        here = waiting.pop()
        seen += 1
        if seen > MOST_DIRECTORIES:
            raise ValueError("it reaches too many directories")
        yield here
        paths = [root / here / name for name in _names(root, here)]
        inner = [path.name for path in paths if path.is_dir() and not path.is_symlink()]
        waiting += [f"{here}{name}/" for name in reversed(inner)]


def _names(root: Path, path: str) -> list[str]:
    try:
        directory = follow(root / path, root)
        return sorted((one.name for one in directory.iterdir()), key=os.fsencode)
    except (OSError, StrayPathError):
        return []
