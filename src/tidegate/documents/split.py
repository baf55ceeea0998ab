"""Splitter from the bytes of a file to the text of each document, as Kubernetes splits.

Kubernetes splits a file at each line that starts with `---`, before it parses YAML; a file that
starts with `{` may also be a sequence of JSON values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

from tidegate.errors import DocumentError, Location
from tidegate.model.text.lazy_regex import lazy_regex

SIZE_LIMIT = 64 * 1024 * 1024
"""Maximum size of a file in bytes."""
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_SEPARATOR = lazy_regex(r"^---([^\n]*)$", re.MULTILINE)
_JSON_SPACE = lazy_regex(r"[ \t\r\n]*")
_ESCAPE = lazy_regex(
    r"\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|\\.",
    re.DOTALL,
)


class DocumentText(msgspec.Struct, frozen=True, gc=False):
    """The text of one document, and the number of lines before it in the file."""

    name: str
    """The name of the file, for errors."""
    number: int
    """The index of the document in its file."""
    lines_before: int
    """Number of lines before the document in its file."""
    text: str
    """The text."""

    def location(self, line: int, column: int) -> Location:
        """Return the location of a line and column of this document, both counted from 0."""
        return Location(self.name, self.lines_before + line + 1, column + 1)

    def line_text(self, number: int) -> str:
        """Return the text of a line, counted from 0.

        Returns an empty text if there is no such line.
        """
        return dict(enumerate(self.text.split("\n", number + 1))).get(number, "").rstrip("\r")


def split_documents(source: str | bytes, name: str) -> tuple[DocumentText, ...]:
    """Split a file into documents. Empty documents are kept, so that indexes are stable.

    Like `splitYAMLDocument` and `NewYAMLOrJSONDecoder` in `pkg/util/yaml/decoder.go` of
    k8s.io/apimachinery 0.36.4.
    """
    if len(source) > SIZE_LIMIT:
        problem = f"the file is larger than {SIZE_LIMIT // 1024**2} MiB"
        raise DocumentError(
            "documents.size", problem, location=Location(name), hint="split the file"
        )
    text = _decode(source, name).removeprefix("\ufeff")
    spans = _json_spans(text)
    if spans is None:
        return tuple(_slice(text, _yaml_spans(text, name), name))
    return tuple(
        msgspec.structs.replace(part, text=_ESCAPE.sub(_join_surrogates, part.text))
        for part in _slice(text, spans, name)
    )


def _decode(source: str | bytes, name: str) -> str:
    encoding = "utf-8"
    try:
        if isinstance(source, str):
            # libyaml takes bytes, so a string must be one that can become bytes.
            return source if source.isascii() else source.encode().decode()
        encoding = "utf-16" if source[:2] in _UTF16_BOMS else "utf-8"
        return source.decode(encoding)
    except UnicodeError as error:
        start = error.start if isinstance(error, UnicodeEncodeError | UnicodeDecodeError) else 0
        before = source[:start]
        text = before if isinstance(before, str) else before.decode(encoding, "replace")
        problem = f"the file is not {encoding.upper()}"
        location, hint = (
            location_after(text, DocumentText(name, 0, 0, "")),
            "save the file as UTF-8",
        )
        raise DocumentError("documents.encoding", problem, location=location, hint=hint) from None


def location_after(before: str, part: DocumentText) -> Location:
    """Return the location after a text at the start of a document."""
    return part.location(before.count("\n"), len(before) - before.rfind("\n") - 1)


def _slice(text: str, spans: list[tuple[int, int]], name: str) -> Iterator[DocumentText]:
    lines, counted = 0, 0
    for number, (start, end) in enumerate(spans):
        lines += text.count("\n", counted, start)
        counted = start
        yield DocumentText(name, number, lines, text[start:end])


def _yaml_spans(text: str, name: str) -> list[tuple[int, int]]:
    spans = []
    start = 0
    for match in _SEPARATOR.finditer(text):
        trailing = match[1].strip()
        if trailing and not trailing.startswith("#"):
            problem = "text after the `---` that separates documents"
            location = location_after(text[: match.start()], DocumentText(name, 0, 0, ""))
            hint = "start a new line after `---`"
            raise DocumentError("documents.separator", problem, location=location, hint=hint)
        spans.append((start, match.start()))
        start = match.end()
    return [*spans, (start, len(text))]


def _json_spans(text: str) -> list[tuple[int, int]] | None:
    """Return start and end of each JSON value of a file. Returns None if the file is not JSON."""
    find_value = json.JSONDecoder().raw_decode
    spans: list[tuple[int, int]] = []
    start = _skip_space(text, 0)
    if not text.startswith("{", start):
        return None
    try:
        while start < len(text):
            _, end = find_value(text, start)
            spans.append((start, end))
            start = _skip_space(text, end)
    except (ValueError, RecursionError):
        return None
    return spans


def _skip_space(text: str, start: int) -> int:
    match = _JSON_SPACE.match(text, start)
    return match.end() if match else start


def _join_surrogates(match: re.Match[str]) -> str:
    """Replace a surrogate pair, which JSON needs above 16 bits, by the single escape of YAML.

    A lone surrogate becomes U+FFFD.
    """
    if match["lone"]:
        return "\\ufffd"
    if not match["high"]:
        return match[0]
    high, low = int(match["high"], 16), int(match["low"], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"
