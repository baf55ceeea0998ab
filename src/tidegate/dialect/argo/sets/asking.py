"""What a set must know and cannot see: files of repositories, and what Go makes of templates.

A generator is an errand: it yields a question, and whoever runs it sends back the answer. So it
touches nothing itself, and a question may depend on the answers before it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

import msgspec

from tidegate.documents import FieldPath
from tidegate.model.objects import Json

Body: TypeAlias = dict[str, Json]
Params: TypeAlias = dict[str, Json]
"""One set of parameters: flat texts, or for Go templates whatever they are."""
Made = TypeVar("Made")


class AskFiles(msgspec.Struct, frozen=True):
    """Which files a Git repository has at a revision."""

    url: str
    revision: str


class AskContents(msgspec.Struct, frozen=True):
    """What stands in some of them."""

    url: str
    revision: str
    paths: tuple[str, ...]


class AskTexts(msgspec.Struct, frozen=True):
    """What Go makes of each template with each set of parameters.

    One that is `lenient` gives a template back as it is where a parameter of it is missing.
    """

    texts: tuple[str, ...]
    params: tuple[Params, ...]
    options: tuple[str, ...] = ()
    lenient: bool = False


Ask: TypeAlias = AskFiles | AskContents | AskTexts


class TextFlaw(msgspec.Struct, frozen=True):
    """A template that Go refuses."""

    text: str
    problem: str
    hint: str = ""


class SetAnswer(msgspec.Struct, frozen=True):
    """The answer to one of them; `texts` has for each set of parameters one for each template."""

    files: tuple[str, ...] = ()
    contents: Mapping[str, bytes] = {}
    texts: tuple[tuple[str, ...], ...] = ()
    flaw: TextFlaw | None = None


Errand: TypeAlias = Generator[Ask, SetAnswer, Made]


class KnownCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that Argo CD knows."""

    name: str
    server: str
    project: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known before anything is asked.

    `given`: by the name of a generator, what somebody says it finds. `doublestar`: how patterns of
    files are read, by a switch of the controller. `asked`: the clusters that a running Argo CD
    knows are among the known ones.
    """

    clusters: tuple[KnownCluster, ...] = ()
    given: Mapping[str, tuple[Params, ...]] = {}
    doublestar: bool = False
    asked: bool = False


class Language(msgspec.Struct, frozen=True):
    """How the templates of a set are written."""

    is_go: bool = False
    options: tuple[str, ...] = ()


class SetRun(msgspec.Struct, frozen=True):
    """What all generators of one set share."""

    known: Known
    language: Language


class Fault(Exception):  # noqa: N818 - it becomes a finding
    """Something for which Argo CD would generate nothing."""

    def __init__(self, code: str, said: str, fix: str = "", path: FieldPath = ()) -> None:
        super().__init__(said)
        self.code, self.said, self.fix, self.path = code, said, fix, path


@contextmanager
def inside(*path: str | int) -> Iterator[None]:
    """Whoever finds a fault knows the way from where it looks; here it gets the way to there."""
    try:
        yield
    except Fault as fault:
        fault.path = (*path, *fault.path)
        raise
