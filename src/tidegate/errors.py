"""What can go wrong, as people will read it.

    TidegateError           a code, the problem, the place, a hint
    ├── DocumentError       a file cannot be read as Kubernetes would read it
    ├── FileError           a file that was written for us has a mistake
    ├── ConfigError         a kubeconfig, or what it points to, is wrong
    ├── ProcessError        another program could not do its part
    ├── RenderError         what a unit asks for cannot be turned into objects
    ├── SourceError         a source cannot be had, or must not be used
    ├── ScenarioError       a scenario says something that cannot be simulated
    ├── OperatorsError      a row about an operator cannot be used
    ├── DialectError        an annotation or a custom resource asks for what cannot be
    ├── PlanError           units cannot be put in order, or a saved plan cannot be run
    ├── WordsError          what is said on the command line does not go with what it is said of
    ├── ClusterError        a cluster cannot be reached, or says no
    │   └── LateError       somebody did not come to an end in time
    ├── OutputError         what is to be said cannot be written
    └── MachineError        the machine has nothing left of something

An error is raised where it is known and shown once, at the edge. It never carries a document, a
secret, or more than `FOREIGN_LIMIT` characters of somebody else's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

FOREIGN_LIMIT = 200
_USER = re.compile(r"(?<=://)[^/\s]*@")
_USER_AND_SLASH = re.compile(r"(?<=://)[^\s/:@]*:(?!\d{1,5}(?:[/\s`'\"?#]|$))\S*@")
"""A password with a `/` in it, which no address may have and many do."""
_TOKEN = re.compile(
    r"([?&;](?:[\w.-]*(?:token|password|passwd|secret|signature|credential)|sig|key|auth)=)[^&\s`'\"#]+",
    re.IGNORECASE,
)
_SPOT = re.compile(r"(?P<name>.+?):(?P<line>\d+)(?::(?P<column>\d+))?")
_UNSEEN = re.compile("[\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
_LOG_COMMAND = re.compile(r"##(?=\w*\[)")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The nearest spot a person can edit or look at: a file, a line in it, a field, a server."""

    name: str
    line: int = 0
    column: int = 0
    field: str = ""

    def __str__(self) -> str:
        spot = self.name
        if self.line:
            spot += f":{self.line}"
            if self.column:
                spot += f":{self.column}"
        return f"{spot} ({self.field})" if self.field else spot

    def at(self, field: str) -> Place:
        """A field there."""
        return Place(self.name, self.line, self.column, field)

    def named(self, name: str) -> Place:
        """The same spot of a file that is called otherwise."""
        return Place(name, self.line, self.column, self.field)


def parse_place(text: str) -> Place:
    """A place that was written down as `file:line:column (field)`; anything else is a name."""
    spot, _, field = text.partition(" (") if text.endswith(")") else (text, "", "")
    found = _SPOT.fullmatch(spot)
    if not found:
        return Place(text)
    line, column = int(found["line"]), int(found["column"] or 0)
    return Place(found["name"], line, column, field.removesuffix(")"))


class TidegateError(Exception):
    """The root: everything else that escapes is a bug."""

    exit_code: ClassVar[int] = 1

    def __init__(
        self, code: str, problem: str, *, where: Place | None = None, hint: str = ""
    ) -> None:
        super().__init__(problem)
        self.code = code
        self.problem = problem
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"error[{self.code}]: {self.problem}"]
        if self.where is not None:
            lines.append(f"  at {self.where}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(escaped(without_user(line)) for line in lines)


class DocumentError(TidegateError):
    """A file cannot be read as Kubernetes would read it."""

    exit_code = 3


class FileError(TidegateError):
    """A file that was written for us has a mistake."""

    exit_code = 3


class ConfigError(TidegateError):
    """A kubeconfig, or what it points to, is wrong."""

    exit_code = 3


class ProcessError(TidegateError):
    """Another program could not do its part."""

    exit_code = 3


class SourceError(TidegateError):
    """A source cannot be had, or must not be used."""

    exit_code = 3


class RenderError(TidegateError):
    """What a unit asks for cannot be turned into objects."""

    exit_code = 3


class ScenarioError(TidegateError):
    """A scenario says something that cannot be simulated."""

    exit_code = 3


class OperatorsError(TidegateError):
    """A row about an operator cannot be used."""

    exit_code = 3


class DialectError(TidegateError):
    """An annotation or a custom resource asks for what cannot be."""

    exit_code = 3


class PlanError(TidegateError):
    """Units cannot be put in order, or a saved plan cannot be run."""

    exit_code = 3


class WordsError(TidegateError):
    """What is said on the command line does not go with what it is said of."""

    exit_code = 2


class ClusterError(TidegateError):
    """A cluster cannot be reached, or says no."""

    exit_code = 5


class LateError(ClusterError):
    """Somebody did not come to an end in the time that was given."""

    exit_code = 8


class OutputError(TidegateError):
    """What is to be said cannot be written."""

    exit_code = 7


class MachineError(TidegateError):
    """The machine has nothing left of something: open files, memory, room on a disk."""

    exit_code = 7


def errors_of(group: BaseExceptionGroup[TidegateError]) -> Iterator[TidegateError]:
    """The errors in a group, however deep."""
    for one in group.exceptions:
        if isinstance(one, BaseExceptionGroup):
            yield from errors_of(one)
        else:
            yield one


def foreign(text: str) -> str:
    """Somebody else's words: printable, on one line, without the user of an address, and short."""
    if not text.isprintable():
        text = "".join(mark if mark.isprintable() else " " for mark in text)
    line = without_user(" ".join(text.split()))
    return line if len(line) <= FOREIGN_LIMIT else line[: FOREIGN_LIMIT - 1] + "…"


def without_user(text: str) -> str:
    """A text whose addresses name neither a user nor a token."""
    if "://" not in text:
        return text
    return _TOKEN.sub(r"\1***", _USER_AND_SLASH.sub("", _USER.sub("", text)))


def escaped(text: str) -> str:
    """A line as it may be printed: nothing in it moves a cursor, ends the line, or commands a CI.

    Terminals obey control characters, and GitHub, Azure and TeamCity lines with `::` or `##[`.
    """
    text = escaped_part(text)
    bare = text.lstrip()
    if bare.startswith("::"):
        text = f"{text[: len(text) - len(bare)]}\\x3a{bare[1:]}"
    return text


def escaped_part(text: str) -> str:
    """The same for a part of a line that something of ours comes before."""
    if not text.isprintable():
        text = "".join(mark if mark.isprintable() else _escape(mark) for mark in text)
    return _LOG_COMMAND.sub(r"#\\x23", text) if "##" in text else text


def escaped_lines(text: str) -> str:
    """The same for a text of several lines that are all ours."""
    return "\n".join(map(escaped, text.split("\n")))


def harmless(document: str) -> str:
    """JSON or YAML of ours that reads the same, without what terminals and CI servers obey.

    What is replaced stands only inside of quotes there, where an escape means the same.
    """
    document = _UNSEEN.sub(lambda mark: f"\\u{ord(mark[0]):04x}", document)
    return _LOG_COMMAND.sub(r"#\\u0023", document) if "##" in document else document


def _escape(mark: str) -> str:
    known = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(mark)
    code = ord(mark)
    wide = f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - two sizes
    return known or (f"\\x{code:02x}" if code <= 0xFF else wide)  # noqa: PLR2004
