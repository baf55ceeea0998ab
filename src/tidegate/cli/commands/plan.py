"""`tidegate plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import (
    CLUSTER,
    CONTENTS,
    PRUNING,
    UNIT,
    ClusterOptions,
    PruningOptions,
    UnitOptions,
    policy_of,
    setting_of,
    takes,
    units_of,
)

if TYPE_CHECKING:
    from tidegate.flows.preview import Preview
    from tidegate.flows.session import Target
    from tidegate.model.unit import Unit


class PlanOptions(UnitOptions, ClusterOptions, PruningOptions):
    """All that can be said to `tidegate plan`."""

    exit_code: bool
    output: str


@click.command()
@click.argument("what", metavar="DIR")
@takes(UNIT, CLUSTER, PRUNING, CONTENTS)
@click.option("--exit-code", is_flag=True, help="Leave with 10 if there is something to do.")
@options.text_or_json
def plan(what: str, **told: Unpack[PlanOptions]) -> int:
    """Show what a rollout of DIR would do, step by step.

    DIR is a directory of manifests, a Helm chart or a Kustomize overlay. Without --context it is
    compared with an empty cluster. With -o json the plan is a document without secrets.

    \b
    Examples:
      tidegate plan examples/first
      tidegate plan charts/web -f values-prod.yaml --context prod --exit-code
      tidegate plan overlays/prod --context prod --prune -o json
    """
    doing = say_first(f"reading {what}", quiet=told["output"] == "json")
    import asyncio

    from tidegate.cli.exits import CHANGES
    from tidegate.cli.previewing import show_preview
    from tidegate.flows.session import Target
    from tidegate.flows.wiring import Simulation

    is_offline = told["context"] is None and told["kubeconfig"] is None and not told["clusters"]
    target = Target(
        kubeconfig=told["kubeconfig"],
        context=told["context"],
        clusters=told["clusters"],
        simulation=Simulation() if is_offline else None,
    )
    policy = policy_of(
        told,
        prunes=told["prune"],
        consents=told["confirm"],
        allows_empty=told["allow_empty"],
        deletes_contents=told["yes_delete_contents"],
    )
    units = units_of(what, told, policy, told["clusters"])
    doing.say(f"comparing {what} with {'an empty cluster' if is_offline else 'what lives'}")
    found = asyncio.run(_preview(units, target, told))
    doing.clear()
    show_preview(found, json=told["output"] == "json")
    return CHANGES if told["exit_code"] and found.has_changes else 0


async def _preview(units: list[Unit], target: Target, told: PlanOptions) -> Preview:
    from tidegate.flows.preview import preview
    from tidegate.flows.session import open_session

    async with open_session(target, setting_of(told)) as session:
        return await preview(units, session)
