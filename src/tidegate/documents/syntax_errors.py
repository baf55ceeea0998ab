"""Readable messages for syntax errors of libyaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
from yaml.error import MarkedYAMLError, YAMLError
from yaml.reader import ReaderError

from tidegate.documents.split import DocumentText, location_after
from tidegate.errors import DocumentError, sanitize
from tidegate.model.text.lazy_regex import lazy_regex

MESSAGES_FILE = Path(__file__).with_suffix(".json")
_QUOTED = lazy_regex(r'"(?:\\.|[^"\\])*"|\'(?:\'\'|[^\'])*\'')
_DIRECTIVE = lazy_regex(r"\{\{|\{%")
_NO_START = "did not find expected <document start>"


class _Message(msgspec.Struct, frozen=True, gc=False):
    """The message for one problem of libyaml."""

    problem: str
    """The message for people."""
    hint: str
    """Hint for the user."""
    opening: bool = False
    """Whether the location is where the enclosing construct starts."""
    code: str = "documents.syntax"
    """Error code."""


@cache
def _load_messages() -> dict[str, _Message]:
    """Return the messages by the text of libyaml's problem."""
    return msgspec.json.decode(MESSAGES_FILE.read_bytes(), type=dict[str, _Message])


def explain_syntax_error(error: YAMLError, part: DocumentText) -> DocumentError:
    """Return the DocumentError for a libyaml error."""
    if isinstance(error, ReaderError):
        before = part.text.encode()[: int(error.position)].decode("utf-8", "replace")
        return DocumentError(
            "documents.character",
            f"the character U+{int(error.character):04X} is not allowed in YAML",
            location=location_after(before, part),
            hint='remove it, or write it as an escape in double quotes, such as `"\\x07"`',
        )
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return DocumentError("documents.syntax", sanitize(str(error)), location=part.location(0, 0))
    line, column = error.problem_mark.line, error.problem_mark.column
    context = error.context_mark or error.problem_mark
    problem = error.problem or ""
    for candidate in (context.line, line):
        if is_template(part, candidate):
            return template_error(part, candidate)
    if directive := _directive_error(part, context.line, problem):
        return directive
    character = part.line_text(line)[column : column + 1]
    if character == "\t" or "tab character" in problem:
        problem = "a tab is used for indentation; YAML allows only spaces"
        location, hint = part.location(line, column), "replace it with spaces"
        return DocumentError("documents.tab", problem, location=location, hint=hint)
    message = _message_for(problem, character)
    location = (
        part.location(context.line, context.column)
        if message.opening
        else part.location(line, column)
    )
    return DocumentError(message.code, message.problem, location=location, hint=message.hint)


def is_template(part: DocumentText, line: int) -> bool:
    """Return whether a line that cannot be parsed contains `{{` or `{%` outside quotes."""
    return bool(_DIRECTIVE.search(_QUOTED.sub("", part.line_text(line))))


def template_error(part: DocumentText, line: int) -> DocumentError:
    """Return the error for a template that is not rendered yet."""
    return DocumentError(
        "documents.template",
        "the file is a Helm template, not YAML",
        location=part.location(line, 0),
        hint="render it first, or exclude the directory of templates",
    )


def _message_for(problem: str, character: str) -> _Message:
    if problem == "found character that cannot start any token":
        return _Message(f"a value cannot start with `{character}`", "put the value in quotes")
    return _load_messages().get(problem) or _Message(f"this is not YAML: {sanitize(problem)}", "")


def _directive_error(part: DocumentText, line: int, problem: str) -> DocumentError | None:
    """Return the error for a YAML directive. Returns None if there is no directive.

    libyaml reports a missing document start at the end of the text, because the file was split at
    `---`; the directive is searched from the start in that case.
    """
    if problem == _NO_START:
        lines = part.text.split("\n")
        line = next((n for n, text in enumerate(lines) if text.startswith("%")), line)
    if not part.line_text(line).startswith("%"):
        return None
    problem = "a line starts with `%`; Kubernetes does not support YAML directives"
    location, hint = part.location(line, 0), "remove the line"
    return DocumentError("documents.directive", problem, location=location, hint=hint)
