"""`tidegate plan`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_path
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import (
    CLUSTER,
    CONTENTS,
    NARROWING,
    PRUNING,
    UNIT,
    Given,
    takes,
)

if TYPE_CHECKING:
    from tidegate.flows.entering import Found
    from tidegate.flows.preview import Preview
    from tidegate.flows.session import Session


@click.command()
@click.argument("what", metavar="PATH", shell_complete=complete_path)
@takes(NARROWING, UNIT, CLUSTER, PRUNING, CONTENTS)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the plan into this file, for `sync --plan`; it holds no secret.",
)
@click.option("--exit-code", is_flag=True, help="Leave with 10 if there is something to do.")
@options.text_or_json
def plan(what: str, **told: Unpack[Given]) -> int:
    """Show what a rollout of PATH would do, step by step.

    PATH is a repository of Argo CD's or Flux's, or of both, a directory of manifests, a Helm chart
    or a Kustomize overlay. Without --context it is compared with an empty cluster. With -o json the
    plan is a document without secrets.

    \b
    Examples:
      tidegate plan examples/first
      tidegate plan . --entry clusters/prod
      helm template charts/web | tidegate plan -
      tidegate plan charts/web -f values-prod.yaml --context prod --exit-code
      tidegate plan overlays/prod --context prod --prune -o json
      tidegate plan overlays/prod --context prod --save prod.plan
    """
    doing = say_first(f"reading {what}", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.cli.consent import OFFLINE
    from tidegate.cli.exits import CHANGES
    from tidegate.cli.previewing import show_found

    chosen = (told["context"], told["kubeconfig"], told["clusters"] or None)
    told["sandbox"] = told["still"] = all(one is None for one in chosen)
    pointed = pointed_of(what, told)
    doing.say(f"comparing {what} with {'an empty cluster' if told['sandbox'] else 'what lives'}")
    found, previews = in_found(pointed, told, partial(_preview, told["save"], what, pointed.said))
    doing.clear()
    code = show_found(found, previews, told, OFFLINE if told["sandbox"] else "")
    has_changes = any(one.has_changes for one in previews)
    return CHANGES if told["exit_code"] and has_changes and not code else code


async def _preview(
    file: Path | None, what: str, words: tuple[str, ...], session: Session, found: Found
) -> tuple[Found, list[Preview]]:
    """The previews, and the file of a plan that is to be run later."""
    from tidegate.flows.preview import preview_found

    if file is None:
        return await preview_found(session, found)
    from tidegate.flows.saved import Making, preview_saving

    return await preview_saving(session, found, file, Making(what, words))
