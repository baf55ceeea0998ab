"""Implementation of `suspend` and `resume`."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.cli import options
from tidegate.cli.confirm import print_target
from tidegate.cli.options import Flags
from tidegate.cli.outcome_codes import OUTCOME_CODES
from tidegate.cli.output import note, print_line
from tidegate.cli.progress import ProgressLine
from tidegate.cli.requests import cluster_targets, render_settings
from tidegate.cli.run_async import run_async
from tidegate.cli.unit_arguments import load_unit_trees
from tidegate.cli.unit_kinds import KINDS_BY_NOUN
from tidegate.clusters.session import Session, open_session
from tidegate.controllers.requests import REQUEST_TIMEOUT, ControllerAnswer, await_resumed
from tidegate.controllers.suspend import SuspensionResult, find_controllers, suspend
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.units.unit import UnitId
from tidegate.workspace.discovery.unit_tree import UnitTree
from tidegate.workspace.selection import SelectedResource

PROGRESS_WORDS = {True: ("suspending", "suspended"), False: ("resuming", "resumed")}


ResourceFinder = Callable[[tuple[UnitTree, ...]], list[SelectedResource]]
"""Selects units and sources of a repository."""


def suspend_or_resume(
    find: ResourceFinder, flags: Flags, progress_line: ProgressLine, *, suspends: bool
) -> int:
    """Suspend or resume the selected units and sources, and print progress like Flux."""
    resources = find(load_unit_trees(flags["path"], flags))
    progress_line.clear()
    print_target(flags)

    async def process_all() -> tuple[list[SuspensionResult], list[ControllerAnswer]]:
        async with open_session(cluster_targets(flags), render_settings(flags)) as session:
            results = []
            for resource in resources:
                _print_progress(
                    f"► {PROGRESS_WORDS[suspends][0]} {_resource_title(resource)}", flags
                )
                results.append(await suspend(resource, session, suspended=suspends))
                _print_progress(
                    f"✔ {resource.id.kind.lower()} {PROGRESS_WORDS[suspends][1]}", flags
                )
            return results, [] if suspends else await _wait_for_resumed(results, flags, session)

    results, answers = run_async(process_all())
    answers_by_id = {answer.id: answer for answer in answers}
    documents = [
        _result_document(result, answers_by_id.get(result.resource.id), suspends=suspends)
        for result in results
    ]
    options.print_result(flags["output"], documents, ())
    for result in results:
        _print_notes(result, suspends=suspends)
    return OUTCOME_CODES[
        (
            RolloutOutcome.PASSED
            if all(answer.is_done for answer in answers)
            else RolloutOutcome.FAILED
        )
    ]


async def _wait_for_resumed(
    resumed: list[SuspensionResult], flags: Flags, session: Session
) -> list[ControllerAnswer]:
    """Wait for the controllers of resumed units: always for one, for several if requested.

    Without a running controller, a note says that nothing reconciles the unit.
    """
    live_controllers, problems = await find_controllers(resumed, session)
    for line in problems:
        note(line)
    has_controller = {
        result.resource.id: (
            (result.resource.id.cluster, result.resource.id.kind) in live_controllers
        )
        for result in resumed
    }
    for result in resumed:
        unit_id = result.resource.id
        if not (has_controller[unit_id] or result.is_suspended_in_git or problems):
            note(
                f"no controller is running for `{unit_id}`; roll it out with"
                f" `tidegate {_rollout_command(unit_id)}`"
            )
    should_wait = flags["wait"]
    if not (len(resumed) == 1 if should_wait is None else should_wait):
        return []
    timeout = flags["timeout"] or REQUEST_TIMEOUT
    return [
        await await_resumed(
            result.live_resource, session, lambda line: _print_progress(line, flags), timeout
        )
        for result in resumed
        if result.live_resource is not None and has_controller[result.resource.id]
    ]


def _rollout_command(unit_id: UnitId) -> str:
    """Return the command that rolls out a unit, or the units of a source."""
    if unit_id.kind == "Application":
        return f"argocd app sync {unit_id.name}"
    noun = next(noun for noun, kinds in KINDS_BY_NOUN.items() if unit_id.kind in kinds)
    return f"flux reconcile {noun} {unit_id.name}"


def _resource_title(resource: SelectedResource) -> str:
    unit_id = resource.id
    return f"{unit_id.kind.lower()} {unit_id.name} in {unit_id.namespace} namespace"


def _print_notes(result: SuspensionResult, *, suspends: bool) -> None:
    """Print notes about unexpected states."""
    unit_id = result.resource.id
    if result.live_resource is None and suspends:
        note(f"`{unit_id}` is not in the cluster; the suspension is recorded for `tidegate sync`")
    if result.is_suspended_in_git and not suspends:
        note(
            f"Git still suspends `{unit_id}`, at {result.resource.location}: change it there",
            severity="warning",
        )


def _result_document(
    result: SuspensionResult, controller_answer: ControllerAnswer | None, *, suspends: bool
) -> dict[str, object]:
    unit_id = result.resource.id
    fields = {} if controller_answer is None else controller_answer.document
    return {
        **fields,
        "kind": unit_id.kind,
        "namespace": unit_id.namespace,
        "name": unit_id.name,
        "cluster": unit_id.cluster,
        "suspended": suspends or result.is_suspended_in_git,
        "record": result.live_resource is None,
    }


def _print_progress(line: str, flags: Flags) -> None:
    """Print progress to standard error, like the Flux command."""
    if flags["output"] != "json":
        print_line(line, err=True)
