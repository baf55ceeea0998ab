"""Trim what a pattern matches: `*`, `?`, `[a-z]`, `[^a-z]`, and `\\` before a sign.

Three oddities are Flux' own and are kept. A `*` also matches `/`. Prefixes grow byte by byte, so a
trim may cut a character in two. For a suffix the value and the pattern are both turned round, sign
by sign, so a class such as `[ab]` means nothing there.
"""

from __future__ import annotations

import re

from tidegate.documents.scalars import replace_invalid_bytes
from tidegate.model.text.lazy_regex import lazy_regex

_CHUNK = lazy_regex(rb"(\**)((?:\\.|\\$|\[(?:\\.|\\$|[^\]\\])*\]?|[^*\\\[])*)", re.DOTALL)


class _BadPatternError(ValueError):
    """A class that is not closed, or a lone backslash."""


def trim_prefix(value: bytes, pattern: bytes, *, longest: bool) -> bytes:
    """Cut off the longest or the shortest beginning that matches. A bad pattern cuts nothing."""
    ends = range(len(value), 0, -1)
    try:
        # The order shows where a pattern is bad: Flux finds out only on the way.
        if longest:
            end = next((end for end in ends if _matches(pattern, value[:end])), 0)
        else:
            end = min((end for end in ends if _matches(pattern, value[:end])), default=0)
    except _BadPatternError:
        return value
    return value[end:]


def trim_suffix(value: bytes, pattern: bytes, *, longest: bool) -> bytes:
    """Cut off the longest or the shortest end that matches."""
    return _turn(trim_prefix(_turn(value), _turn(pattern), longest=longest))


def _turn(text: bytes) -> bytes:
    return replace_invalid_bytes(text.decode("utf-8", "surrogateescape"))[::-1].encode()


def _matches(pattern: bytes, name: bytes) -> bool:
    while pattern:
        found = _CHUNK.match(pattern)
        stars, chunk = (found[1], found[2]) if found else (b"", pattern)
        pattern = pattern[len(stars) + len(chunk) :]
        if stars and not chunk:
            return True
        rest = _find(chunk, name, anywhere=bool(stars), to_the_end=not pattern)
        if rest is None:
            return False
        name = rest
    return not name


def _find(chunk: bytes, name: bytes, *, anywhere: bool, to_the_end: bool) -> bytes | None:
    """What is left behind the first place where a chunk matches."""
    for start in range(len(name) + 1 if anywhere else 1):
        rest = _match_chunk(chunk, name[start:])
        if rest is not None and not (to_the_end and rest):
            return rest
    return None


def _match_chunk(chunk: bytes, name: bytes) -> bytes | None:
    while chunk:
        if not name:
            return None
        match chunk[:1]:
            case b"[":
                sign, name = _first(name)
                matched, chunk = _match_class(chunk[1:], sign)
                if not matched:
                    return None
            case b"?":
                _, name = _first(name)
                chunk = chunk[1:]
            case _:
                chunk = _unescape(chunk)
                if chunk[0] != name[0]:
                    return None
                chunk, name = chunk[1:], name[1:]
    return name


def _match_class(chunk: bytes, sign: int) -> tuple[bool, bytes]:
    """Whether a sign is in the class, and what follows the class."""
    negated = chunk.startswith(b"^")
    chunk = chunk[1:] if negated else chunk
    matched, empty = False, True
    while empty or not chunk.startswith(b"]"):
        low, chunk = _class_sign(chunk)
        high = low
        if chunk.startswith(b"-"):
            high, chunk = _class_sign(chunk[1:])
        matched = matched or low <= sign <= high
        empty = False
    return matched != negated, chunk[1:]


def _class_sign(chunk: bytes) -> tuple[int, bytes]:
    if chunk[:1] in (b"", b"-", b"]"):
        raise _BadPatternError
    sign, rest = _first(_unescape(chunk))
    if sign < 0 or not rest:
        raise _BadPatternError
    return sign, rest


def _unescape(chunk: bytes) -> bytes:
    if not chunk.startswith(b"\\"):
        return chunk
    if len(chunk) == 1:
        raise _BadPatternError
    return chunk[1:]


def _first(text: bytes) -> tuple[int, bytes]:
    """The first character and the rest; a byte that starts none counts as -1."""
    for size in range(1, 5):
        try:
            return ord(text[:size].decode()), text[size:]
        except UnicodeDecodeError:
            continue
        except TypeError:
            break
    return -1, text[1:]
