"""Edits and commits of a scenario during a simulated rollout."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import structs
from msgspec.structs import replace

from tidegate.clusters.sandboxes import as_sandbox
from tidegate.clusters.session import Session
from tidegate.errors import Location, ScenarioError
from tidegate.files import PathEscapeError, resolve_within
from tidegate.model.finding import Finding
from tidegate.model.plans.drift import Drift
from tidegate.model.plans.missing_dependency import MissingDependency
from tidegate.model.plans.plan import EdgeReason, Plan, PlanFragment
from tidegate.model.rollouts.event import Event
from tidegate.model.simulation.commit import Commit
from tidegate.model.simulation.revision_sync import RevisionSync
from tidegate.model.times import Ms
from tidegate.model.units.rendering import NO_ROOT
from tidegate.model.units.semantics import Semantics
from tidegate.model.units.unit import UnitId
from tidegate.planning.plan import PlanResult
from tidegate.planning.preparation import prepare_plan
from tidegate.releases.history import HelmHistory, build_history, has_releases
from tidegate.removal.moved_releases import with_moved_releases
from tidegate.rollout.replan import regenerates_during_rollout
from tidegate.simulation.argocd_refresh import DoubleSync, RefreshSchedule, RevisionRollout
from tidegate.simulation.assumptions import reload_with_assumptions
from tidegate.simulation.self_heal import RunSync, SelfHeal, failed_edit_findings
from tidegate.workspace.request import LoadRequest, RenderFlags
from tidegate.workspace.workspace import Workspace

GIT_DIRECTORY = ".git"


class ScenarioCommits(msgspec.Struct, frozen=True):
    """A repository and the commits of its scenario."""

    root: Path
    commits: Sequence[Commit]
    folder: Path
    """Directory in which the later revisions are built."""

    def request_at(self, request: LoadRequest, elapsed: Ms) -> LoadRequest | None:
        """Return the request for the newest revision, or None if there was no commit yet."""
        applied = [commit for commit in self.commits if commit.at <= elapsed]
        if not applied:
            return None
        tree = self.folder / str(len(applied)) / self.root.name
        if not tree.exists():
            self._build_tree(tree, applied)
        relative_path = Path(request.path_or_url).resolve().relative_to(self.root)
        return replace(
            request,
            path_or_url=str(tree / relative_path),
            render_flags=RenderFlags({**request.render_flags, "load_root": str(tree)}),
        )

    def _build_tree(self, tree: Path, applied: Sequence[Commit]) -> None:
        def ignore_git(folder: str, names: list[str]) -> list[str]:
            return [GIT_DIRECTORY] if GIT_DIRECTORY in names and Path(folder) == self.root else []

        shutil.copytree(self.root, tree, symlinks=True, ignore=ignore_git)
        if (self.root / GIT_DIRECTORY).exists():
            (tree / GIT_DIRECTORY).symlink_to(self.root / GIT_DIRECTORY)
        for commit in applied:
            if commit.files_directory:
                shutil.copytree(commit.files_directory, tree, symlinks=True, dirs_exist_ok=True)
            for name in commit.removed_paths:
                _remove(tree, name, commit)


def _remove(tree: Path, name: str, commit: Commit) -> None:
    try:
        path = resolve_within(tree / name, tree)
    except PathEscapeError:
        path = tree
    if path == tree or not path.exists():
        problem, hint = f"file `{name}` not found", "write paths relative to the repository root"
        raise ScenarioError(
            "scenario.commit", problem, location=Location(commit.scenario_file), hint=hint
        )
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@contextmanager
def open_commits(root: Path, commits: Sequence[Commit]) -> Iterator[ScenarioCommits | None]:
    """Open the commits of a scenario; None if there are none. Raises ScenarioError."""
    if not commits:
        yield None
        return
    for commit in commits:
        if root == NO_ROOT:
            problem, hint = "commits need a local repository", "set PATH to a directory"
            raise ScenarioError(
                "scenario.commit", problem, location=Location(commit.scenario_file), hint=hint
            )
        if commit.files_directory and not Path(commit.files_directory).is_dir():
            problem = f"`{commit.files_directory}` is not a directory"
            hint = "write a path relative to the scenario file"
            raise ScenarioError(
                "scenario.commit", problem, location=Location(commit.scenario_file), hint=hint
            )
    with TemporaryDirectory(prefix="tidegate-commits-") as folder:
        yield ScenarioCommits(root, commits, Path(folder))


PREVENTS_START_CODES = ("units.unknown", "units.unread", "flux.itself", "argo.destination")
"""Codes of findings that prevent a unit from ever starting."""


class ScenarioChanges(msgspec.Struct):
    """A simulated rollout, with the changes that the scenario makes during and after it."""

    session: Session
    request: LoadRequest
    semantics: Semantics | None
    workspace: Workspace
    """The workspace that `plan_result` was made from."""
    plan_result: PlanResult
    """The newest plan that was rolled out."""
    commits: ScenarioCommits | None
    sync: RunSync
    until: Ms
    releases: HelmHistory
    """The release history of `plan_result`."""
    double_sync: DoubleSync
    missing_dependencies: tuple[MissingDependency, ...] = ()
    """Missing dependencies that newer plans added."""

    async def replan(self) -> PlanResult:
        """Return the plan of the current revision."""
        newer_request = self.commits and self.commits.request_at(self.request, self._elapsed)
        plan = self.plan_result.plan  # each attempt of a release is a new revision
        if newer_request or regenerates_during_rollout(plan) or has_releases(plan):
            self.workspace, newly_missing = await reload_with_assumptions(
                self.session, newer_request or self.request
            )
            plan_result = await prepare_plan(
                self.workspace.deployable_trees, self.session, semantics=self.semantics
            )
            plan_result = await with_moved_releases(plan_result, self.session)
            excluded = {
                **find_unstartable_units(self.workspace, plan_result),
                **plan_result.rejected,
            }
            plan = _with_adopted_names(plan_result.plan) if newer_request else plan_result.plan
            self.plan_result = replace(plan_result, plan=plan, rejected=excluded)
            self.missing_dependencies = tuple(
                dict.fromkeys((*self.missing_dependencies, *newly_missing))
            )
        return self.plan_result

    @property
    def _elapsed(self) -> Ms:
        return Ms(self.session.world.now() - self._start)

    @property
    def _start(self) -> Ms:
        sandbox = as_sandbox(self.session.raw_world)
        return sandbox.started_at if sandbox is not None else Ms(0)

    async def sync_commits(self, events: Sequence[Event]) -> tuple[RevisionSync, ...]:
        """Roll out each commit after the other, and return what units did with it."""
        revision_syncs: list[RevisionSync] = []
        world, config = self.session.world, self.session.targets.simulation
        schedule = RefreshSchedule.from_events(events, self._start, config.seed if config else 0)
        for commit in self.commits.commits if self.commits else ():
            committed = Ms(self._start + commit.at)
            if committed > self.until:
                break
            client = world.client()
            while world.now() < committed:
                await client.wait(committed)
            old, newer = self.plan_result, await self.replan()
            self.releases = await build_history(newer, self.session, stores_charts=False)
            changed = schedule.changed_units(old, newer, committed)
            revision_rollout = RevisionRollout(
                world, self.sync, newer.plan, committed, self.until, self.double_sync
            )
            revision_syncs += await revision_rollout.run(changed)
        return tuple(revision_syncs)

    async def heal_drifts(self, events: Sequence[Event]) -> tuple[tuple[Drift, ...], list[Finding]]:
        """Return the drifts, reverted or not, and findings about failed edits."""
        sandbox = as_sandbox(self.session.raw_world)
        if sandbox is None or not (sandbox.edits or sandbox.next_edit() is not None):
            return (), []
        self_heal = SelfHeal(self.plan_result.plan, self.session, sandbox, self.sync, self.until)
        return await self_heal.run(events), failed_edit_findings(sandbox)


def _with_adopted_names(plan: Plan) -> Plan:
    """Return the plan of a newer revision, whose units may be defined in another location."""
    units = tuple(
        structs.replace(unit, policy=structs.replace(unit.policy, adopt_name=True))
        for unit in plan.units
    )
    return Plan.from_fragment(
        PlanFragment(units=units, steps=plan.steps, edges=plan.edges, slots=plan.slots)
    )


def find_unstartable_units(workspace: Workspace, plan_result: PlanResult) -> dict[UnitId, str]:
    """Return the units that no semantics would start, with the reason.

    Units without objects that others wait for are included. Unavailable units count as started.
    """
    plan = plan_result.plan
    planned_units = {unit.id for unit in plan.units} - workspace.unavailable
    awaited = {
        dependency.unit for member in workspace.members for dependency in member.unit.dependencies
    }
    first_steps = {edge.before for edge in plan.edges if edge.reason is EdgeReason.ROLLOUT_STEP}
    awaited |= {step.unit for step in plan.steps if step.id in first_steps}
    unknown = {name: fault.reason for name, fault in plan_result.faults.items() if name in awaited}
    errors = workspace.faulty_units_for(PREVENTS_START_CODES)
    reasons = {**unknown, **{name: finding.message for name, finding in errors.items()}}
    return {name: reason for name, reason in reasons.items() if name in planned_units}
