"""What every verb on a unit needs: which clusters, which units, and how things may be had."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

import click
from click.core import ParameterSource

from tidegate.cli.running import run
from tidegate.cli.unit_options import Given
from tidegate.flows.entering import Found, open_found
from tidegate.flows.generator_data import read_generator_data
from tidegate.flows.pointing import (
    STDIN,
    Pointed,
    Words,
    read_ignores,
    refuse_nowhere,
    standard_input,
    with_options,
)
from tidegate.flows.render import own_setting
from tidegate.flows.rendering import Setting
from tidegate.flows.session import Session, Target
from tidegate.flows.wiring import Simulation
from tidegate.model.identity import Identity
from tidegate.model.policy import Order, Policy, forcing

Answer = TypeVar("Answer")
COMMANDLINE = ParameterSource.COMMANDLINE
PLAIN = (
    *("name", "namespace", "values", "parameters", "string_parameters", "file_parameters"),
    *("sync_options", "ignore_waves"),
)
"""What is said of a plain unit, and of nothing else."""
SIMULATED = ("scenario", "profile", "operators", "seed", "pace")
"""What is said of a simulated cluster, and of nothing else."""


def in_found(
    pointed: Pointed, told: Given, ask: Callable[[Session, Found], Awaitable[Answer]]
) -> Answer:
    """Ask about what is pointed at, as it is for the clusters that are chosen; let go of them."""

    async def asked() -> Answer:
        async with open_found(pointed, target_of(told), setting_of(told)) as (session, found):
            return await ask(session, found)

    return run(asked())


def target_of(told: Given) -> Target:
    """The clusters that are chosen: simulated ones, or those of a kubeconfig."""
    _refuse_both(told)
    return Target(
        kubeconfig=told.get("kubeconfig"),
        context=told.get("context"),
        clusters=told.get("clusters", ()),
        simulation=simulation_of(told) if told.get("sandbox") else None,
        health_rules=told.get("health_rules"),
    )


def _refuse_both(told: Given) -> None:
    """Raise where something is said of a real cluster and something of a simulated one."""
    context = click.get_current_context()
    options = {one.name: one.opts[-1] for one in context.command.params}
    said = {one for one in options if context.get_parameter_source(one or "") is COMMANDLINE}
    if "sandbox" not in said:
        for name in (one for one in SIMULATED if one in said and "sandbox" in options):
            problem = f"{options[name]} is for a simulated cluster: add --sandbox"
            raise click.UsageError(problem)
        return
    if (real := said & {"context", "kubeconfig"}) or any(dict(told.get("clusters", ())).values()):
        name = options[min(real)] if real else "--cluster NAME=CONTEXT"
        raise click.UsageError(f"{name} is for a real cluster, and --sandbox is a simulated one")


def simulation_of(told: Given) -> Simulation:
    return Simulation(
        scenario=told.get("scenario"),
        profile=told.get("profile"),
        operators=told.get("operators"),
        seed=told.get("seed", 0),
        start=told.get("start"),
        still=told.get("still", False),
    )


def setting_of(told: Given) -> Setting:
    """How things may be had that are to be rendered."""
    return own_setting(offline=told.get("offline", False), maps=told.get("maps", ()))


def pointed_of(what: str, told: Given, *, checks: bool = True) -> Pointed:
    """What the user points at, and what is said of it; `-` is what is piped in.

    Raises where nothing is there, before anybody is asked for more, if it `checks` that.
    """
    if not what:
        raise click.BadParameter("it is empty", param_hint="PATH")
    if what == STDIN:
        what = click.get_current_context().with_resource(standard_input())
    pointed = Pointed(
        what=what,
        words=words_of(told),
        policy=_policy_of(told),
        said=_said(),
        clusters=tuple(name for name, _ in told.get("clusters", ())) or ("",),
        entry=told.get("entry", ""),
        units=told.get("units", ()),
        generator_data=read_generator_data(told.get("generator_data")),
    )
    if checks:
        refuse_nowhere(pointed)
    return pointed


def _said() -> tuple[str, ...]:
    """The options for plain units that somebody has written down."""
    context = click.get_current_context()
    options = {one.name: one.opts[-1] for one in context.command.params}
    written = (one for one in PLAIN if context.get_parameter_source(one) is COMMANDLINE)
    return tuple(options[one] for one in written)


def words_of(told: Given) -> Words:
    """What is said of that which is pointed at."""
    said = {name: value for name, value in told.items() if name in Words.__annotations__}
    return cast("Words", said)


def _policy_of(told: Given) -> Policy:
    """How the unit is run, by what the user says of it."""
    policy = Policy(
        order=Order.NONE if told.get("ignore_waves") else Order.WAVES,
        ignores=read_ignores(told.get("ignore_differences")),
        prunes=told.get("prune", False),
        consents=told.get("confirm", False),
        allows_empty=told.get("allow_empty", False),
        deletes_contents=told.get("yes_delete_contents", False),
        carries_on=told.get("on_failure") == "continue",
        runs_hooks=told.get("hooks", False),
        adopts_name=told.get("adopt_name", False),
        identity=_identity_of(told),
    )
    return forcing(with_options(policy, told.get("sync_options", ())), told.get("force", False))


def _identity_of(told: Given) -> Identity | None:
    """Whose rights are used, where they are not the caller's own."""
    user, groups = told.get("as_user", ""), told.get("as_groups", ())
    if groups and not user:
        raise click.BadParameter("a group needs a user: give --as, too", param_hint="--as-group")
    return Identity(user=user, groups=groups) if user else None
