"""Options of verbs that take a directory, a chart or an overlay as a unit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click
from click.decorators import FC

from tidegate.cli import options

if TYPE_CHECKING:
    from tidegate.flows.rendering import Setting
    from tidegate.model.identity import Identity
    from tidegate.model.policy import Policy
    from tidegate.model.unit import Unit

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class UnitOptions(TypedDict):
    """What these options come to."""

    name: str
    namespace: str
    values: tuple[str, ...]
    parameters: tuple[str, ...]
    ignore_waves: bool
    sync_options: tuple[str, ...]
    as_user: str
    as_groups: tuple[str, ...]
    ignore_differences: Path | None
    offline: bool
    maps: tuple[str, ...]


class Changes(TypedDict, total=False):
    """What a verb says of how a unit is run."""

    prunes: bool
    consents: bool
    carries_on: bool
    runs_hooks: bool
    allows_empty: bool
    deletes_contents: bool
    adopts_name: bool


class PruningOptions(TypedDict):
    """What the options come to that say what goes."""

    prune: bool
    confirm: bool
    allow_empty: bool
    yes_delete_contents: bool


class ClusterOptions(TypedDict):
    """What the options come to that say which clusters."""

    kubeconfig: str | None
    context: str | None
    clusters: tuple[tuple[str, str], ...]


class TargetOptions(ClusterOptions):
    """The same, with simulated ones."""

    sandbox: bool
    scenario: Path | None
    profile: Path | None
    operators: Path | None
    seed: int
    health_rules: Path | None


def _check_options(_ctx: click.Context, _option: click.Parameter, said: tuple[str, ...]) -> object:
    from tidegate.flows.pointing import what_is_wrong  # noqa: PLC0415 - only when one is given

    for option in said:
        if problem := what_is_wrong(option):
            raise click.BadParameter(problem)
    return said


def _check_clusters(
    ctx: click.Context, _option: click.Parameter, said: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Names with their contexts; a simulated cluster has only a name."""
    found: dict[str, str] = {}
    for text in said:
        name, sign, context = text.partition("=")
        if not name or (sign and not context):
            raise click.BadParameter(f"`{text}` is not NAME=CONTEXT")
        if name in found:
            raise click.BadParameter(f"there are two clusters `{name}`")
        if not sign and not ctx.params.get("sandbox"):
            raise click.BadParameter(f"`{text}` has no context: write NAME=CONTEXT")
        found[name] = context
    return tuple(found.items())


class WatchingOptions(TypedDict):
    """What the options come to that say how a rollout is watched."""

    timeout: str
    pace: float | None
    output: str


NAMING = (
    click.option("--name", default="", help="The unit's name; the directory's if not given."),
    click.option(
        "--namespace",
        default="default",
        show_default=True,
        help="Where objects go that name no namespace.",
    ),
)
UNIT = (
    *NAMING,
    options.values,
    click.option("--set", "parameters", multiple=True, help="A chart's value, NAME=VALUE."),
    click.option("--ignore-waves", is_flag=True, help="Apply everything at once."),
    click.option(
        "--sync-option",
        "sync_options",
        multiple=True,
        callback=_check_options,
        metavar="NAME=VALUE",
        help="An option of Argo CD for all objects, such as CreateNamespace=true; may be repeated.",
    ),
    click.option("--as", "as_user", default="", help="The user whose rights are used."),
    click.option("--as-group", "as_groups", multiple=True, help="A group of that user's."),
    click.option(
        "--ignore-differences", type=FILE, help="Fields that are no difference, in Argo CD's form."
    ),
    options.offline,
    options.repo_map,
)
CLUSTER = (
    click.option("--kubeconfig", default=None, help="The kubeconfig file to use."),
    click.option("--context", default=None, help="The context of the kubeconfig to use."),
    click.option(
        "--cluster",
        "clusters",
        multiple=True,
        callback=_check_clusters,
        metavar="NAME=CONTEXT",
        help="A cluster by a name of yours; may be repeated: DIR goes to each of them.",
    ),
)
SIMULATION = (
    click.option("--scenario", type=FILE, help="What goes wrong, and what is there already."),
    click.option("--profile", type=FILE, help="How long things take."),
    click.option("--operators", type=FILE, help="Rows for operators of your own."),
    click.option("--seed", default=0, help="Another seed, another run."),
)
HEALTH = (
    click.option(
        "--health-rules", type=FILE, help="Lua health checks, in the form of Argo CD's settings."
    ),
)
TARGET = (
    click.option("--sandbox", is_flag=True, is_eager=True, help="On a simulated cluster."),
    *CLUSTER,
    *SIMULATION,
    *HEALTH,
)


PRUNING = (
    click.option("--prune", is_flag=True, help="Delete what is the unit's and no longer in DIR."),
    click.option("--confirm", is_flag=True, help="Prune what asks for confirmation, too."),
    click.option("--allow-empty", is_flag=True, help="Prune though DIR has no objects."),
)
CONTENTS = (
    click.option(
        "--yes-delete-contents",
        is_flag=True,
        help="Delete namespaces and definitions though objects of others go along.",
    ),
)


def takes(*groups: tuple[Callable[[FC], FC], ...]) -> Callable[[FC], FC]:
    """Give a verb all options of these groups, in this order."""

    def dress(verb: FC) -> FC:
        for option in reversed([option for group in groups for option in group]):
            verb = option(verb)
        return verb

    return dress


def policy_of(told: UnitOptions, **changes: Unpack[Changes]) -> Policy:
    """How the unit is run, by what the user says of it."""
    from tidegate.flows.pointing import read_ignores, with_options  # noqa: PLC0415 - when a verb runs
    from tidegate.model.policy import Order, Policy  # noqa: PLC0415

    order = Order.NONE if told["ignore_waves"] else Order.WAVES
    policy = Policy(
        order=order,
        ignores=read_ignores(told["ignore_differences"]),
        identity=_identity_of(told),
        **changes,
    )
    return with_options(policy, told["sync_options"])


def _identity_of(told: UnitOptions) -> Identity | None:
    from tidegate.model.identity import Identity  # noqa: PLC0415 - only when a verb runs

    if told["as_groups"] and not told["as_user"]:
        raise click.BadParameter("a group needs a user: give --as, too", param_hint="--as-group")
    return Identity(user=told["as_user"], groups=told["as_groups"]) if told["as_user"] else None


def units_of(
    what: str, told: UnitOptions, policy: Policy, clusters: tuple[tuple[str, str], ...] = ()
) -> list[Unit]:
    """What the user points at, once for each cluster.

    Raises where nothing is there, before anybody is asked for more.
    """
    from tidegate.flows.pointing import point_at  # noqa: PLC0415 - only when a verb runs

    return [
        point_at(
            what,
            policy,
            cluster=name,
            name=told["name"],
            namespace=told["namespace"],
            values=told["values"],
            parameters=tuple(options.pair(parameter) for parameter in told["parameters"]),
        )
        for name, _ in clusters or (("", ""),)
    ]


def setting_of(told: UnitOptions) -> Setting:
    """How things may be had that are to be rendered."""
    from tidegate.flows.render import own_setting  # noqa: PLC0415 - only when a verb runs

    return own_setting(offline=told["offline"], maps=told["maps"])
