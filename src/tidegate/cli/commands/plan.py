"""`tidegate plan`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import (
    CLUSTER,
    DELETE_CONTENTS,
    PLAIN_UNIT,
    PRUNE,
    SELECTION,
    Flags,
    with_options,
)
from tidegate.cli.progress import show_progress

if TYPE_CHECKING:
    from tidegate.clusters.session import Session
    from tidegate.inspection.diff import Preview
    from tidegate.workspace.workspace import Workspace


@options.command()
@options.PATH
@with_options(SELECTION, PLAIN_UNIT, CLUSTER, PRUNE, DELETE_CONTENTS)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save the plan to a file for `sync --plan`. The file contains no secrets.",
)
@click.option("--exit-code", is_flag=True, help="Exit with 10 if there are changes.")
@options.CHANGES_ONLY
@options.OUTPUT
def plan(**flags: Unpack[Flags]) -> int:
    """Show what a rollout of PATH would do, step by step.

    PATH is an Argo CD or Flux repository, a directory of manifests, a Helm chart or a Kustomize
    overlay. Without --context, Tidegate compares it with an empty cluster. No output contains
    secrets.

    \b
    Examples:
      tidegate plan examples/first
      tidegate plan . --root clusters/prod
      helm template charts/web | tidegate plan -
      tidegate plan charts/web -f values-prod.yaml --context prod --exit-code
      tidegate plan overlays/prod --context prod --prune -o json
      tidegate plan overlays/prod --context prod --save prod.plan
    """
    path = flags["path"]
    progress_line = show_progress(f"reading {path}", quiet=flags["output"] == "json")
    from tidegate.cli.confirm import EMPTY_CLUSTER_TARGET
    from tidegate.cli.outcome_codes import HAS_CHANGES
    from tidegate.cli.preview import print_previews
    from tidegate.cli.requests import load_request, with_workspace

    cluster_flags = (flags["context"], flags["kubeconfig"], flags["clusters"] or None)
    flags["sandbox"] = flags["still"] = all(value is None for value in cluster_flags)
    request = load_request(path, flags)
    progress_line.update(
        f"comparing {path} with {'an empty cluster' if flags['sandbox'] else 'the cluster'}"
    )
    workspace, previews = with_workspace(
        request, flags, partial(_preview_plans, flags["save"], path, request.plain_unit_flags)
    )
    progress_line.clear()
    code = print_previews(
        workspace, previews, flags, EMPTY_CLUSTER_TARGET if flags["sandbox"] else ""
    )
    has_changes = any(preview.has_changes for preview in previews)
    return HAS_CHANGES if flags["exit_code"] and has_changes and not code else code


async def _preview_plans(
    file: Path | None,
    path: str,
    explicit_flags: tuple[str, ...],
    session: Session,
    workspace: Workspace,
) -> tuple[Workspace, list[Preview]]:
    """Return the previews, and write the plan file if requested."""
    from tidegate.inspection.unit_states import preview_with_states

    if file is None:
        return await preview_with_states(session, workspace)
    from tidegate.inspection.saved_plan import PlanInputs, preview_and_save

    return await preview_and_save(session, workspace, file, PlanInputs(path, explicit_flags))
