"""Delegation to a running Argo CD or Flux, which is asked like its own command would ask it."""

from __future__ import annotations

import getpass
from collections.abc import Awaitable, Callable, Sequence

from tidegate.cli import options
from tidegate.cli.confirm import print_target
from tidegate.cli.options import Flags
from tidegate.cli.outcome_codes import OUTCOME_CODES
from tidegate.cli.output import print_line
from tidegate.cli.requests import cluster_targets, render_settings
from tidegate.cli.run_async import run_async
from tidegate.cli.unit_arguments import load_unit_trees
from tidegate.cli.unit_kinds import KINDS_BY_NOUN
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
    suspended_error,
    sync_with_argocd,
)
from tidegate.errors import UsageError
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.planning.exclusions import find_suspended
from tidegate.workspace.discovery.unit_tree import UnitTree
from tidegate.workspace.selection import SelectedResource, list_resources, select_resources

ControllerRequest = Callable[[Session], Awaitable[list[ControllerAnswer]]]


def reconcile_by_controller(
    resources: list[SelectedResource], unit_trees: tuple[UnitTree, ...], flags: Flags
) -> int | None:
    """Reconcile with the running Flux controllers; return None if none is running."""

    async def request(session: Session) -> list[ControllerAnswer]:
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

    return _delegate(resources, flags, request)


def sync_by_argocd(
    resources: list[SelectedResource], unit_trees: tuple[UnitTree, ...], flags: Flags
) -> int | None:
    """Sync with a running Argo CD, one Application after another; None if it is not running."""
    positions = {
        resource.id: position for position, resource in enumerate(list_resources(unit_trees))
    }

    async def request(session: Session) -> list[ControllerAnswer]:
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

    code = _delegate(resources, flags, request)
    if code is None and flags["at"]:
        problem = "--revision needs a running Argo CD; without one, Tidegate rolls out the checkout"
        hint = f"check it out with `git worktree add ../at {flags['at']}` and add `-C ../at`"
        raise UsageError("usage.revision", problem, hint=hint)
    return code


def refresh_by_argocd(name: str, flags: Flags, *, hard: bool) -> None:
    """Refresh an Application in a running Argo CD; do nothing if none is running."""
    unit_trees = load_unit_trees(flags["path"], flags)
    resources = select_resources(
        unit_trees, KINDS_BY_NOUN["application"], (name,), namespace=flags["namespace_filter"]
    )

    async def request() -> None:
        async with open_session(cluster_targets(flags), render_settings(flags)) as session:
            if await are_controllers_running(resources, session):
                (live,) = await get_live_resources(resources, session)
                await refresh(live, session, hard=hard)

    run_async(request())


def _delegate(
    resources: Sequence[SelectedResource], flags: Flags, request: ControllerRequest
) -> int | None:
    """Return the exit code of a request to the controllers.

    Returns None if the rollout runs from here or no controller is running. A suspended unit is
    refused in both cases: a caller who names it expects a rollout.
    """
    if flags["sandbox"] or flags["dry_run"] or flags["take_over"] or flags["hand_back"]:
        return None

    async def request_or_none() -> list[ControllerAnswer] | None:
        async with open_session(cluster_targets(flags), render_settings(flags)) as session:
            if not await are_controllers_running(resources, session):
                for unit_id in await find_suspended(
                    (resource.id for resource in resources), session
                ):
                    raise suspended_error(unit_id)
                return None
            print_target(flags)
            return await request(session)

    answers = run_async(request_or_none())
    if answers is None:
        return None
    options.print_result(flags["output"], [answer.document for answer in answers], ())
    return OUTCOME_CODES[
        RolloutOutcome.PASSED
        if all(answer.is_done for answer in answers)
        else RolloutOutcome.FAILED
    ]


def _progress_printer(flags: Flags) -> Callable[[str], None]:
    """Return a function that prints progress to standard error, silent for JSON output."""
    is_json = flags["output"] == "json"
    return lambda line: None if is_json else print_line(line, err=True)
