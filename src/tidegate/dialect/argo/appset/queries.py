"""Queries of ApplicationSet generators: files of repositories, and output of Go templates.

A generator is a Python generator: it yields a query and receives its result. It does no I/O
itself, and a query may depend on earlier results.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

import msgspec

from tidegate.model.k8s.objects import FieldPath, Json

Params: TypeAlias = dict[str, Json]
"""One set of parameters: flat strings, or any JSON for Go templates."""
Result = TypeVar("Result")


class FileListQuery(msgspec.Struct, frozen=True):
    """Query for the files of a Git repository at a revision."""

    url: str
    revision: str


class FileContentQuery(msgspec.Struct, frozen=True):
    """Query for the contents of files."""

    url: str
    revision: str
    paths: tuple[str, ...]


class TemplateQuery(msgspec.Struct, frozen=True):
    """Query for the output of each Go template with each set of parameters."""

    texts: tuple[str, ...]
    params: tuple[Params, ...]
    options: tuple[str, ...] = ()
    lenient: bool = False
    """Return a template unchanged if one of its parameters is missing."""


Query: TypeAlias = FileListQuery | FileContentQuery | TemplateQuery


class TemplateFailure(msgspec.Struct, frozen=True):
    """Error of a Go template."""

    text: str
    problem: str
    hint: str = ""


class QueryResult(msgspec.Struct, frozen=True):
    """Result of a query."""

    files: tuple[str, ...] = ()
    contents: Mapping[str, bytes] = {}
    texts: tuple[tuple[str, ...], ...] = ()
    """For each set of parameters, one text per template."""
    failure: TemplateFailure | None = None


Procedure: TypeAlias = Generator[Query, QueryResult, Result]


class RegisteredCluster(msgspec.Struct, frozen=True, kw_only=True):
    """Cluster that is registered in Argo CD."""

    name: str
    server: str
    project: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class GeneratorInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of generators that are known without a query."""

    clusters: tuple[RegisteredCluster, ...] = ()
    provided: Mapping[str, tuple[Params, ...]] = {}
    """Results of generators that query external services, by generator; supplied by the user."""
    doublestar: bool = False
    """Whether file patterns are globs with `**`, a setting of the controller."""
    includes_live_clusters: bool = False
    """Whether `clusters` includes those that are registered in the running Argo CD."""


class TemplateLanguage(msgspec.Struct, frozen=True):
    """Template language of an ApplicationSet."""

    is_go: bool = False
    options: tuple[str, ...] = ()


class GeneratorContext(msgspec.Struct, frozen=True):
    """Inputs that all generators of one ApplicationSet share."""

    inputs: GeneratorInputs
    language: TemplateLanguage


class GeneratorError(Exception):
    """Error for which Argo CD would generate no Application."""

    def __init__(self, code: str, message: str, fix: str = "", path: FieldPath = ()) -> None:
        super().__init__(message)
        self.code, self.message, self.fix, self.path = code, message, fix, path


@contextmanager
def prefix_error_path(*path: str | int) -> Iterator[None]:
    """Prefix the path of a GeneratorError that is raised in the block."""
    try:
        yield
    except GeneratorError as error:
        error.path = (*path, *error.path)
        raise
