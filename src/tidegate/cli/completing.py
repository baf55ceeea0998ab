"""What a shell can complete besides commands, options and paths."""

from __future__ import annotations

import click

ENGINES = ("own", "tidegate", "argocd", "flux")


def complete_context(ctx: click.Context, _option: click.Parameter, begun: str) -> list[str]:
    """The contexts of the kubeconfig that would be used; none where it cannot be read."""
    from tidegate.errors import TidegateError  # noqa: PLC0415 - only where a shell asks
    from tidegate.flows.wiring import context_names  # noqa: PLC0415

    try:
        names = context_names(ctx.params.get("kubeconfig"))
    except (TidegateError, OSError):
        return []
    return [name for name in names if name.startswith(begun)]


def complete_engine(_ctx: click.Context, _option: click.Parameter, begun: str) -> list[str]:
    """Engines behind those that are named already, with commas between."""
    before, comma, last = begun.rpartition(",")
    named = before.split(",")
    fitting = (one for one in ENGINES if one.startswith(last) and one not in named)
    return [f"{before}{comma}{one}" for one in fitting]
