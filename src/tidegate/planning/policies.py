"""The policies of units in one plan: what was read from files, changed pass by pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from msgspec.structs import replace

from tidegate.dialect.helm.action_policy import with_action
from tidegate.dialect.semantics import with_semantics
from tidegate.errors import PlanError
from tidegate.model.units.release_history import ReleaseAction
from tidegate.model.units.semantics import ARGOCD, ChildGates, Semantics
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree
from tidegate.workspace.rendering.result import RenderResult


def resolve_policies(
    members: Iterable[RenderedUnit],
    semantics: Semantics | None,
    *,
    is_partial: bool,
    is_removal: bool,
) -> list[RenderedUnit]:
    """Return the units with their policies in a plan. A pass sees what earlier ones decided.

    Without `semantics` each unit runs with those of its dialect. `is_partial`: only some objects
    are synced. `is_removal`: the units are deleted.
    """
    passes: list[Callable[[RenderedUnit], RenderedUnit]] = [
        _with_release_action,
        partial(_with_semantics, semantics=semantics),
        _with_rolling_step,
        *([_without_prune] if is_partial else []),
        *([_without_sync_windows] if is_removal else []),
    ]
    resolved = [*members]
    for change in passes:
        resolved = [change(member) for member in resolved]
    return _gate_on_children(resolved)


def with_drift_detection(unit_trees: Iterable[UnitTree]) -> tuple[UnitTree, ...]:
    """Return the trees with drift detection of releases that need no new revision."""

    def detect(member: RenderedUnit) -> RenderedUnit:
        release = member.unit.policy.release
        if release is None or not _is_deployed_release(member):
            return member
        return member.with_policy(replace(member.unit.policy, drift=release.drift))

    return tuple(unit_tree.map_members(detect) for unit_tree in unit_trees)


def _is_deployed_release(member: RenderedUnit) -> bool:
    """Return whether a unit is a release that is deployed as desired."""
    return isinstance(member.result, RenderResult) and member.result.is_deployed


def _with_semantics(member: RenderedUnit, *, semantics: Semantics | None) -> RenderedUnit:
    """Return the unit with these semantics.

    Unless Argo CD syncs it automatically, the sync counts as requested by a user.
    """
    native = member.unit.policy.semantics
    chosen = semantics or native
    if chosen.name == native.name:
        chosen = native.at_version(chosen)
    policy = with_semantics(member.unit.policy, chosen)
    requested = policy.semantics.name != ARGOCD.name or not policy.auto_sync
    return member.with_policy(replace(policy, is_manual=requested))


def _with_release_action(member: RenderedUnit) -> RenderedUnit:
    """Return a release with the policy of its pending action, and other units unchanged.

    Drift in ignored fields of a release is kept until there is a new revision.
    """
    policy, rendered = member.unit.policy, member.result
    revised = rendered.release if isinstance(rendered, RenderResult) else None
    if policy.release is None or revised is None:
        return member
    release = replace(
        policy.release,
        action=ReleaseAction.UPGRADE if revised.request.is_upgrade else ReleaseAction.INSTALL,
        chart=revised.chart_name,
        former_chart=revised.replaced_chart,
    )
    uses_lookup = isinstance(rendered, RenderResult) and bool(rendered.lookups)
    action_policy = replace(with_action(policy, release), uses_lookup=uses_lookup)
    ignores = policy.release.ignores
    if ignores and _is_deployed_release(member):
        action_policy = replace(
            action_policy, ignore_differences=ignores, respect_ignore_differences=True
        )
    return member.with_policy(action_policy)


def _without_sync_windows(member: RenderedUnit) -> RenderedUnit:
    """Return the unit without sync windows and project claim; its project scope stays.

    The uninstall of a release has its own timeout.
    """
    policy = replace(member.unit.policy, windows=())
    if policy.release is not None:
        timed = replace(policy, timeout=policy.release.uninstall.timeout)
        policy = with_semantics(timed, policy.semantics)
    unit = replace(member.unit, policy=policy, project_error="", project_request=None)
    return replace(member, unit=unit)


def _with_rolling_step(member: RenderedUnit) -> RenderedUnit:
    """Return the unit with its RollingSync step, if that applies.

    With Argo CD semantics RollingSync must be enabled. A step ends when its units are healthy,
    so their last waves are also gates. Argo CD's syncs have ended by then: it waits without
    a limit until the Applications are Healthy.
    """
    unit, step = member.unit, member.unit.rolling_sync_step
    if step is None:
        return member
    is_argo = unit.policy.semantics.name == ARGOCD.name
    if not step.is_enforced and (is_argo or not step.number):
        return replace(member, unit=replace(unit, rolling_sync_step=None, concurrency_group=""))
    semantics = replace(unit.policy.semantics, gates_last=True, tolerates_last_degraded=is_argo)
    return member.with_policy(replace(unit.policy, semantics=semantics))


def _gate_on_children(members: list[RenderedUnit]) -> list[RenderedUnit]:
    """Let ApplicationSets with RollingSync wait for all units: healthy when the last one is."""
    rollout_parents = {
        member.unit.parent for member in members if member.unit.rolling_sync_step is not None
    }
    return [
        _with_child_gates(member) if member.unit.id in rollout_parents else member
        for member in members
    ]


def _with_child_gates(member: RenderedUnit) -> RenderedUnit:
    policy = member.unit.policy
    semantics = replace(policy.semantics, child_gates=ChildGates.ALWAYS)
    return member.with_policy(replace(policy, semantics=semantics))


def _without_prune(member: RenderedUnit) -> RenderedUnit:
    """Return the unit without pruning, for a partial sync. Raises if `--prune` was requested."""
    unit = member.unit
    if unit.policy.prune and unit.is_path:
        raise partial_prune_error()
    return member.with_policy(replace(unit.policy, prune=False))


def partial_prune_error() -> PlanError:
    problem = "cannot prune during a partial sync"
    return PlanError("plan.partial", problem, hint="remove `--prune` or `--resource`")
