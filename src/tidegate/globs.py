"""Patterns of names, as regular expressions that no name can make slow.

In Argo CD's patterns, `*` stands for anything, slashes too; `?` for one sign; `[a-c]` and `[!a-c]`
for one of some signs, or none of them; `{a,b}` for one of several patterns; a backslash takes the
sign behind it as it is. In the name of one file or directory, `[a-c_^]` may hold several ranges and
signs, and `^` negates as well as `!`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

from tidegate.model.patterns import late

MOST_ALTERNATIVES = 1_000


def compile_glob(pattern: str) -> re.Pattern[str]:
    """A pattern, for whole names. Raises ValueError for one that is no pattern."""
    shapes = (_shape(text, _class) for text in expand_braces(pattern))
    return re.compile("|".join(f"(?:{shape})" for shape in shapes), re.DOTALL)


def compile_name(pattern: str) -> re.Pattern[str]:
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
    return join_stars(pieces)


def join_stars(pieces: Sequence[str]) -> str:
    """Pieces with anything between them: the nearest match of each will do, no other is tried."""
    first, *between = pieces
    last = f".*{between.pop()}" if between else ""
    return first + "".join(f"(?>.*?{piece})" for piece in between) + last


def _class(text: str) -> str:
    negated = text.startswith("!")
    body = text.removeprefix("!")
    if len(body) == 3 and body[1] == "-":  # noqa: PLR2004  (low, dash, high)
        return one_of([(body[0], body[2])], negated=negated)
    return one_of(zip(body, body, strict=True), negated=negated)


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
    return one_of(ranges, negated=negated)


def one_of(ranges: Iterable[tuple[str, str]], *, negated: bool) -> str:
    """One sign that is in one of the ranges, or in none of them."""
    spans = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges if low <= high)
    if not spans:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{spans}]"


def fits_path(pattern: str, path: str) -> bool:
    """Whether a pattern fits whose `*` and `?` do not reach over slashes, while `**` does.

    All ways through the pattern are followed at once, so that no text can make it slow. Raises
    ValueError for one that is no pattern.
    """
    return any(_goes_through(_steps(text), path) for text in expand_braces(pattern))


FAR, NEAR = "**", "*"
_SIGN = late(
    r"(?P<far>\*\*+)|(?P<near>\*)|\[(?P<set>.[^\]]*)\]|\\(?P<plain>.)|(?P<one>.)", re.DOTALL
)


def _steps(text: str) -> list[re.Pattern[str] | str]:
    """A star, or what one sign must be."""
    if "[" in text and not re.search(r"\[.[^\]]*\]", text, re.DOTALL):
        raise ValueError("a bracket is not closed")
    steps: list[re.Pattern[str] | str] = []
    for found in _SIGN.finditer(text):
        if found["far"] or found["near"]:
            steps.append(FAR if found["far"] else NEAR)
        elif found["set"]:
            steps.append(re.compile(_class(found["set"]), re.DOTALL))
        elif found["one"] == "?":
            steps.append(re.compile("[^/]"))
        else:
            steps.append(re.compile(re.escape(found["plain"] or found["one"])))
    return steps


def _goes_through(steps: Sequence[re.Pattern[str] | str], text: str) -> bool:
    at = _beyond_stars(steps, {0})
    for sign in text:
        further: set[int] = set()
        for place in at:
            step = steps[place] if place < len(steps) else ""
            if step == FAR or (step == NEAR and sign != "/"):
                further.add(place)
            elif isinstance(step, re.Pattern) and step.fullmatch(sign):
                further.add(place + 1)
        at = _beyond_stars(steps, further)
    return len(steps) in at


def _beyond_stars(steps: Sequence[re.Pattern[str] | str], at: set[int]) -> set[int]:
    """A star may also stand for nothing."""
    found = set(at)
    for place in at:
        beyond = takewhile(lambda one: isinstance(steps[one], str), range(place, len(steps)))
        found.update(one + 1 for one in beyond)
    return found
