"""`tidegate tree`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import CLUSTER, Flags, with_options
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_arguments import (
    KINDS_BY_NOUN,
    NAMESPACE_FILTER,
    REPOSITORY,
    name_argument,
    noun_group,
)

UNIT_NOUNS = ("application", "helmrelease", "kustomization")


def _noun_command(noun: str) -> click.Command:
    (kind,) = KINDS_BY_NOUN[noun]

    @name_argument((kind,))
    @with_options((REPOSITORY, NAMESPACE_FILTER), CLUSTER, (options.OFFLINE, options.REPO_MAP))
    @click.option("--compact", is_flag=True, help="Units alone.")
    @options.OUTPUT
    def show(called: str, compact: bool, **flags: Unpack[Flags]) -> int:  # noqa: FBT001 - click's way
        from tidegate.cli.lineage import show_tree

        progress_line = show_progress(f"reading {flags['place']}", quiet=flags["output"] == "json")
        return show_tree(kind, called, flags, progress_line, compact=compact)

    article = "an" if kind == "Application" else "a"
    parameters = reversed(getattr(show, "__click_params__", []))
    return click.Command(
        noun,
        callback=show,
        params=[*parameters],
        help=f"Show what {article} {kind} brings.\n\n\b\nExamples:\n  tidegate tree {noun} NAME",
        short_help=f"Show what {article} {kind} brings.",
    )


@click.group(cls=noun_group(_noun_command, UNIT_NOUNS))
def tree() -> None:
    """Show what a unit brings, and what units among that bring, as `flux tree` draws it.

    It is what Git says, and no cluster is asked. With --context it is what that cluster has: by the
    inventory on the unit's own object, else by its journal. Hooks and waves stand beside objects.

    \b
    Examples:
      tidegate tree kustomization flux-system
      tidegate tree ks flux-system --compact --context prod
      tidegate tree application shop -o json
    """
