"""A worker's answers: texts, or what it must be brought first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from tidegate.errors import Location, RenderError, sanitize
from tidegate.model.units.chart_request import ChartDependency
from tidegate.render.workers import WorkerError

EMPTY_OBJECT = msgspec.Raw(b"{}")


class RenderedFile(msgspec.Struct, frozen=True, gc=False):
    """What one template, or one file of CRDs, came to."""

    path: str
    text: str


class RenderedChart(msgspec.Struct, frozen=True, tag="rendered", gc=False):
    """A worker's good answer: templates by their path inside the chart, and CRDs apart.

    `chart` and `config` where they are asked for: the chart itself, and the values of the user.
    """

    templates: tuple[RenderedFile, ...]
    crds: tuple[RenderedFile, ...] = ()
    chart: msgspec.Raw = EMPTY_OBJECT
    config: msgspec.Raw = EMPTY_OBJECT


Reply: TypeAlias = RenderedChart | WorkerError


class DependencyError(RenderError):
    """The chart needs charts that are not in its source. `dependencies` says which, all of them."""

    dependencies: tuple[ChartDependency, ...] = ()


class LookupsError(RenderError):
    """Templates look up what nobody has asked the cluster for yet: its paths, all that are known.

    More may come to light when these are answered.
    """

    paths: tuple[str, ...] = ()


def lookups_error(paths: Iterable[str], *, where: Location) -> LookupsError:
    """The error that names what somebody has to ask a cluster for."""
    problem = "templates look up something else in the cluster each time that they are rendered"
    hint = "look for a `lookup` with a name that is random"
    error = LookupsError("render.helm.lookup", problem, location=where, hint=hint)
    error.paths = tuple(paths)
    return error


def dependency_error(
    dependencies: Iterable[ChartDependency], *, where: Location
) -> DependencyError:
    """The error that names what somebody has to bring."""
    wanted = tuple(dependencies)
    first = wanted[0]
    more = f" and {len(wanted) - 1} more" if len(wanted) > 1 else ""
    error = DependencyError(
        "render.helm.remote",
        f"the chart needs `{sanitize(str(first))}`{more}, which must be fetched first",
        location=where,
        hint="allow the network, or put the chart into `charts`",
    )
    error.dependencies = wanted
    return error
