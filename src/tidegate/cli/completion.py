"""Shell completion of names, kinds and contexts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tidegate.clusters.session import ClusterTargets

Completer = Callable[[click.Context, click.Parameter, str], list[str]]
complete_path = click.Path().shell_complete
"""Completes paths; the shell itself completes files best."""
ENGINES = ("native", "tidegate", "argocd", "argocd=3.5", "argocd=3.6", "flux")


def complete_context(ctx: click.Context, _option: click.Parameter, prefix: str) -> list[str]:
    """Return the contexts of the kubeconfig; none if it cannot be read."""
    from tidegate.clusters.connect import context_names  # noqa: PLC0415
    from tidegate.errors import TidegateError  # noqa: PLC0415 - only where a shell asks

    try:
        names = context_names(ctx.params.get("kubeconfig"))
    except (TidegateError, OSError):
        return []
    return [name for name in names if name.startswith(prefix)]


def complete_engine(_ctx: click.Context, _option: click.Parameter, prefix: str) -> list[str]:
    """Return engines, also after a comma, without those that are already given."""
    earlier, comma, last = prefix.rpartition(",")
    used = earlier.split(",")
    matches = (engine for engine in ENGINES if engine.startswith(last) and engine not in used)
    return [f"{earlier}{comma}{match}" for match in matches]


def complete_names(kinds: Sequence[str]) -> Completer:
    """Return a completer for names of these kinds, from the repository and the cluster."""

    def complete(ctx: click.Context, _argument: click.Parameter, prefix: str) -> list[str]:
        return _complete_names(ctx, kinds, prefix)

    return complete


def complete_units(nouns: Mapping[str, Sequence[str]], aliases: Mapping[str, str]) -> Completer:
    """Return a completer for all units, also with a noun before the name, as in `ks/apps`."""
    all_kinds = [kind for kinds in nouns.values() for kind in kinds]

    def complete(ctx: click.Context, _argument: click.Parameter, prefix: str) -> list[str]:
        noun, separator, name = prefix.partition("/")
        kinds = nouns.get(aliases.get(noun, noun)) if separator else None
        if kinds is None:
            return _complete_names(ctx, all_kinds, prefix)
        return [f"{noun}/{unit_name}" for unit_name in _complete_names(ctx, kinds, name)]

    return complete


def complete_word(words: Sequence[str]) -> Completer:
    """Return a completer for a few words."""
    return lambda _ctx, _argument, prefix: [word for word in words if word.startswith(prefix)]


def complete_names_of_noun(kinds_for_noun: Callable[[str], Sequence[str]]) -> Completer:
    """Return a completer for names of the kinds of the preceding noun."""

    def complete(ctx: click.Context, _argument: click.Parameter, prefix: str) -> list[str]:
        return _complete_names(ctx, kinds_for_noun(ctx.params.get("which") or ""), prefix)

    return complete


def _complete_names(ctx: click.Context, kinds: Sequence[str], prefix: str) -> list[str]:
    from tidegate.inspection.completion import list_live_unit_names, list_unit_names  # noqa: PLC0415 - if a shell asks

    return _matching_names(
        ctx,
        prefix,
        lambda path: list_unit_names(path, kinds),
        lambda target: list_live_unit_names(target, kinds),
    )


def complete_kinds(ctx: click.Context, _argument: click.Parameter, prefix: str) -> list[str]:
    """Return the kinds of objects in the repository."""
    from tidegate.inspection.completion import list_kind_names  # noqa: PLC0415

    return _matching_names(ctx, prefix, list_kind_names)


def complete_traced(ctx: click.Context, argument: click.Parameter, prefix: str) -> list[str]:
    """Return kinds, and after `KIND/` the objects of the kind."""
    from tidegate.inspection.completion import list_live_object_names, list_object_names  # noqa: PLC0415

    kind, separator, name = prefix.partition("/")
    if not separator:
        return complete_kinds(ctx, argument, prefix)
    names = _matching_names(
        ctx,
        name,
        lambda path: list_object_names(path, kind),
        lambda target: list_live_object_names(target, kind),
    )
    return [f"{kind}/{object_name}" for object_name in names]


def complete_unit(ctx: click.Context, argument: click.Parameter, prefix: str) -> list[str]:
    """Return the names of all units, also with a noun before the name, as in `ks/apps`."""
    from tidegate.cli.unit_kinds import NOUN_ALIASES, UNIT_KINDS_BY_NOUN  # noqa: PLC0415

    return complete_units(UNIT_KINDS_BY_NOUN, NOUN_ALIASES)(ctx, argument, prefix)


def complete_objects(ctx: click.Context, _argument: click.Parameter, prefix: str) -> list[str]:
    """Return objects of the preceding kind, in the repository and in the given context."""
    from tidegate.inspection.completion import list_live_object_names, list_object_names  # noqa: PLC0415

    kind = str(ctx.params.get("kind") or "")
    return _matching_names(
        ctx,
        prefix,
        lambda path: list_object_names(path, kind),
        lambda target: list_live_object_names(target, kind),
    )


def complete_jobs(ctx: click.Context, _argument: click.Parameter, prefix: str) -> list[str]:
    """Return the Jobs and hooks of the repository."""
    from tidegate.inspection.completion import list_job_names  # noqa: PLC0415

    return _matching_names(ctx, prefix, list_job_names)


def _matching_names(
    ctx: click.Context,
    prefix: str,
    read_local: Callable[[str], Awaitable[list[str]]],
    read_live: Callable[[ClusterTargets], Awaitable[list[str]]] | None = None,
) -> list[str]:
    """Return the matching names. Errors are ignored while the user types."""
    from tidegate.cli.run_async import run_async  # noqa: PLC0415
    from tidegate.clusters.session import ClusterTargets  # noqa: PLC0415
    from tidegate.errors import TidegateError  # noqa: PLC0415

    names: list[str] = []
    with suppress(TidegateError, ExceptionGroup, OSError):
        names += run_async(read_local(ctx.params.get("path") or "."))
    if read_live is not None and (context := ctx.params.get("context")):
        target = ClusterTargets(kubeconfig=ctx.params.get("kubeconfig"), context=context)
        with suppress(TidegateError, OSError):
            names += run_async(read_live(target))
    return sorted({name for name in names if name.startswith(prefix)})
