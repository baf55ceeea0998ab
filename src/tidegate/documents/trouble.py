"""libyaml's complaints in the words of the person who wrote the file."""

from __future__ import annotations

import re

import msgspec
from yaml.error import MarkedYAMLError, YAMLError
from yaml.reader import ReaderError

from tidegate.documents.stream import Part, place_behind
from tidegate.errors import DocumentError, Place, foreign

_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\'\'|[^\'])*\'')
_DIRECTIVE = re.compile(r"\{\{|\{%")

_NO_START = "did not find expected <document start>"


class _Words(msgspec.Struct, frozen=True, gc=False):
    """What we say for one problem of libyaml; `opening` points to where the trouble began."""

    problem: str
    hint: str
    opening: bool = False
    code: str = "documents.syntax"


_WORDS = {
    "mapping values are not allowed in this context": _Words(
        "a `:` makes a key where none can stand",
        "check the indentation; put a value that contains `: ` in quotes",
    ),
    "did not find expected key": _Words(
        "the line does not fit the indentation or the value above it",
        "align it with the keys above; if a value goes on behind a quote, quote the whole value",
    ),
    "could not find expected ':'": _Words(
        "a line is neither a `key: value` nor part of the value above it",
        "check the indentation, and that a `:` and a space follow the key",
        opening=True,
    ),
    "did not find expected '-' indicator": _Words(
        "the line does not fit the list above it", "align it with the list's `-`"
    ),
    "block sequence entries are not allowed in this context": _Words(
        "a `-` starts a list where none can stand", "start the list on a line of its own"
    ),
    "mapping keys are not allowed in this context": _Words(
        "a `?` starts a key where none can stand", "put the value in quotes"
    ),
    "did not find expected ',' or '}'": _Words(
        "a `{` is not closed, or a comma is missing behind it",
        "add the `}` or the comma",
        opening=True,
    ),
    "did not find expected ',' or ']'": _Words(
        "a `[` is not closed, or a comma is missing behind it",
        "add the `]` or the comma",
        opening=True,
    ),
    "found unexpected end of stream": _Words(
        "a quote is never closed", "close the quote", opening=True
    ),
    "found unexpected ':'": _Words(
        "a bare value inside `[ ]` or `{ }` ends with `:`", "put the value in quotes"
    ),
    "did not find expected node content": _Words(
        "a value is missing before a `,`, `:` or a closing bracket", "add the value, or `null`"
    ),
    "found unknown escape character": _Words(
        "a `\\` in double quotes stands before a character that it cannot escape",
        "write `\\\\`, or use single quotes",
    ),
    "found unexpected document indicator": _Words(
        "a quote is still open where the document ends", "close the quote", opening=True
    ),
    _NO_START: _Words(
        "text stands behind the end of the document, and Kubernetes never reads it",
        "separate documents by a line `---`",
        code="documents.separator",
    ),
}


def explain(error: YAMLError, part: Part) -> DocumentError:
    """Say what libyaml found in a part, and where."""
    if isinstance(error, ReaderError):
        before = part.text.encode()[: int(error.position)].decode("utf-8", "replace")
        return DocumentError(
            "documents.character",
            f"the character U+{int(error.character):04X} cannot stand in YAML",
            where=place_behind(before, part),
            hint='remove it, or write it as an escape in double quotes, such as `"\\x07"`',
        )
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return DocumentError("documents.syntax", foreign(str(error)), where=part.place(0, 0))
    line, column = error.problem_mark.line, error.problem_mark.column
    opened = error.context_mark or error.problem_mark
    problem = error.problem or ""
    for spot in (opened.line, line):
        if is_template(part, spot):
            return template(part, spot)
    if directive := _find_directive(part, opened.line, problem):
        return directive
    character = part.line(line)[column : column + 1]
    if character == "\t" or "tab character" in problem:
        return _tab(part.place(line, column))
    words = _words_for(problem, character)
    where = part.place(opened.line, opened.column) if words.opening else part.place(line, column)
    return DocumentError(words.code, words.problem, where=where, hint=words.hint)


def is_template(part: Part, line: int) -> bool:
    """Whether a line that cannot be read holds `{{` or `{%` outside quotes."""
    return bool(_DIRECTIVE.search(_QUOTED.sub("", part.line(line))))


def template(part: Part, line: int) -> DocumentError:
    """The file is not YAML yet."""
    return DocumentError(
        "documents.template",
        "the file is a template, as Helm uses them, and not YAML before it is rendered",
        where=part.place(line, 0),
        hint="render it first, or leave the directory of templates out",
    )


def _words_for(problem: str, character: str) -> _Words:
    if problem == "found character that cannot start any token":
        return _Words(f"a value cannot start with `{character}`", "put the value in quotes")
    return _WORDS.get(problem) or _Words(f"this is not YAML: {foreign(problem)}", "")


def _tab(where: Place) -> DocumentError:
    problem = "a tab is used for indentation, and YAML takes only spaces"
    return DocumentError("documents.tab", problem, where=where, hint="replace it by spaces")


def _find_directive(part: Part, line: int, problem: str) -> DocumentError | None:
    """A directive is not missed before the end, where no `---` follows: it was cut off there."""
    if problem == _NO_START:
        lines = part.text.split("\n")
        line = next((n for n, text in enumerate(lines) if text.startswith("%")), line)
    if not part.line(line).startswith("%"):
        return None
    problem = "a line starts with `%`, and Kubernetes does not read YAML directives"
    where, hint = part.place(line, 0), "remove the line"
    return DocumentError("documents.directive", problem, where=where, hint=hint)
