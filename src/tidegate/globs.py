"""Glob patterns as regular expressions with bounded matching time.

In Argo CD's patterns, `*` matches any text, including slashes; `?` matches one character;
`[a-c]` and `[!a-c]` match one character of a range, or outside it; `{a,b}` matches one of several
patterns; a backslash escapes the next character. In patterns for one file or directory name,
`[a-c_^]` may contain several ranges and characters, and `^` negates like `!`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import takewhile

from tidegate.model.text.lazy_regex import lazy_regex

MAX_ALTERNATIVES = 1_000


def compile_glob(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that matches whole names. Raises ValueError for an invalid pattern.

    Like `Match` in `util/glob/glob.go` of Argo CD 3.5.6.
    """
    regexes = (_to_regex(text, _class_regex) for text in expand_braces(pattern))
    return re.compile("|".join(f"(?:{regex})" for regex in regexes), re.DOTALL)


@lru_cache(maxsize=4096)
def matches_glob(pattern: str, value: str) -> bool:
    """Return whether a pattern matches a whole value; an invalid pattern matches nothing."""
    try:
        return compile_glob(pattern).fullmatch(value) is not None
    except ValueError:
        return False


def compile_name_glob(pattern: str) -> re.Pattern[str]:
    """Compile a pattern for one name of a path, without braces."""
    return re.compile(_to_regex(pattern, _name_class_regex), re.DOTALL)


def expand_braces(pattern: str) -> list[str]:
    """Expand the braces of a pattern to one text per alternative.

    Raises ValueError for an unclosed brace or too many alternatives.
    """
    texts, remaining = [""], pattern
    while remaining:
        piece, braces, remaining = _split_at_brace(remaining)
        texts = [text + piece for text in texts]
        if braces is not None:
            choices = [
                inner for choice in _split_choices(braces) for inner in expand_braces(choice)
            ]
            texts = [text + choice for text in texts for choice in choices]
        if len(texts) > MAX_ALTERNATIVES:
            raise ValueError("too many alternatives")
    return texts


def _split_at_brace(text: str) -> tuple[str, str | None, str]:
    """Return the text before the first braces, their content, and the text after them."""
    start = _find_unescaped(text, "{")
    if start < 0:
        return text, None, ""
    depth, at = 1, start + 1
    while depth:
        if at >= len(text):
            raise ValueError("a brace is not closed")
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 2 if text[at] == "\\" else 1
    return text[:start], text[start + 1 : at - 1], text[at:]


def _find_unescaped(text: str, char: str) -> int:
    at = 0
    while at < len(text):
        if text[at] == char:
            return at
        at += 2 if text[at] == "\\" else 1
    return -1


def _split_choices(text: str) -> list[str]:
    """Split the content of braces at its commas, except for commas in nested braces."""
    choices, depth, start, at = [], 0, 0, 0
    while at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if text[at] == "," and not depth:
            choices.append(text[start:at])
            start = at + 1
        at += 2 if text[at] == "\\" else 1
    return [*choices, text[start:]]


def _to_regex(text: str, read_class: Callable[[str], str]) -> str:
    """Translate a pattern without braces to a regular expression."""
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
            case char:
                pieces[-1] += re.escape(char)
        at += 1
    return join_stars(pieces)


def join_stars(pieces: Sequence[str]) -> str:
    """Join regular expressions with "any text" between them, without backtracking.

    The first match of each piece is final: no other match is tried.
    """
    first, *between = pieces
    last = f".*{between.pop()}" if between else ""
    return first + "".join(f"(?>.*?{piece})" for piece in between) + last


def _class_regex(text: str) -> str:
    negated = text.startswith("!")
    body = text.removeprefix("!")
    if len(body) == 3 and body[1] == "-":  # noqa: PLR2004  (low, dash, high)
        return character_class([(body[0], body[2])], negated=negated)
    return character_class(zip(body, body, strict=True), negated=negated)


def _name_class_regex(text: str) -> str:
    negated = text[:1] in {"!", "^"}
    remaining = [*text[negated:]]
    ranges: list[tuple[str, str]] = []
    while remaining:
        low = high = remaining.pop(0)
        if len(remaining) > 1 and remaining[0] == "-":
            high = remaining[1]
            del remaining[:2]
        ranges.append((low, high))
    return character_class(ranges, negated=negated)


def character_class(ranges: Iterable[tuple[str, str]], *, negated: bool) -> str:
    """Return a regular expression for one character inside the ranges, or outside all of them."""
    spans = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges if low <= high)
    if not spans:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{spans}]"


def matches_path(pattern: str, path: str) -> bool:
    """Return whether a path matches a pattern in which only `**` matches slashes.

    All positions in the pattern are tracked at once, so no text can make matching slow. Raises
    ValueError for an invalid pattern.
    """
    return any(_matches(_tokens(text), path) for text in expand_braces(pattern))


DOUBLE_STAR, STAR = "**", "*"
_TOKEN = lazy_regex(
    r"(?P<far>\*\*+)|(?P<near>\*)|\[(?P<set>.[^\]]*)\]|\\(?P<plain>.)|(?P<one>.)", re.DOTALL
)


def _tokens(text: str) -> list[re.Pattern[str] | str]:
    """Return the tokens of a pattern: a star, or a regular expression for one character."""
    if "[" in text and not re.search(r"\[.[^\]]*\]", text, re.DOTALL):
        raise ValueError("a bracket is not closed")
    tokens: list[re.Pattern[str] | str] = []
    for match in _TOKEN.finditer(text):
        if match["far"] or match["near"]:
            tokens.append(DOUBLE_STAR if match["far"] else STAR)
        elif match["set"]:
            tokens.append(re.compile(_class_regex(match["set"]), re.DOTALL))
        elif match["one"] == "?":
            tokens.append(re.compile("[^/]"))
        else:
            tokens.append(re.compile(re.escape(match["plain"] or match["one"])))
    return tokens


def _matches(tokens: Sequence[re.Pattern[str] | str], text: str) -> bool:
    positions = _skip_stars(tokens, {0})
    for char in text:
        next_positions: set[int] = set()
        for position in positions:
            token = tokens[position] if position < len(tokens) else ""
            if token == DOUBLE_STAR or (token == STAR and char != "/"):
                next_positions.add(position)
            elif isinstance(token, re.Pattern) and token.fullmatch(char):
                next_positions.add(position + 1)
        positions = _skip_stars(tokens, next_positions)
    return len(tokens) in positions


def _skip_stars(tokens: Sequence[re.Pattern[str] | str], positions: set[int]) -> set[int]:
    """Add the positions that are reachable because a star also matches the empty text."""
    reachable = set(positions)
    for position in positions:
        skipped = takewhile(
            lambda index: isinstance(tokens[index], str), range(position, len(tokens))
        )
        reachable.update(index + 1 for index in skipped)
    return reachable
