"""`tidegate plan`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import (
    CLUSTER,
    PRUNING,
    UNIT,
    UnitOptions,
    chosen_of,
    takes,
)

CHANGES = 10


@click.command()
@click.argument("what", metavar="DIR")
@takes(UNIT, CLUSTER, PRUNING)
@click.option("--exit-code", is_flag=True, help="Leave with 10 if there is something to do.")
@options.text_or_json
def plan(
    what: str,
    kubeconfig: str | None,
    context: str | None,
    prune: bool,  # noqa: FBT001 - click hands over what is on the command line
    confirm: bool,  # noqa: FBT001
    exit_code: bool,  # noqa: FBT001
    output: str,
    **told: Unpack[UnitOptions],
) -> int:
    """Show what a rollout of DIR would do, step by step.

    DIR is a directory of manifests, a Helm chart or a Kustomize overlay. Without --context it is
    compared with an empty cluster. With -o json the plan is a document without secrets.

    \b
    Examples:
      tidegate plan examples/first
      tidegate plan charts/web -f values-prod.yaml --context prod --exit-code
      tidegate plan overlays/prod --context prod --prune -o json
    """
    doing = say_first(f"reading {what}", quiet=output == "json")
    import asyncio

    from tidegate.cli.previewing import pruning_of, show_preview
    from tidegate.flows.preview import preview_on
    from tidegate.flows.sync import Target
    from tidegate.flows.wiring import Simulation

    nowhere = Simulation() if context is None and kubeconfig is None else None
    target = Target(kubeconfig=kubeconfig, context=context, simulation=nowhere)
    doing.say(f"comparing {what} with {'what lives' if nowhere is None else 'an empty cluster'}")
    found = asyncio.run(
        preview_on(chosen_of(what, told), target, pruning_of(prunes=prune, consents=confirm))
    )
    doing.clear()
    show_preview(found, json=output == "json")
    return CHANGES if exit_code and found.has_changes else 0
