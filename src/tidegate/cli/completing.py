"""What a shell can complete besides commands, options and paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

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


def complete_names(
    kinds: Sequence[str],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Names of such kinds: those of the repository, and of the cluster whose context is given."""

    def complete(ctx: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
        from tidegate.cli.running import run  # noqa: PLC0415 - only where a shell asks
        from tidegate.errors import TidegateError  # noqa: PLC0415
        from tidegate.flows.completing import names_here, names_living  # noqa: PLC0415
        from tidegate.flows.session import Target  # noqa: PLC0415

        found: list[str] = []
        with suppress(TidegateError, ExceptionGroup, OSError):
            found += run(names_here(ctx.params.get("place") or ".", kinds))
        if context := ctx.params.get("context"):
            target = Target(kubeconfig=ctx.params.get("kubeconfig"), context=context)
            with suppress(TidegateError, OSError):
                found += run(names_living(target, kinds))
        return sorted({name for name in found if name.startswith(begun)})

    return complete
