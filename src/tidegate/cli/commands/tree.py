"""`tidegate tree`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.naming import HOME, PLACE, called_argument
from tidegate.cli.nouns import NOUNS, by_noun
from tidegate.cli.unit_options import CLUSTER, Given, takes

UNITS = ("application", "helmrelease", "kustomization")


def _make(noun: str) -> click.Command:
    (kind,) = NOUNS[noun]

    @called_argument((kind,))
    @takes((PLACE, HOME), CLUSTER, (options.offline, options.repo_map))
    @click.option("--compact", is_flag=True, help="Units alone.")
    @options.text_or_json
    def show(called: str, compact: bool, **told: Unpack[Given]) -> int:  # noqa: FBT001 - click's way
        from tidegate.cli.lineage import show_tree

        doing = say_first(f"reading {told['place']}", quiet=told["output"] == "json")
        return show_tree(kind, called, told, doing, compact=compact)

    article = "an" if kind == "Application" else "a"
    options_of = reversed(getattr(show, "__click_params__", []))
    return click.Command(
        noun,
        callback=show,
        params=[*options_of],
        help=f"Show what {article} {kind} brings.\n\n\b\nExamples:\n  tidegate tree {noun} NAME",
        short_help=f"Show what {article} {kind} brings.",
    )


@click.group(cls=by_noun(_make, UNITS))
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
