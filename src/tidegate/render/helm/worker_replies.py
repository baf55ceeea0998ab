"""Replies of a Helm worker: rendered texts, or what must be fetched first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from tidegate.errors import Location, RenderError
from tidegate.model.display import join_quoted
from tidegate.model.units.chart_request import ChartDependency
from tidegate.render.workers import WorkerError

EMPTY_OBJECT = msgspec.Raw(b"{}")


class RenderedFile(msgspec.Struct, frozen=True, gc=False):
    """Output of one template, or one file of CRDs."""

    path: str
    """The path in the chart."""
    text: str
    """The text."""


class RenderedChart(msgspec.Struct, frozen=True, tag="rendered", gc=False):
    """Reply of a worker: output of the templates by their path in the chart, and CRDs."""

    templates: tuple[RenderedFile, ...]
    """Output of the templates."""
    crds: tuple[RenderedFile, ...] = ()
    """Files of CRDs."""
    chart: msgspec.Raw = EMPTY_OBJECT
    """The chart itself, if requested."""
    config: msgspec.Raw = EMPTY_OBJECT
    """The values of the user, if requested."""


Reply: TypeAlias = RenderedChart | WorkerError


class DependencyError(RenderError):
    """An error: the chart needs charts that are not in its source."""

    dependencies: tuple[ChartDependency, ...] = ()
    """All of the missing charts."""


class LookupsError(RenderError):
    """An error: templates look up objects that the request does not contain."""

    paths: tuple[str, ...] = ()
    """All known API paths. Their responses may lead to further ones."""


def lookups_error(paths: Iterable[str], *, location: Location) -> LookupsError:
    """Return the error that names the API paths to read from a cluster."""
    problem = "templates look up different objects each time they are rendered"
    hint = "check for a `lookup` with a random name"
    error = LookupsError("render.helm.lookup", problem, location=location, hint=hint)
    error.paths = tuple(paths)
    return error


def dependency_error(
    dependencies: Iterable[ChartDependency], *, location: Location
) -> DependencyError:
    """Return the error that names the charts to fetch."""
    missing = tuple(dependencies)
    error = DependencyError(
        "render.helm.remote",
        f"the chart needs {join_quoted(missing, 1)}, which must be fetched first",
        location=location,
        hint="allow network access, or add the chart to `charts`",
    )
    error.dependencies = missing
    return error
