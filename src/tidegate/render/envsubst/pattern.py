"""Trimming of what a pattern matches: `*`, `?`, `[a-z]`, `[^a-z]`, and `\\\\` before a character.

Three oddities of Flux are kept. A `*` also matches `/`. Prefixes grow byte by byte, so a trim may
split a character. For a suffix, value and pattern are both reversed character by character, so a
class such as `[ab]` does not work there.
"""

from __future__ import annotations

import re

from tidegate.documents.scalars import replace_invalid_bytes
from tidegate.model.text.lazy_regex import lazy_regex

_CHUNK = lazy_regex(rb"(\**)((?:\\.|\\$|\[(?:\\.|\\$|[^\]\\])*\]?|[^*\\\[])*)", re.DOTALL)


class _BadPatternError(ValueError):
    """A class that is not closed, or a lone backslash."""


def trim_prefix(value: bytes, pattern: bytes, *, longest: bool) -> bytes:
    """Remove the longest or the shortest prefix that matches.

    An invalid pattern removes nothing.

    Like `trimShortestPrefix` and `trimLongestPrefix` in `funcs.go` of fluxcd/pkg/envsubst 1.7.1.
    """
    ends = range(len(value), 0, -1)
    try:
        # The order matters for invalid patterns: Flux notices them only while matching.
        if longest:
            end = next((end for end in ends if _matches(pattern, value[:end])), 0)
        else:
            end = min((end for end in ends if _matches(pattern, value[:end])), default=0)
    except _BadPatternError:
        return value
    return value[end:]


def trim_suffix(value: bytes, pattern: bytes, *, longest: bool) -> bytes:
    """Remove the longest or the shortest suffix that matches.

    Like `trimShortestSuffix`, `trimLongestSuffix` and `reverse` in `funcs.go` of
    fluxcd/pkg/envsubst 1.7.1.
    """
    return _reverse(trim_prefix(_reverse(value), _reverse(pattern), longest=longest))


def _reverse(text: bytes) -> bytes:
    return replace_invalid_bytes(text.decode("utf-8", "surrogateescape"))[::-1].encode()


def _matches(pattern: bytes, name: bytes) -> bool:
    while pattern:
        match = _CHUNK.match(pattern)
        stars, chunk = (match[1], match[2]) if match else (b"", pattern)
        pattern = pattern[len(stars) + len(chunk) :]
        if stars and not chunk:
            return True
        rest = _find_chunk(chunk, name, anywhere=bool(stars), to_the_end=not pattern)
        if rest is None:
            return False
        name = rest
    return not name


def _find_chunk(chunk: bytes, name: bytes, *, anywhere: bool, to_the_end: bool) -> bytes | None:
    """Return what follows the first match of a chunk; None without a match.

    Like `Match` and `matchChunk` in `path/match.go` of fluxcd/pkg/envsubst 1.7.1.
    """
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
                character, name = _first_character(name)
                matched, chunk = _match_class(chunk[1:], character)
                if not matched:
                    return None
            case b"?":
                _, name = _first_character(name)
                chunk = chunk[1:]
            case _:
                chunk = _unescape(chunk)
                if chunk[0] != name[0]:
                    return None
                chunk, name = chunk[1:], name[1:]
    return name


def _match_class(chunk: bytes, character: int) -> tuple[bool, bytes]:
    """Return whether a character is in the class, and what follows the class."""
    negated = chunk.startswith(b"^")
    chunk = chunk[1:] if negated else chunk
    matched, empty = False, True
    while empty or not chunk.startswith(b"]"):
        low, chunk = _class_character(chunk)
        high = low
        if chunk.startswith(b"-"):
            high, chunk = _class_character(chunk[1:])
        matched = matched or low <= character <= high
        empty = False
    return matched != negated, chunk[1:]


def _class_character(chunk: bytes) -> tuple[int, bytes]:
    if chunk[:1] in (b"", b"-", b"]"):
        raise _BadPatternError
    character, rest = _first_character(_unescape(chunk))
    if character < 0 or not rest:
        raise _BadPatternError
    return character, rest


def _unescape(chunk: bytes) -> bytes:
    if not chunk.startswith(b"\\"):
        return chunk
    if len(chunk) == 1:
        raise _BadPatternError
    return chunk[1:]


def _first_character(text: bytes) -> tuple[int, bytes]:
    """Return the first character and the rest; an invalid byte counts as -1."""
    for size in range(1, 5):
        try:
            return ord(text[:size].decode()), text[size:]
        except UnicodeDecodeError:
            continue
        except TypeError:
            break
    return -1, text[1:]
