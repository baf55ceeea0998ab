"""libyaml's complaints in the words of the person who wrote the file."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
from yaml.error import MarkedYAMLError, YAMLError
from yaml.reader import ReaderError

from tidegate.documents.stream import FilePart, place_behind
from tidegate.errors import DocumentError, foreign
from tidegate.model.patterns import late

WORDS = Path(__file__).with_suffix(".json")
_QUOTED = late(r'"(?:\\.|[^"\\])*"|\'(?:\'\'|[^\'])*\'')
_DIRECTIVE = late(r"\{\{|\{%")

_NO_START = "did not find expected <document start>"


class _Words(msgspec.Struct, frozen=True, gc=False):
    """What we say for one problem of libyaml; `opening` points to where the trouble began."""

    problem: str
    hint: str
    opening: bool = False
    code: str = "documents.syntax"


@cache
def _known_words() -> dict[str, _Words]:
    """By what libyaml says."""
    return msgspec.json.decode(WORDS.read_bytes(), type=dict[str, _Words])


def explain(error: YAMLError, part: FilePart) -> DocumentError:
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
        problem = "a tab is used for indentation, and YAML takes only spaces"
        where, hint = part.place(line, column), "replace it by spaces"
        return DocumentError("documents.tab", problem, where=where, hint=hint)
    words = _words_for(problem, character)
    where = part.place(opened.line, opened.column) if words.opening else part.place(line, column)
    return DocumentError(words.code, words.problem, where=where, hint=words.hint)


def is_template(part: FilePart, line: int) -> bool:
    """Whether a line that cannot be read holds `{{` or `{%` outside quotes."""
    return bool(_DIRECTIVE.search(_QUOTED.sub("", part.line(line))))


def template(part: FilePart, line: int) -> DocumentError:
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
    return _known_words().get(problem) or _Words(f"this is not YAML: {foreign(problem)}", "")


def _find_directive(part: FilePart, line: int, problem: str) -> DocumentError | None:
    """A directive is not missed before the end, where no `---` follows: it was cut off there."""
    if problem == _NO_START:
        lines = part.text.split("\n")
        line = next((n for n, text in enumerate(lines) if text.startswith("%")), line)
    if not part.line(line).startswith("%"):
        return None
    problem = "a line starts with `%`, and Kubernetes does not read YAML directives"
    where, hint = part.place(line, 0), "remove the line"
    return DocumentError("documents.directive", problem, where=where, hint=hint)
