"""Command line options and option groups that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click
from click.decorators import FC

from tidegate.cli import options
from tidegate.cli.completing import complete_context

if TYPE_CHECKING:
    from tidegate.model.times import Ms

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class Flags(TypedDict, total=False):
    """Values of the command line flags; each command has some of them."""

    name: str
    namespace: str
    entry: str
    units: tuple[str, ...]
    place: str
    labels: str
    project: str
    with_source: bool
    watch: bool
    force: bool
    at: str
    everywhere: bool
    home: str
    generator_data: Path | None
    values: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    string_parameters: tuple[tuple[str, str], ...]
    file_parameters: tuple[tuple[str, str], ...]
    revision: str
    chart: str
    kube_version: str
    api_versions: tuple[str, ...]
    recurse: bool
    include: str
    exclude: str
    offline: bool
    root: str | None
    maps: tuple[str, ...]
    ignore_waves: bool
    sync_options: tuple[str, ...]
    as_user: str
    as_groups: tuple[str, ...]
    ignore_differences: Path | None
    kubeconfig: str | None
    context: str | None
    clusters: tuple[tuple[str, str], ...]
    sandbox: bool
    still: bool
    scenario: Path | None
    profile: Path | None
    operators: Path | None
    seed: int
    greenfield: bool
    spread: bool
    start: Ms | None
    health_rules: Path | None
    prune: bool
    confirm: bool
    allow_empty: bool
    yes_delete_contents: bool
    resources: tuple[str, ...]
    hooks: bool
    dry_run: bool
    preflight: str
    on_failure: str
    keep_going: bool
    approved: tuple[str, ...]
    adopt_name: bool
    take_broken_seals: bool
    take_over: bool
    hand_back: bool
    yes: bool
    engine: str
    timeout: Ms | None
    wait: bool | None
    logs: bool
    pace: float | None
    until: Ms
    kinds: tuple[str, ...]
    given: tuple[Path, ...]
    foreground: bool
    origins: bool
    objects: bool
    exit_code: bool
    save: Path | None
    plan: Path | None
    record: Path | None
    since: Ms | None
    critical_path: bool
    why: tuple[str, str] | None
    output: str


def _check_sync_options(
    _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> object:
    from tidegate.dialect.argo.options import option_problem  # noqa: PLC0415 - only when one is given

    for option in values:
        if problem := option_problem(option):
            raise click.BadParameter(problem)
    return values


def _parse_clusters(
    ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return names with contexts; a simulated cluster has only a name."""
    clusters: dict[str, str] = {}
    for text in values:
        name, separator, context = text.partition("=")
        if not name or (separator and not context):
            raise click.BadParameter(f"`{text}` is not NAME=CONTEXT")
        if name in clusters:
            raise click.BadParameter(f"there are two clusters `{name}`")
        if not separator and not ctx.params.get("sandbox"):
            raise click.BadParameter(f"`{text}` has no context: write NAME=CONTEXT")
        clusters[name] = context
    return tuple(clusters.items())


def _parse_time(_ctx: click.Context, option: click.Parameter, text: str | None) -> Ms | None:
    from tidegate.model.times import parse_timestamp  # noqa: PLC0415 - only when a verb runs

    try:
        return parse_timestamp(text) if text else None
    except ValueError:
        problem = f"`{text}` is not a moment such as 2026-11-17T22:00:00Z"
        raise click.BadParameter(problem, param_hint=option.opts[0]) from None


SELECTION = (
    click.option(
        "--entry", default="", metavar="NAME|PATH", help="Where to begin, if there are several."
    ),
    click.option(
        "--unit",
        "units",
        multiple=True,
        metavar="ID",
        help="Only this unit of a repository, and what it brings; may be repeated.",
    ),
    click.option(
        "--generator-data",
        type=EXISTING_FILE,
        help="What generators of ApplicationSets find that ask a server elsewhere.",
    ),
)
NAMESPACE = click.option(
    "-n",
    "--namespace",
    default="default",
    show_default=True,
    help="Where objects go that name no namespace.",
)
NAME_AND_NAMESPACE = (
    click.option("--name", default="", help="The unit's name; the directory's if not given."),
    NAMESPACE,
)
PLAIN_UNIT = (
    *NAME_AND_NAMESPACE,
    options.VALUES,
    options.SET,
    options.SET_STRING,
    options.SET_FILE,
    click.option(
        "--recurse/--no-recurse", default=True, help="Read directories in a directory as well."
    ),
    click.option("--include", default="", metavar="GLOB", help="Read only these files."),
    click.option("--exclude", default="", metavar="GLOB", help="Do not read these files."),
    click.option("--ignore-waves", is_flag=True, help="Apply everything at once."),
    click.option(
        "--sync-option",
        "sync_options",
        multiple=True,
        callback=_check_sync_options,
        metavar="NAME=VALUE",
        help="An option of Argo CD for all objects, such as CreateNamespace=true; may be repeated.",
    ),
    click.option("--as", "as_user", default="", help="The user whose rights are used."),
    click.option("--as-group", "as_groups", multiple=True, help="A group of that user's."),
    click.option(
        "--ignore-differences",
        type=EXISTING_FILE,
        help="Fields that are no difference, in Argo CD's form.",
    ),
    options.OFFLINE,
    options.REPO_MAP,
    options.ROOT,
)
CLUSTER = (
    click.option("--kubeconfig", default=None, help="The kubeconfig file to use."),
    click.option(
        "--context",
        default=None,
        shell_complete=complete_context,
        help="The context of the kubeconfig to use.",
    ),
    click.option(
        "--cluster",
        "clusters",
        multiple=True,
        callback=_parse_clusters,
        metavar="NAME=CONTEXT",
        help="A cluster by a name of yours; may be repeated: DIR goes to each of them.",
    ),
)
SIMULATED_CLUSTER = (
    click.option(
        "--scenario", type=EXISTING_FILE, help="What goes wrong, and what is there already."
    ),
    click.option("--profile", type=EXISTING_FILE, help="How long things take."),
    click.option("--operators", type=EXISTING_FILE, help="Rows for operators of your own."),
    click.option("--seed", default=0, help="Another seed, another run."),
)
SIMULATION = (
    *SIMULATED_CLUSTER,
    click.option(
        "--start",
        default=None,
        callback=_parse_time,
        metavar="MOMENT",
        help="When it begins, such as 2026-11-17T22:00:00Z: sync windows look at it.",
    ),
)
SINCE = (
    click.option(
        "--since",
        default=None,
        callback=_parse_time,
        metavar="MOMENT",
        help="What was written since then is one rollout; else since the last one of each unit.",
    ),
)
GREENFIELD = (
    click.option(
        "--greenfield",
        is_flag=True,
        help="Take nothing to be there that is not brought, and list what is missing.",
    ),
)
HEALTH = (
    click.option(
        "--health-rules",
        type=EXISTING_FILE,
        help="Lua health checks, in the form of Argo CD's settings.",
    ),
)
TARGET = (
    click.option("--sandbox", is_flag=True, is_eager=True, help="On a simulated cluster."),
    *CLUSTER,
    *SIMULATION,
    *HEALTH,
)
PRUNE = (
    click.option("--prune", is_flag=True, help="Delete what is the unit's and no longer in DIR."),
    click.option("--confirm", is_flag=True, help="Prune what asks for confirmation, too."),
    click.option("--allow-empty", is_flag=True, help="Prune though DIR has no objects."),
)
ROLLOUT_OUTPUT = (
    options.TIMEOUT,
    click.option("--logs", is_flag=True, help="Show what the pods of hooks and Jobs print."),
    click.option(
        "--pace",
        type=click.FloatRange(min=0),
        default=None,
        help="How many simulated seconds pass in a real one; 0 is as fast as it goes.",
    ),
    options.OUTPUT,
)
WATCH = (
    click.option(
        "-w", "--watch", is_flag=True, help="Show it again whenever something of it has changed."
    ),
    options.TIMEOUT,
)
APPROVE = (
    click.option(
        "--approve",
        "approved",
        multiple=True,
        metavar="UNIT",
        help="Do not hold this unit until somebody approves; may be repeated.",
    ),
)
DELETE_CONTENTS = (
    click.option(
        "--yes-delete-contents",
        is_flag=True,
        help="Delete namespaces and definitions though objects of others go along.",
    ),
)


def with_options(*groups: tuple[Callable[[FC], FC], ...]) -> Callable[[FC], FC]:
    """Return a decorator that adds the options of these groups to a command, in this order."""

    def decorate(command: FC) -> FC:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate
