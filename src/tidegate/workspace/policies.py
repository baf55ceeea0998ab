"""The policies of units before planning: what was read from Git, changed pass by pass.

`planning.policies` goes on with what a plan decides, such as the semantics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from msgspec.structs import replace

from tidegate.dialect.argo.argocd_cm import ArgoCDConfig, read_argocd_config, with_argocd_config
from tidegate.dialect.semantics import with_controller_settings
from tidegate.model.config import ControllerSetting
from tidegate.model.units.policy import Policy, Tracking, with_force
from tidegate.workspace.discovery.controller_settings import is_rolling_sync_off
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree

POLICY_FLAGS = (
    *("prune", "confirmed", "allow_empty", "delete_contents"),
    *("continue_on_failure", "runs_hooks", "adopt_name"),
)
"""Fields of the policy that a flag of the user sets for all units."""


def configure_units(
    unit_trees: Iterable[UnitTree],
    settings: Mapping[str, ControllerSetting],
    flags: Policy,
    *,
    gates_children: bool,
) -> tuple[UnitTree, ...]:
    """Return the trees with the settings of controllers and the flags of the user applied.

    `gates_children`: there is a health rule for Applications. A pass sees what earlier ones did.
    """
    config = read_argocd_config(settings)
    passes: list[Callable[[RenderedUnit], RenderedUnit]] = [
        partial(_with_flux_settings, settings=settings),
        partial(_with_argocd_config, config=config, gates_children=gates_children),
        *([_without_rolling_sync] if is_rolling_sync_off(settings) else []),
        partial(_with_flags, flags=flags),
    ]
    unit_trees = tuple(unit_trees)
    for change in passes:
        unit_trees = tuple(unit_tree.map_members(change) for unit_tree in unit_trees)
    return unit_trees


def _with_flux_settings(
    member: RenderedUnit, *, settings: Mapping[str, ControllerSetting]
) -> RenderedUnit:
    unit = member.unit
    return member.with_policy(with_controller_settings(unit.policy, settings, unit.id.namespace))


def _with_argocd_config(
    member: RenderedUnit, *, config: ArgoCDConfig, gates_children: bool
) -> RenderedUnit:
    unit = member.unit
    if unit.policy.tracking is not Tracking.ARGO:
        return member
    is_child = unit.parent is not None and unit.parent.kind == unit.id.kind
    return member.with_policy(
        with_argocd_config(unit.policy, config, gates_children=gates_children, is_child=is_child)
    )


def _without_rolling_sync(member: RenderedUnit) -> RenderedUnit:
    """Return the unit with a RollingSync step that is not in force under Argo CD semantics."""
    step = member.unit.rolling_sync_step
    if step is None:
        return member
    unit = replace(member.unit, rolling_sync_step=replace(step, is_enforced=False))
    return replace(member, unit=unit)


def _with_flags(member: RenderedUnit, *, flags: Policy) -> RenderedUnit:
    """Return the unit with the flags of the user added to its policy."""
    policy = member.unit.policy
    if policy is flags:
        return member
    with_flags = replace(
        policy,
        **{name: getattr(policy, name) or getattr(flags, name) for name in POLICY_FLAGS},
        ignore_differences=(*policy.ignore_differences, *flags.ignore_differences),
        object_options=with_force(policy, flags.object_options.force).object_options,
        identity=policy.identity or flags.identity,
    )
    return member.with_policy(with_flags)
