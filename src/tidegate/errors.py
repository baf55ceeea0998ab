"""Errors that are shown to the user.

    TidegateError               a code, the problem, its location, a hint
    ├── DocumentError           a file cannot be read as Kubernetes would read it
    ├── FileError               a file written for Tidegate has a mistake
    ├── ConfigError             a kubeconfig, or a file that it refers to, is invalid
    ├── ProcessError            an external program failed
    ├── RenderError             a unit cannot be rendered
    ├── SourceError             a source cannot be fetched, or must not be used
    ├── ScenarioError           a scenario cannot be simulated
    ├── KnowledgeError          an operator row or health row is invalid
    ├── DialectError            an annotation or a custom resource is invalid
    ├── PlanError               units cannot be ordered, or a saved plan cannot be run
    ├── UsageError              the command line contradicts itself or the repository
    ├── ClusterError            a cluster cannot be reached, or rejects a request
    │   └── WaitTimeoutError    a wait timed out
    ├── OutputError             output cannot be written
    └── SystemResourceError     out of memory, disk space or file descriptors

An error is raised where the problem is found and printed once, by the CLI. It never contains a
document, a secret, or more than `SANITIZED_LIMIT` characters of external text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

SANITIZED_LIMIT = 200
_URL_USER = re.compile(r"(?<=://)[^/\s]*@")
_URL_USER_WITH_SLASH = re.compile(r"(?<=://)[^\s/:@]*:(?!\d{1,5}(?:[/\s`'\"?#]|$))\S*@")
"""A password that contains a `/`. No valid URL has one, but many real URLs do."""
_URL_TOKEN = re.compile(
    r"([?&;](?:[\w.-]*(?:token|password|passwd|secret|signature|credential)|sig|key|auth)=)[^&\s`'\"#]+",
    re.IGNORECASE,
)
_LOCATION = re.compile(r"(?P<name>.+?):(?P<line>\d+)(?::(?P<column>\d+))?")
_INVISIBLE = re.compile("[\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
_CI_COMMAND = re.compile(r"##(?=\w*\[)")


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A location that a user can edit or inspect: a file, a line, a field, a server."""

    name: str
    """The name of the file."""
    line: int = 0
    """The line, counted from 1; 0 if unknown."""
    column: int = 0
    """The column, counted from 1; 0 if unknown."""
    field: str = ""
    """The path of the field; empty if unknown."""

    def __str__(self) -> str:
        text = self.name
        if self.line:
            text += f":{self.line}"
            if self.column:
                text += f":{self.column}"
        return f"{text} ({self.field})" if self.field else text

    def with_field(self, field: str) -> Location:
        """Return this location with a field."""
        return Location(self.name, self.line, self.column, field)

    def with_name(self, name: str) -> Location:
        """Return this location with another file name."""
        return Location(name, self.line, self.column, self.field)


def parse_location(text: str) -> Location:
    """Parse a location in the form `file:line:column (field)`.

    Any other text becomes the name of the location.
    """
    position, _, field = text.partition(" (") if text.endswith(")") else (text, "", "")
    match = _LOCATION.fullmatch(position)
    if not match:
        return Location(text)
    line, column = int(match["line"]), int(match["column"] or 0)
    return Location(match["name"], line, column, field.removesuffix(")"))


class TidegateError(Exception):
    """The base class of all expected errors. Any other exception that escapes is a bug."""

    exit_code: ClassVar[int] = 1
    """Exit code of a command that ends with this error."""
    unit_problem: str = ""
    """The problem without the name of the unit that it begins with; empty if it names none."""

    def __init__(
        self, code: str, problem: str, *, location: Location | None = None, hint: str = ""
    ) -> None:
        super().__init__(problem)
        self.code = code
        self.problem = problem
        self.location = location
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"error[{self.code}]: {self.problem}"]
        if self.location is not None:
            lines.append(f"  at {self.location}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(escape_line(redact_urls(line)) for line in lines)


class DocumentError(TidegateError):
    """A file that cannot be read as Kubernetes would read it."""

    exit_code = 3


class FileError(TidegateError):
    """A mistake in a file that was written for Tidegate."""

    exit_code = 3


class ConfigError(TidegateError):
    """An invalid kubeconfig, or an invalid file that it refers to."""

    exit_code = 3
    missing_context: str = ""
    """Name of the context that was requested and that no kubeconfig has; else empty."""


class ProcessError(TidegateError):
    """A failure of an external program."""

    exit_code = 3


class SourceError(TidegateError):
    """A source that cannot be fetched, or must not be used."""

    exit_code = 3


class RenderError(TidegateError):
    """A unit that cannot be rendered."""

    exit_code = 3


class ScenarioError(TidegateError):
    """A scenario that cannot be simulated."""

    exit_code = 3


class KnowledgeError(TidegateError):
    """An invalid operator row or health row."""

    exit_code = 3


class DialectError(TidegateError):
    """An invalid annotation or custom resource."""

    exit_code = 3


class PlanError(TidegateError):
    """Units that cannot be ordered, or a saved plan that cannot be run."""

    exit_code = 3


class UsageError(TidegateError):
    """Wrong use of the command line: unknown units, contradictory flags."""

    exit_code = 2


class ClusterError(TidegateError):
    """A cluster that cannot be reached, or that rejects a request."""

    exit_code = 5


class WaitTimeoutError(ClusterError):
    """A wait that timed out."""

    exit_code = 8


class OutputError(TidegateError):
    """Output that cannot be written."""

    exit_code = 7


class SystemResourceError(TidegateError):
    """Exhausted system resources: file descriptors, memory, disk space."""

    exit_code = 7


def flatten_errors(group: BaseExceptionGroup[TidegateError]) -> Iterator[TidegateError]:
    """Yield the errors of a group and of all groups nested in it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from flatten_errors(error)
        else:
            yield error


def sanitize(text: str) -> str:
    """Make external text safe to print: printable, one line, no credentials in URLs, shortened."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    line = redact_urls(" ".join(text.split()))
    return line if len(line) <= SANITIZED_LIMIT else line[: SANITIZED_LIMIT - 1] + "…"


def redact_urls(text: str) -> str:
    """Remove users and tokens from the URLs in a text."""
    if "://" not in text:
        return text
    return _URL_TOKEN.sub(r"\1***", _URL_USER_WITH_SLASH.sub("", _URL_USER.sub("", text)))


def escape_line(text: str) -> str:
    """Escape one line for a terminal or a CI log.

    Terminals obey control characters; GitHub, Azure and TeamCity obey lines with `::` or `##[`.
    """
    text = escape_fragment(text)
    stripped = text.lstrip()
    if stripped.startswith("::"):
        text = f"{text[: len(text) - len(stripped)]}\\x3a{stripped[1:]}"
    return text


def escape_fragment(text: str) -> str:
    """Escape a part of a line that follows text of Tidegate."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else _escape_char(char) for char in text)
    return _CI_COMMAND.sub(r"#\\x23", text) if "##" in text else text


def escape_lines(text: str) -> str:
    """Escape each line of a text."""
    return "\n".join(map(escape_line, text.split("\n")))


def sanitize_document(document: str) -> str:
    """Escape the characters of JSON or YAML output that terminals and CI servers obey.

    They occur only inside quotes, so the document keeps its meaning.
    """
    document = _INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", document)
    return _CI_COMMAND.sub(r"#\\u0023", document) if "##" in document else document


def _escape_char(char: str) -> str:
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char)
    code = ord(char)
    unicode_escape = f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - two sizes
    return short or (f"\\x{code:02x}" if code <= 0xFF else unicode_escape)  # noqa: PLR2004
