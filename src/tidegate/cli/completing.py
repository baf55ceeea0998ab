"""What a shell can complete besides commands, options and paths."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tidegate.flows.session import Target

Complete = Callable[[click.Context, click.Parameter, str], list[str]]
complete_path = click.Path().shell_complete
"""Whatever lies here: the shell itself knows files best."""
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


def complete_names(kinds: Sequence[str]) -> Complete:
    """Names of such kinds: those of the repository, and of the cluster whose context is given."""

    def complete(ctx: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
        return _names(ctx, kinds, begun)

    return complete


def complete_units(nouns: Mapping[str, Sequence[str]], aliases: Mapping[str, str]) -> Complete:
    """The same of all units; one may have its noun before it, as in `ks/apps`."""
    every = [kind for kinds in nouns.values() for kind in kinds]

    def complete(ctx: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
        word, sign, name = begun.partition("/")
        kinds = nouns.get(aliases.get(word, word)) if sign else None
        if kinds is None:
            return _names(ctx, every, begun)
        return [f"{word}/{one}" for one in _names(ctx, kinds, name)]

    return complete


def complete_noun(nouns: Sequence[str]) -> Complete:
    """One of a few words."""
    return lambda _ctx, _argument, begun: [one for one in nouns if one.startswith(begun)]


def complete_of(which: Callable[[str], Sequence[str]]) -> Complete:
    """Names of the kinds that the noun before means."""

    def complete(ctx: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
        return _names(ctx, which(ctx.params.get("which") or ""), begun)

    return complete


def _names(ctx: click.Context, kinds: Sequence[str], begun: str) -> list[str]:
    from tidegate.flows.completing import names_here, names_living  # noqa: PLC0415 - if a shell asks

    return _fitting(
        ctx,
        begun,
        lambda place: names_here(place, kinds),
        lambda target: names_living(target, kinds),
    )


def complete_kinds(ctx: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
    """Kinds of what the repository brings."""
    from tidegate.flows.completing import kinds_here  # noqa: PLC0415

    return _fitting(ctx, begun, kinds_here)


def complete_objects(ctx: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
    """Objects of the kind before, of the repository and of the cluster whose context is given."""
    from tidegate.flows.completing import objects_here, objects_living  # noqa: PLC0415

    kind = str(ctx.params.get("kind") or "")
    return _fitting(
        ctx,
        begun,
        lambda place: objects_here(place, kind),
        lambda target: objects_living(target, kind),
    )


def complete_runs(ctx: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
    """Jobs and hooks of the repository."""
    from tidegate.flows.completing import runs_here  # noqa: PLC0415

    return _fitting(ctx, begun, runs_here)


def _fitting(
    ctx: click.Context,
    begun: str,
    here: Callable[[str], Awaitable[list[str]]],
    living: Callable[[Target], Awaitable[list[str]]] | None = None,
) -> list[str]:
    """What may be meant. Who cannot be asked says nothing: somebody is only typing."""
    from tidegate.cli.running import run  # noqa: PLC0415
    from tidegate.errors import TidegateError  # noqa: PLC0415
    from tidegate.flows.session import Target  # noqa: PLC0415

    found: list[str] = []
    with suppress(TidegateError, ExceptionGroup, OSError):
        found += run(here(ctx.params.get("place") or "."))
    if living is not None and (context := ctx.params.get("context")):
        target = Target(kubeconfig=ctx.params.get("kubeconfig"), context=context)
        with suppress(TidegateError, OSError):
            found += run(living(target))
    return sorted({name for name in found if name.startswith(begun)})
