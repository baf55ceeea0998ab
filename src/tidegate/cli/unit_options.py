"""Options of verbs that take a directory, a chart or an overlay as a unit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click
from click.decorators import FC

from tidegate.cli import options

if TYPE_CHECKING:
    from tidegate.flows.units import Chosen

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class UnitOptions(TypedDict):
    """What these options come to."""

    name: str
    namespace: str
    values: tuple[str, ...]
    parameters: tuple[str, ...]
    ignore_waves: bool
    sync_options: tuple[str, ...]
    ignore_differences: Path | None
    offline: bool
    maps: tuple[str, ...]


class TargetOptions(TypedDict):
    """What the options come to that say where."""

    sandbox: bool
    kubeconfig: str | None
    context: str | None
    scenario: Path | None
    profile: Path | None
    operators: Path | None
    seed: int
    health_rules: Path | None


def _check_options(_ctx: click.Context, _option: click.Parameter, said: tuple[str, ...]) -> object:
    from tidegate.dialect.options import what_is_wrong  # noqa: PLC0415 - only when one is given

    for option in said:
        if problem := what_is_wrong(option):
            raise click.BadParameter(problem)
    return said


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
    click.option(
        "--ignore-differences", type=FILE, help="Fields that are no difference, in Argo CD's form."
    ),
    options.offline,
    options.repo_map,
)
CLUSTER = (
    click.option("--kubeconfig", default=None, help="The kubeconfig file to use."),
    click.option("--context", default=None, help="The context of the kubeconfig to use."),
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
    click.option("--sandbox", is_flag=True, help="On a simulated cluster."),
    *CLUSTER,
    *SIMULATION,
    *HEALTH,
)


PRUNING = (
    click.option("--prune", is_flag=True, help="Delete what is the unit's and no longer in DIR."),
    click.option("--confirm", is_flag=True, help="Prune what asks for confirmation, too."),
)


def takes(*groups: tuple[Callable[[FC], FC], ...]) -> Callable[[FC], FC]:
    """Give a verb all options of these groups, in this order."""

    def dress(verb: FC) -> FC:
        for option in reversed([option for group in groups for option in group]):
            verb = option(verb)
        return verb

    return dress


def chosen_of(what: str, told: UnitOptions) -> Chosen:
    """What the user points at. Raises where nothing is there, before anybody is asked for more."""
    from tidegate.flows.render import Wanted, refuse_nowhere  # noqa: PLC0415 - only when a verb runs
    from tidegate.flows.units import Chosen, read_ignores  # noqa: PLC0415

    wanted = Wanted(
        what=what,
        name=told["name"],
        namespace=told["namespace"],
        values=told["values"],
        parameters=tuple(options.pair(parameter) for parameter in told["parameters"]),
    )
    refuse_nowhere(wanted)
    return Chosen(
        wanted=wanted,
        ignores_waves=told["ignore_waves"],
        options=told["sync_options"],
        ignores=read_ignores(told["ignore_differences"]),
        offline=told["offline"],
        maps=told["maps"],
    )
