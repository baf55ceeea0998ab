"""Requests built from command line flags: clusters, units and render settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

import click
from click.core import ParameterSource
from msgspec.structs import replace

from tidegate.cli.options import Flags
from tidegate.cli.run_async import run_async
from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.clusters.session import ClusterTargets, Session
from tidegate.dialect.argo.options import with_sync_options
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.model.units.policy import Order, Policy, with_force
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.generator_data import read_generator_data
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.workspace.request import (
    STDIN,
    LoadRequest,
    RenderFlags,
    check_path_exists,
    read_ignore_differences,
    stdin_manifests,
)
from tidegate.workspace.workspace import Workspace, open_workspace

ResultT = TypeVar("ResultT")
COMMANDLINE = ParameterSource.COMMANDLINE
PLAIN_UNIT_FLAGS = (
    *("name", "namespace", "values", "parameters", "string_parameters", "file_parameters"),
    *("sync_options", "ignore_waves"),
)
"""Flags of a plain unit only."""
SIMULATION_FLAGS = ("scenario", "profile", "operator_defs", "seed", "speed")
"""Flags of a simulated cluster only."""


def with_workspace(
    request: LoadRequest,
    flags: Flags,
    function: Callable[[Session, Workspace], Awaitable[ResultT]],
    target: ClusterTargets | None = None,
) -> ResultT:
    """Call a function with an open session and workspace, and close them.

    By default the target is the one that the flags select.
    """
    target = target or cluster_targets(flags)

    async def call() -> ResultT:
        async with open_workspace(request, target, render_settings(flags)) as (session, workspace):
            return await function(session, workspace)

    return run_async(call())


def cluster_targets(flags: Flags) -> ClusterTargets:
    """Return the selected clusters: simulated ones, or contexts of a kubeconfig."""
    _reject_mixed_targets(flags)
    return ClusterTargets(
        kubeconfig=flags.get("kubeconfig"),
        context=flags.get("context"),
        clusters=flags.get("clusters", ()),
        simulation=simulation_config(flags) if flags.get("sandbox") else None,
        health_rules=flags.get("health_rules"),
    )


def static_targets(flags: Flags) -> ClusterTargets:
    """Return empty clusters that are only read, for commands that need no cluster."""
    return ClusterTargets(
        clusters=flags.get("clusters", ()),
        simulation=replace(simulation_config(flags), is_static=True),
        health_rules=flags.get("health_rules"),
    )


def _reject_mixed_targets(flags: Flags) -> None:
    """Raise if flags of a real and of a simulated cluster are mixed."""
    context = click.get_current_context()
    options = {parameter.name: parameter.opts[-1] for parameter in context.command.params}
    explicit = {flag for flag in options if context.get_parameter_source(flag or "") is COMMANDLINE}
    if "sandbox" not in explicit:
        for name in (
            flag for flag in SIMULATION_FLAGS if flag in explicit and "sandbox" in options
        ):
            problem = f"{options[name]} needs a simulated cluster: add --sandbox"
            raise click.UsageError(problem)
        return
    if (real_flags := explicit & {"context", "kubeconfig"}) or any(
        dict(flags.get("clusters", ())).values()
    ):
        name = options[min(real_flags)] if real_flags else "--cluster NAME=CONTEXT"
        raise click.UsageError(
            f"{name} selects a real cluster and cannot be combined with --sandbox"
        )


def simulation_config(flags: Flags) -> SimulationConfig:
    return SimulationConfig(
        scenario=flags.get("scenario"),
        profile=flags.get("profile"),
        operators=flags.get("operator_defs"),
        seed=flags.get("seed", 0),
        start=flags.get("start"),
        has_controllers=not flags.get("still", False),
    )


def render_settings(flags: Flags) -> RenderSettings:
    """Return how sources may be fetched and decrypted."""
    return user_render_settings(offline=flags.get("offline", False), maps=flags.get("maps", ()))


def load_request(path: str, flags: Flags, *, check_exists: bool = True) -> LoadRequest:
    """Return the request to load a path; `-` is standard input.

    If `check_exists`, raises if the path does not exist, before anything else is asked.
    """
    if not path:
        raise click.BadParameter("PATH is empty", param_hint="PATH")
    if path == STDIN:
        path = click.get_current_context().with_resource(stdin_manifests())
    request = LoadRequest(
        path_or_url=path,
        render_flags=render_flags(flags),
        policy=_policy_from_flags(flags),
        plain_unit_flags=_explicit_flags(),
        clusters=tuple(name for name, _ in flags.get("clusters", ())) or ("",),
        entry=flags.get("root_unit", ""),
        units=flags.get("units", ()),
        selection=flags.get("selection"),
        generator_data=read_generator_data(flags.get("generator_data")),
    )
    if check_exists:
        check_path_exists(request)
    return request


def _explicit_flags() -> tuple[str, ...]:
    """Return the flags of plain units that are on the command line."""
    context = click.get_current_context()
    options = {parameter.name: parameter.opts[-1] for parameter in context.command.params}
    explicit = (
        flag for flag in PLAIN_UNIT_FLAGS if context.get_parameter_source(flag) is COMMANDLINE
    )
    return tuple(options[flag] for flag in explicit)


def render_flags(flags: Flags) -> RenderFlags:
    """Return the render flags of a plain unit."""
    values = {name: value for name, value in flags.items() if name in RenderFlags.__annotations__}
    return cast("RenderFlags", values)


def _policy_from_flags(flags: Flags) -> Policy:
    """Return the policy from the flags of a unit."""
    policy = Policy(
        order=Order.NONE if flags.get("ignore_waves") else Order.WAVES,
        ignore_differences=read_ignore_differences(flags.get("ignore_differences")),
        prune=flags.get("prune", False),
        confirmed=flags.get("confirmed", False),
        allow_empty=flags.get("allow_empty", False),
        delete_contents=flags.get("yes_delete_contents", False),
        continue_on_failure=flags.get("on_failure") == "continue",
        runs_hooks=flags.get("force_hooks", False),
        adopt_name=flags.get("force_owner", False),
        identity=_identity_from_flags(flags),
    )
    return with_force(
        with_sync_options(policy, flags.get("sync_options", ())), flags.get("force", False)
    )


def _identity_from_flags(flags: Flags) -> ImpersonatedUser | None:
    """Return the user and groups to impersonate; None for the caller."""
    user, groups = flags.get("as_user", ""), flags.get("as_groups", ())
    if groups and not user:
        raise click.BadParameter("a group needs a user: give --as, too", param_hint="--as-group")
    return ImpersonatedUser(user=user, groups=groups) if user else None
