"""Delegation to a running Argo CD or Flux, with the requests of its own command line."""

from __future__ import annotations

import getpass
from collections.abc import Awaitable, Callable
from itertools import product

from tidegate.cli import options
from tidegate.cli.confirm import print_target
from tidegate.cli.options import Flags
from tidegate.cli.outcome_codes import OUTCOME_CODES
from tidegate.cli.output import print_line
from tidegate.cli.requests import cluster_targets, render_settings
from tidegate.cli.run_async import run_async
from tidegate.cli.unit_arguments import load_units
from tidegate.clusters.session import Session, open_session
from tidegate.controllers.requests import (
    REQUEST_TIMEOUT,
    ControllerAnswer,
    are_controllers_running,
    build_sync_request,
    get_live_resources,
    get_live_sources,
    reconcile,
    refresh,
    sync_with_argocd,
)
from tidegate.controllers.takeover import find_running_controllers
from tidegate.errors import UsageError
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.workspace.discovery.unit_tree import UnitTree
from tidegate.workspace.request import UnitSelection
from tidegate.workspace.selection import SelectedResource, list_resources, select_resources
from tidegate.workspace.workspace import Workspace

ControllerRequest = Callable[
    [Session, list[SelectedResource], tuple[UnitTree, ...]], Awaitable[list[ControllerAnswer]]
]


def reconcile_by_controller(selection: UnitSelection, flags: Flags) -> int | None:
    """Reconcile with the running Flux controllers; return None if none is running."""

    async def request(
        session: Session, resources: list[SelectedResource], unit_trees: tuple[UnitTree, ...]
    ) -> list[ControllerAnswer]:
        live_objects, timeout = (
            await get_live_resources(resources, session),
            flags["timeout"] or REQUEST_TIMEOUT,
        )
        answers = []
        if flags.get("with_source"):
            sources = await get_live_sources(live_objects, list_resources(unit_trees), session)
            answers = await reconcile(sources, session, _progress_printer(flags), timeout)
        if all(answer.is_done for answer in answers):
            answers += await reconcile(live_objects, session, _progress_printer(flags), timeout)
        return answers

    return _delegate(selection, flags, request)


def sync_by_argocd(selection: UnitSelection, flags: Flags) -> int | None:
    """Sync with a running Argo CD, one Application after another; None if it is not running."""

    async def request(
        session: Session, resources: list[SelectedResource], unit_trees: tuple[UnitTree, ...]
    ) -> list[ControllerAnswer]:
        positions = {
            resource.id: position for position, resource in enumerate(list_resources(unit_trees))
        }
        live_objects = await get_live_resources(
            sorted(resources, key=lambda resource: positions[resource.id]), session
        )
        operation = build_sync_request(
            by=getpass.getuser(),
            revision=flags["at"],
            prunes=flags["prune"],
            forces=flags["force"],
            resources=flags["resources"],
        )
        answers: list[ControllerAnswer] = []
        for live in live_objects:
            answers.append(
                await sync_with_argocd(
                    live, operation, session, _progress_printer(flags), flags["timeout"]
                )
            )
            if not answers[-1].is_done:
                break
        return answers

    code = _delegate(selection, flags, request)
    if code is None and flags["at"]:
        problem = "--revision needs a running Argo CD; without one, Tidegate rolls out the checkout"
        hint = f"check it out with `git worktree add ../at {flags['at']}` and add `-C ../at`"
        raise UsageError("usage.revision", problem, hint=hint)
    return code


async def refresh_by_argocd(session: Session, workspace: Workspace, *, hard: bool) -> None:
    """Refresh the selected Application in a running Argo CD; do nothing if none is running."""
    resources = [
        resource
        for resource in list_resources(workspace.repository_trees)
        if str(resource.id) in workspace.selected_names
    ]
    if await are_controllers_running(resources, session):
        for live in await get_live_resources(resources, session):
            await refresh(live, session, hard=hard)


def _delegate(selection: UnitSelection, flags: Flags, request: ControllerRequest) -> int | None:
    """Return the exit code of a request to the controllers.

    Returns None if the rollout runs from here or no controller is running. The repository is read
    only for a running controller: otherwise the rollout reads it.
    """
    if is_from_here(flags):
        return None

    async def request_or_none() -> list[ControllerAnswer] | None:
        async with open_session(cluster_targets(flags), render_settings(flags)) as session:
            clusters = session.targets.contexts
            running, _ = await find_running_controllers(product(clusters, selection.kinds), session)
            if not running:
                return None
            unit_trees = await load_units(flags["path"], flags)
            resources = select_resources(unit_trees, selection)
            if not await are_controllers_running(resources, session):
                return None
            print_target(flags)
            return await request(session, resources, unit_trees)

    answers = run_async(request_or_none())
    if answers is None:
        return None
    options.print_result(flags["output"], [answer.document for answer in answers], ())
    return OUTCOME_CODES[
        RolloutOutcome.PASSED
        if all(answer.is_done for answer in answers)
        else RolloutOutcome.FAILED
    ]


def is_from_here(flags: Flags) -> bool:
    """Return whether the user asks for a rollout without the controllers."""
    return any(flags[name] for name in ("sandbox", "dry_run", "take_over", "hand_back"))


def _progress_printer(flags: Flags) -> Callable[[str], None]:
    """Return a function that prints progress to standard error, silent for JSON output."""
    is_json = flags["output"] == "json"
    return lambda line: None if is_json else print_line(line, err=True)
