"""Command line options and option groups that several commands share."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click
from click.decorators import FC

from tidegate.cli.command import TidegateCommand
from tidegate.cli.completion import complete_context, complete_path, complete_unit
from tidegate.cli.output import has_json_errors, print_document, print_error_document, print_line
from tidegate.model.text.lazy_regex import lazy_regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tidegate.errors import TidegateError
    from tidegate.model.finding import Finding
    from tidegate.model.times import Ms
    from tidegate.workspace.request import UnitSelection


DEFAULT_KUBE_VERSION = "v1.36.0"
"""Kubernetes version for charts without a cluster; a test compares it with the renderer."""
INPUT_ERROR, INCOMPLETE = 3, 9
"""Exit code of invalid input."""
_EXISTING_PATH = click.Path(exists=True, dir_okay=False)
_VERSION_PATTERN = lazy_regex(r"v?\d+\.\d+(?:\.\d+)?(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")


def _check_version(_ctx: click.Context, _option: click.Parameter, value: str) -> str:
    if not _VERSION_PATTERN.fullmatch(value):
        raise click.BadParameter(f"`{value}` is not a version; write it like v1.36.0")
    return value


def _check_files(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> object:
    """Check that files exist; URLs are checked when they are fetched."""
    for value in values:
        if not value.lower().startswith(("https://", "http://")):
            _EXISTING_PATH.convert(value, option, ctx)
    return values


def _parse_duration(_ctx: click.Context, option: click.Parameter, text: str) -> Ms | None:
    from tidegate.model.times import Ms, parse_duration  # noqa: PLC0415 - only when a command runs

    try:
        duration = parse_duration(text) if text or option.default else None
    except ValueError:
        duration = Ms(-1)
    if duration is not None and duration < 0:
        problem = f"`{text}` is not a duration; write it like 90s, 30m or 2h"
        raise click.BadParameter(problem, param_hint=option.opts[0])
    return duration


def _parse_pairs(
    _ctx: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    for value in values:
        name, separator, _ = value.partition("=")
        if not separator or not name:
            raise click.BadParameter(f"`{value}` is not NAME=VALUE", param_hint=option.opts[0])
    return tuple((name, text) for name, _, text in (value.partition("=") for value in values))


def _parse_file_pairs(
    ctx: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    pairs = _parse_pairs(ctx, option, values)
    for _, path in pairs:
        _EXISTING_PATH.convert(path, option, ctx)
    return pairs


def _split_commas(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> object:
    return tuple(part for value in values for part in value.split(",") if part)


VALUES = click.option(
    "-f",
    "--values",
    multiple=True,
    callback=_check_files,
    metavar="FILE|URL",
    shell_complete=complete_path,
    help="Read chart values from a file or URL. Repeatable.",
)
SET = click.option(
    "--set",
    "parameters",
    multiple=True,
    callback=_parse_pairs,
    metavar="NAME=VALUE",
    help="Set a chart value. Repeatable.",
)
SET_STRING = click.option(
    "--set-string",
    "string_parameters",
    multiple=True,
    callback=_parse_pairs,
    metavar="NAME=VALUE",
    help="Set a chart value as a string. Repeatable.",
)
SET_FILE = click.option(
    "--set-file",
    "file_parameters",
    multiple=True,
    callback=_parse_file_pairs,
    metavar="NAME=FILE",
    help="Set a chart value from the contents of a file. Repeatable.",
)
TIMEOUT = click.option(
    "--timeout",
    default="",
    callback=_parse_duration,
    metavar="DURATION",
    help="Stop cleanly after this time, for example 30m.",
)
CLUSTER_PATIENCE = click.option(
    "--cluster-patience",
    default="15m",
    show_default=True,
    callback=_parse_duration,
    metavar="DURATION",
    help="End if a cluster does not answer for this time.",
)
OFFLINE = click.option(
    "--offline", is_flag=True, help="Do not use the network: read local files and the cache."
)
LOAD_ROOT = click.option(
    "--load-root",
    default=None,
    type=click.Path(exists=True, file_okay=False),
    help="Directory that overlays may read from. Default: the repository.",
)
REPO_MAP = click.option(
    "--repo-map",
    "maps",
    multiple=True,
    metavar="URL=PATH",
    help="Read this directory instead of a repository. Repeatable.",
)
KUBE_VERSION = click.option(
    "--kube-version",
    metavar="VERSION",
    default=DEFAULT_KUBE_VERSION,
    show_default=True,
    callback=_check_version,
    help="Kubernetes version that charts see.",
)
API_VERSIONS = click.option(
    "--api-versions",
    multiple=True,
    callback=_split_commas,
    metavar="GROUP/VERSION[/KIND]",
    help="Additional API versions that charts see. Repeatable, or separated by commas.",
)


def until_option(default: str, help_text: str) -> Callable[[FC], FC]:
    """Return the option for the simulated duration."""
    return click.option(
        "--until",
        default=default,
        show_default=True,
        callback=_parse_duration,
        metavar="DURATION",
        help=help_text,
    )


def output_option(
    formats: Sequence[str], *, text: str = "Output format.", show_default: bool = False
) -> Callable[[FC], FC]:
    """Return the option of the output format; the first format is the default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=show_default,
        help=text,
    )


def namespace_filter(text: str, *, default: str = "") -> Callable[[FC], FC]:
    """Return the option of the namespace of the objects that a command shows."""
    return click.option(
        "-n",
        "--namespace",
        "namespace_filter",
        default=default,
        show_default=bool(default),
        metavar="NAMESPACE",
        help=text,
    )


PATH = click.argument("path", metavar="[PATH]", default=".", shell_complete=complete_path)
"""The repository, directory, chart or overlay that a command works on."""
command = partial(click.command, cls=TidegateCommand)
"""Decorator of a command: `@command()`."""
OUTPUT = output_option(["text", "json"])


def print_warnings(errors: Iterable[TidegateError]) -> None:
    """Print errors as warnings to standard error."""
    from tidegate.model.finding import warning_from_error  # noqa: PLC0415 - only when a command runs

    print_findings(map(warning_from_error, errors))


def print_findings(findings: Iterable[Finding]) -> int:
    """Print findings to standard error and return the exit code: errors are invalid input."""
    from tidegate.report.findings import (  # noqa: PLC0415 - only when a command runs
        finding_document,
        finding_lines,
        is_error,
        sort_findings,
    )

    findings = tuple(findings)
    if has_json_errors():
        for finding in sort_findings(findings):
            print_error_document(finding_document(finding))
    else:
        for line in finding_lines(findings):
            print_line(line, err=True)
    return INPUT_ERROR if any(map(is_error, findings)) else 0


def print_result(output: str, documents: Iterable[object], lines: Iterable[str]) -> None:
    """Print documents as JSON lines, or lines for people."""
    import msgspec  # noqa: PLC0415 - only when a command runs

    if output == "json":
        for document in documents:
            print_document(msgspec.json.encode(document).decode())
        return
    for line in lines:
        print_line(line)


EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class Flags(TypedDict, total=False):
    """Values of the command line flags; each command has some of them."""

    name: str
    namespace: str
    root_unit: str
    units: tuple[str, ...]
    selection: UnitSelection
    path: str
    labels: str
    project: str
    with_source: bool
    watch: bool
    force: bool
    at: str
    refresh: str
    everywhere: bool
    namespace_filter: str
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
    load_root: str | None
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
    operator_defs: Path | None
    seed: int
    empty_cluster: bool
    allow_incomplete: bool
    duration_range: bool
    start: Ms | None
    health_rules: Path | None
    prune: bool
    confirmed: bool
    allow_empty: bool
    yes_delete_contents: bool
    resources: tuple[str, ...]
    force_hooks: bool
    dry_run: bool
    preflight: str
    on_failure: str
    skip_broken: bool
    approved: tuple[str, ...]
    force_owner: bool
    ignore_sops_mac: bool
    take_over: bool
    hand_back: bool
    yes: bool
    engine: str
    timeout: Ms | None
    cluster_patience: Ms
    wait: bool | None
    logs: bool
    speed: float | None
    until: Ms
    kinds: tuple[str, ...]
    preload: tuple[Path, ...]
    foreground: bool
    origins: bool
    objects: bool
    exit_code: bool
    changes_only: bool | None
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
            raise click.BadParameter(f"cluster `{name}` is given twice")
        if not separator and not ctx.params.get("sandbox"):
            raise click.BadParameter(f"`{text}` has no context: write NAME=CONTEXT")
        clusters[name] = context
    return tuple(clusters.items())


def _parse_object_name(_ctx: click.Context, _option: click.Parameter, text: str) -> tuple[str, str]:
    """Return kind and name; both are empty without a value."""
    kind, separator, name = text.partition("/")
    if text and not (kind and separator and name):
        raise click.BadParameter(f"`{text}` is not KIND/NAME")
    return kind, name


def _parse_time(_ctx: click.Context, option: click.Parameter, text: str | None) -> Ms | None:
    from tidegate.model.times import parse_timestamp  # noqa: PLC0415 - only when a command runs

    try:
        return parse_timestamp(text) if text else None
    except ValueError:
        problem = f"`{text}` is not a time; write it like 2026-11-17T22:00:00Z"
        raise click.BadParameter(problem, param_hint=option.opts[0]) from None


UNITS = click.option(
    "--unit",
    "units",
    multiple=True,
    metavar="UNIT",
    shell_complete=complete_unit,
    help="Select this unit, for example shop, ks/apps or Application/argocd/shop. Repeatable.",
)
EVENTS = (
    click.option(
        "--for",
        "about",
        default="",
        callback=_parse_object_name,
        metavar="KIND/NAME",
        help="Show Events of this object.",
    ),
    click.option(
        "--types",
        default="",
        metavar="TYPES",
        help="Event types, separated by commas, such as Warning.",
    ),
    namespace_filter("Show Events of this namespace."),
)
LOGS = (
    click.option(
        "--tail",
        type=click.IntRange(min=1),
        default=20,
        show_default=True,
        metavar="LINES",
        help="Number of lines per container.",
    ),
    click.option("-f", "--follow", "follows", is_flag=True, help="Print logs as they are written."),
    TIMEOUT,
)
SELECTION = (
    click.option(
        "--root",
        "root_unit",
        default="",
        metavar="NAME|PATH",
        help="Root unit to start from, if the repository has several.",
    ),
    click.option(
        "--unit",
        "units",
        multiple=True,
        metavar="UNIT",
        help="Select this unit and the units that it creates. Repeatable.",
    ),
    click.option(
        "--generator-data",
        type=EXISTING_FILE,
        help="Results of ApplicationSet generators that query external services.",
    ),
)
NAMESPACE = click.option(
    "-n",
    "--namespace",
    default="default",
    show_default=True,
    metavar="NAMESPACE",
    help="Namespace for objects that do not set one.",
)
NAME_AND_NAMESPACE = (
    click.option(
        "--name",
        default="",
        metavar="NAME",
        help="Name of the unit. Default: the name of the directory.",
    ),
    NAMESPACE,
)
PLAIN_UNIT = (
    *NAME_AND_NAMESPACE,
    VALUES,
    SET,
    SET_STRING,
    SET_FILE,
    click.option("--recurse/--no-recurse", default=True, help="Read subdirectories, too."),
    click.option("--include", default="", metavar="GLOB", help="Read only matching files."),
    click.option("--exclude", default="", metavar="GLOB", help="Skip matching files."),
    click.option("--ignore-waves", is_flag=True, help="Apply all objects at once, without waves."),
    click.option(
        "--sync-option",
        "sync_options",
        multiple=True,
        callback=_check_sync_options,
        metavar="NAME=VALUE",
        help="Argo CD sync option for all objects, for example CreateNamespace=true. Repeatable.",
    ),
    click.option("--as", "as_user", default="", metavar="USER", help="User to impersonate."),
    click.option(
        "--as-group",
        "as_groups",
        multiple=True,
        metavar="GROUP",
        help="Group to impersonate. Repeatable.",
    ),
    click.option(
        "--ignore-differences",
        type=EXISTING_FILE,
        help="File with `ignoreDifferences` entries, as in an Application.",
    ),
    OFFLINE,
    REPO_MAP,
    LOAD_ROOT,
)
CLUSTER = (
    click.option("--kubeconfig", default=None, metavar="FILE", help="Path of the kubeconfig file."),
    click.option(
        "--context",
        default=None,
        shell_complete=complete_context,
        metavar="NAME",
        help="Context of the kubeconfig.",
    ),
    click.option(
        "--cluster",
        "clusters",
        multiple=True,
        callback=_parse_clusters,
        metavar="NAME=CONTEXT",
        help="Use this cluster. Repeatable, to use several clusters.",
    ),
)
SIMULATED_CLUSTER = (
    click.option(
        "--scenario",
        type=EXISTING_FILE,
        help="File with faults to inject and objects that already exist.",
    ),
    click.option("--profile", type=EXISTING_FILE, help="File with durations to assume."),
    click.option(
        "--operator-defs", type=EXISTING_FILE, help="File with additional operator definitions."
    ),
    click.option("--seed", default=0, metavar="N", help="Random seed."),
)
SIMULATION = (
    *SIMULATED_CLUSTER,
    click.option(
        "--start",
        default=None,
        callback=_parse_time,
        metavar="TIME",
        help="Start time of the simulation, for sync windows (2026-11-17T22:00:00Z).",
    ),
)
SINCE = (
    click.option(
        "--since",
        default=None,
        callback=_parse_time,
        metavar="TIME",
        help="Check the writes since this time. Default: since the last rollout of each unit.",
    ),
)
EMPTY_CLUSTER = (
    click.option(
        "--empty-cluster",
        is_flag=True,
        help="Start from an empty cluster, and list missing dependencies.",
    ),
)
CHANGES_ONLY = click.option(
    "--changes-only/--no-changes-only",
    default=None,
    help="Leave unchanged objects out of the text. Default: on a terminal, if there are many.",
)
FAIL_ON = click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note"]),
    default="error",
    show_default=True,
    help="Exit with 3 if there is a finding of at least this severity.",
)
ALLOW_INCOMPLETE = (
    click.option(
        "--allow-incomplete",
        is_flag=True,
        help="Do not fail only because parts of PATH are unknown.",
    ),
)
HEALTH = (
    click.option(
        "--health-rules",
        type=EXISTING_FILE,
        help="File with Lua health checks, in the format of argocd-cm.",
    ),
)
TARGET = (
    click.option("--sandbox", is_flag=True, is_eager=True, help="Use a simulated cluster."),
    *CLUSTER,
    *SIMULATION,
    *HEALTH,
)
PRUNE = (
    click.option("--prune", is_flag=True, help="Delete objects that are no longer in PATH."),
    click.option(
        "--confirm-prune",
        "confirmed",
        is_flag=True,
        help="Also delete objects with `Prune=confirm`.",
    ),
    click.option("--allow-empty", is_flag=True, help="Prune even if PATH renders no objects."),
)
ROLLOUT_OUTPUT = (
    TIMEOUT,
    CLUSTER_PATIENCE,
    click.option("--logs", is_flag=True, help="Print the logs of hooks and Jobs."),
    click.option(
        "--speed",
        type=click.FloatRange(min=0),
        default=None,
        metavar="FACTOR",
        help="Speed of the simulated clock: 20 is 20 times real time, 0 is as fast as possible.",
    ),
    OUTPUT,
)
WATCH = (
    click.option("-w", "--watch", is_flag=True, help="Print again after each change."),
    TIMEOUT,
)
WAIT = (
    click.option(
        "--wait/--no-wait",
        default=None,
        help="Wait until the controller has reconciled the unit. Default for a single name.",
    ),
    TIMEOUT,
)
APPROVE = (
    click.option(
        "--approve",
        "approved",
        multiple=True,
        metavar="UNIT",
        help="Approve this unit in advance. Repeatable.",
    ),
)
DELETE_CONTENTS = (
    click.option(
        "--yes-delete-contents",
        is_flag=True,
        help="Delete namespaces and CRDs that still contain objects of other owners.",
    ),
)


def with_options(*groups: tuple[Callable[[FC], FC], ...]) -> Callable[[FC], FC]:
    """Return a decorator that adds the options of these groups to a command, in this order."""

    def decorate(command: FC) -> FC:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate
