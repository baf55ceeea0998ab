"""Dependencies that are declared and not there, and must be fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.errors import Place, RenderError, foreign
from tidegate.model.release import ChartDependency


class DependencyError(RenderError):
    """The chart needs charts that are not in its source. `dependencies` says which, all of them."""

    dependencies: tuple[ChartDependency, ...] = ()


def needs_fetching(dependencies: Iterable[ChartDependency], *, where: Place) -> DependencyError:
    """The error that names what somebody has to bring."""
    wanted = tuple(dependencies)
    first = wanted[0]
    more = f" and {len(wanted) - 1} more" if len(wanted) > 1 else ""
    error = DependencyError(
        "render.helm.remote",
        f"the chart needs `{foreign(str(first))}`{more}, which must be fetched first",
        where=where,
        hint="allow the network, or put the chart into `charts`",
    )
    error.dependencies = wanted
    return error
