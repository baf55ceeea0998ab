"""`tidegate flux tree`: the objects of a Kustomization or HelmRelease, like `flux tree`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.command import TidegateCommand
from tidegate.cli.options import CLUSTER, Flags, with_options
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_arguments import (
    FLUX_NOUNS,
    NAMESPACE_FILTER,
    REPOSITORY,
    name_argument,
    noun_group,
)
from tidegate.cli.unit_kinds import KINDS_BY_NOUN


def _noun_command(noun: str) -> click.Command:
    (kind,) = KINDS_BY_NOUN[noun]

    @name_argument((kind,))
    @with_options((REPOSITORY, NAMESPACE_FILTER), CLUSTER, (options.OFFLINE, options.REPO_MAP))
    @click.option("--compact", is_flag=True, help="Show only units.")
    @options.OUTPUT
    def show(called: str, *, compact: bool, **flags: Unpack[Flags]) -> int:
        progress_line = show_progress(f"reading {flags['path']}", quiet=flags["output"] == "json")
        from tidegate.cli.lineage import show_tree

        return show_tree((f"{noun}/{called}",), flags, progress_line, compact=compact)

    return TidegateCommand(
        noun,
        callback=show,
        params=[*reversed(getattr(show, "__click_params__", []))],
        help=f"Show the objects of a {kind} as a tree.\n\n\b\nExamples:\n"
        f"  tidegate flux tree {noun} NAME",
        short_help=f"Show the objects of a {kind} as a tree.",
    )


@click.group(cls=noun_group(_noun_command, FLUX_NOUNS))
def tree() -> None:
    """Show the objects of a Kustomization or HelmRelease as a tree, like `flux tree`.

    \b
    Examples:
      tidegate flux tree kustomization flux-system
      tidegate flux tree ks flux-system --compact --context prod
    """
