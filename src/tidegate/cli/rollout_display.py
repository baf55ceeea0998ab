"""The terminal of a rollout, shared by `sync`, `delete` and `jobs rerun`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from msgspec.structs import replace

from tidegate.cli import options
from tidegate.cli.assumptions import print_assumptions
from tidegate.cli.confirm import confirm, print_target
from tidegate.cli.options import Flags
from tidegate.cli.output import note
from tidegate.cli.progress import ProgressLine
from tidegate.cli.requests import cluster_targets, render_settings
from tidegate.cli.screen.screen import Screen
from tidegate.clusters.session import ClusterTargets, Session
from tidegate.errors import TidegateError
from tidegate.model.finding import Finding
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.planning.refusals import preflight_findings
from tidegate.report.rollout.explain import needs_explanation, rollout_explanation
from tidegate.report.rollout.summary import NextCommands
from tidegate.rollout.record import RecordingObserver, RunRecorder
from tidegate.rollout.run import RolloutOptions, roll_out
from tidegate.simulation.assumptions import open_with_assumptions
from tidegate.workspace.request import LoadRequest
from tidegate.workspace.workspace import Workspace

DEFAULT_SPEED = 20.0
"""Simulated seconds per real second on a terminal."""


@asynccontextmanager
async def on_screen(
    request: LoadRequest, flags: Flags, progress_line: ProgressLine, next_activity: str
) -> AsyncIterator[tuple[RolloutTerminal, Session, Workspace]]:
    """Yield a terminal, a session and a workspace for the selected clusters.

    The progress line shows the connection, then `next_activity`.
    """
    target = cluster_targets(flags)
    async with Screen.for_stream(sys.stdout, os.environ, json=flags["output"] == "json") as screen:
        screen.set_title(request.path_or_url, _next_commands(target, RolloutOutcome.STOPPED))
        if target.simulation is None:
            names = [context for context in target.contexts.values() if context]
            progress_line.update(
                f"connecting to {'context ' + ', '.join(names) if names else 'the cluster'}"
            )
        empty_cluster = flags.get("empty_cluster", True)
        opening = open_with_assumptions(
            request, target, render_settings(flags), empty_cluster=empty_cluster
        )
        async with opening as (session, workspace, missing):
            if "empty_cluster" in flags:
                progress_line.clear()
                is_json = flags["output"] == "json"
                print_assumptions(
                    missing, empty_cluster=empty_cluster, is_json=is_json, to_stderr=True
                )
            title = ", ".join(str(unit_tree.root_id) for unit_tree in workspace.unit_trees)
            screen.set_title(title, _next_commands(target, RolloutOutcome.STOPPED))
            progress_line.update(next_activity)
            yield RolloutTerminal(screen, session, flags, progress_line), session, workspace
        screen.raise_if_output_failed()


class RolloutTerminal:
    """The terminal of the user of a rollout: an `actions.user.RolloutUser`."""

    def __init__(
        self, screen: Screen, session: Session, flags: Flags, progress_line: ProgressLine
    ) -> None:
        self._screen = screen
        self._session = session
        self._flags = flags
        self._progress_line = progress_line
        self.recorder: RunRecorder | None = None
        """Records the rollout, if that is requested."""

    @property
    def progress(self) -> RolloutProgress:
        return self._screen.progress

    def show_findings(self, findings: Iterable[Finding]) -> None:
        """Print the target and the findings of a plan."""
        self._progress_line.clear()
        print_target(self._flags)
        options.print_findings(findings)

    def warn(self, errors: Iterable[TidegateError]) -> None:
        options.print_warnings(errors)

    def note(self, messages: Iterable[str]) -> None:
        for message in messages:
            note(message)

    def confirm(self, lines: Iterable[str], question: str) -> None:
        """Ask the user. Raises if the user declines."""
        with self._screen.default_signals():
            confirm(lines, question)

    async def roll_out(self, plan: Plan, rollout_options: RolloutOptions) -> RolloutOutcome:
        """Run a plan on the screen, record it if requested, and return its outcome."""
        screen, recorder, flags = self._screen, self.recorder, self._flags
        target = self._session.targets
        default_speed = DEFAULT_SPEED if screen.is_live and target.simulation is not None else None
        speed = default_speed if flags["speed"] is None else flags["speed"] or None
        rollout_options = replace(
            rollout_options,
            pace=speed,
            timeout=flags["timeout"],
            cluster_patience=flags["cluster_patience"],
            explain_gates=True,
            stream_logs=flags["logs"],
        )
        observer = screen if recorder is None else RecordingObserver(screen, recorder)
        rollout_result = await roll_out(plan, self._session, rollout_options, observer)
        screen.finish(rollout_result.evidence, _next_commands(target, rollout_result.outcome))
        if recorder is not None and needs_explanation(screen.progress):
            recorder.add(rollout_explanation(screen.progress, rollout_result.evidence))
        options.print_findings(preflight_findings(screen.progress, rollout_result.evidence))
        self.note(rollout_result.unreported)
        return rollout_result.outcome


def _next_commands(target: ClusterTargets, outcome: RolloutOutcome) -> NextCommands:
    """Return the commands to run next: the same one, and kubectl for the same cluster.

    `--ignore-waves` is dropped after a failure: the rollout may pass with its order.
    """
    can_resume = outcome in {
        RolloutOutcome.STOPPED,
        RolloutOutcome.TIMED_OUT,
        RolloutOutcome.SUPERSEDED,
        RolloutOutcome.UNREACHABLE,
    }
    arguments = [
        argument for argument in sys.argv[1:] if can_resume or argument != "--ignore-waves"
    ]
    context_flags = [] if target.context is None else ["--context", target.context]
    kubeconfig_flags = [] if target.kubeconfig is None else ["--kubeconfig", target.kubeconfig]
    is_real = target.simulation is None
    return NextCommands(
        repeat=shlex.join(["tidegate", *arguments]),
        kubectl=shlex.join(["kubectl", *kubeconfig_flags, *context_flags]) if is_real else "",
        can_resume=is_real,
    )
