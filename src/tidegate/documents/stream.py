"""From the bytes of a file to its parts: one part for each document, cut where Kubernetes cuts.

Kubernetes cuts a file at each line that starts with `---`, before YAML is read; a file that starts
with `{` may also be JSON values, one behind the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

from tidegate.errors import DocumentError, Place
from tidegate.model.patterns import late

SIZE_LIMIT = 64 * 1024 * 1024
"""Bytes of one file. Larger ones are refused."""

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_SEPARATOR = late(r"^---([^\n]*)$", re.MULTILINE)
_JSON_SPACE = late(r"[ \t\r\n]*")
_ESCAPE = late(
    r"\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|\\.",
    re.DOTALL,
)


class FilePart(msgspec.Struct, frozen=True, gc=False):
    """The text of one document, and how many lines of the file stand before it."""

    name: str
    number: int
    lines_before: int
    text: str

    def place(self, line: int, column: int) -> Place:
        """Where a line and a column of this part, counted from 0, stand in the file."""
        return Place(self.name, self.lines_before + line + 1, column + 1)

    def line(self, number: int) -> str:
        """The text of a line, counted from 0; empty if there is none."""
        return dict(enumerate(self.text.split("\n", number + 1))).get(number, "").rstrip("\r")


def split(source: str | bytes, name: str) -> tuple[FilePart, ...]:
    """Cut a file into its documents. Empty ones are kept, so that numbers stay what they are."""
    if len(source) > SIZE_LIMIT:
        problem = f"the file is larger than {SIZE_LIMIT // 1024**2} MiB"
        raise DocumentError("documents.size", problem, where=Place(name), hint="split the file")
    text = _decode(source, name).removeprefix("\ufeff")
    spans = _json_spans(text)
    if spans is None:
        return tuple(_cut(text, _yaml_spans(text, name), name))
    return tuple(
        msgspec.structs.replace(part, text=_ESCAPE.sub(_join_surrogates, part.text))
        for part in _cut(text, spans, name)
    )


def _decode(source: str | bytes, name: str) -> str:
    encoding = "utf-8"
    try:
        if isinstance(source, str):
            # libyaml takes bytes, so a string must be one that can become bytes.
            return source if source.isascii() else source.encode().decode()
        encoding = "utf-16" if source[:2] in _UTF16_MARKS else "utf-8"
        return source.decode(encoding)
    except UnicodeError as error:
        start = error.start if isinstance(error, UnicodeEncodeError | UnicodeDecodeError) else 0
        before = source[:start]
        text = before if isinstance(before, str) else before.decode(encoding, "replace")
        problem = f"the file is not {encoding.upper()}"
        where, hint = place_behind(text, FilePart(name, 0, 0, "")), "save the file as UTF-8"
        raise DocumentError("documents.encoding", problem, where=where, hint=hint) from None


def place_behind(before: str, part: FilePart) -> Place:
    """The place behind a piece of text that stands at the start of a part."""
    return part.place(before.count("\n"), len(before) - before.rfind("\n") - 1)


def _cut(text: str, spans: list[tuple[int, int]], name: str) -> Iterator[FilePart]:
    lines, counted = 0, 0
    for number, (start, end) in enumerate(spans):
        lines += text.count("\n", counted, start)
        counted = start
        yield FilePart(name, number, lines, text[start:end])


def _yaml_spans(text: str, name: str) -> list[tuple[int, int]]:
    spans = []
    start = 0
    for match in _SEPARATOR.finditer(text):
        behind = match[1].strip()
        if behind and not behind.startswith("#"):
            problem = "text stands behind the `---` that separates documents"
            where = place_behind(text[: match.start()], FilePart(name, 0, 0, ""))
            hint = "start a new line behind `---`"
            raise DocumentError("documents.separator", problem, where=where, hint=hint)
        spans.append((start, match.start()))
        start = match.end()
    return [*spans, (start, len(text))]


def _json_spans(text: str) -> list[tuple[int, int]] | None:
    """Where each of a file's JSON values starts and ends; None if the file is something else."""
    find_value = json.JSONDecoder().raw_decode
    spans: list[tuple[int, int]] = []
    start = _behind_space(text, 0)
    if not text.startswith("{", start):
        return None
    try:
        while start < len(text):
            _, end = find_value(text, start)
            spans.append((start, end))
            start = _behind_space(text, end)
    except (ValueError, RecursionError):
        return None
    return spans


def _behind_space(text: str, start: int) -> int:
    match = _JSON_SPACE.match(text, start)
    return match.end() if match else start


def _join_surrogates(match: re.Match[str]) -> str:
    """JSON writes one character beyond 16 bits as two escapes, YAML as one; alone they are none."""
    if match["lone"]:
        return "\\ufffd"
    if not match["high"]:
        return match[0]
    high, low = int(match["high"], 16), int(match["low"], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"
