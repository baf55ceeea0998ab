"""`tidegate plan`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
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


@click.command()
@click.argument("what", metavar="PATH")
@takes(NARROWING, UNIT, CLUSTER, PRUNING, CONTENTS)
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
    """
    doing = say_first(f"reading {what}", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.cli.consent import OFFLINE, say_target
    from tidegate.cli.exits import CHANGES
    from tidegate.cli.previewing import show_found
    from tidegate.flows.preview import preview_found

    chosen = (told["context"], told["kubeconfig"], told["clusters"] or None)
    told["sandbox"] = all(one is None for one in chosen)
    pointed = pointed_of(what, told)
    doing.say(f"comparing {what} with {'an empty cluster' if told['sandbox'] else 'what lives'}")
    found, previews = in_found(pointed, told, preview_found)
    doing.clear()
    say_target(told, OFFLINE if told["sandbox"] else "")
    code = show_found(found, previews, json=told["output"] == "json")
    has_changes = any(one.has_changes for one in previews)
    return CHANGES if told["exit_code"] and has_changes and not code else code
