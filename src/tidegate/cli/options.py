"""Command line options and option groups that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.decorators import FC

from tidegate.cli.completing import complete_path
from tidegate.cli.saying import has_json_errors, print_document, print_error_document, print_line
from tidegate.model.text.lazy_regex import lazy_regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidegate.errors import TidegateError
    from tidegate.model.finding import Finding
    from tidegate.model.times import Ms

DEFAULT_KUBE_VERSION = "v1.36.0"
"""Kubernetes version for charts without a cluster; a test compares it with the renderer."""
INPUT_ERROR = 3
"""Exit code of invalid input."""
_EXISTING_PATH = click.Path(exists=True, dir_okay=False)
_VERSION_PATTERN = lazy_regex(r"v?\d+\.\d+(?:\.\d+)?(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")


def _check_version(_ctx: click.Context, _option: click.Parameter, value: str) -> str:
    if not _VERSION_PATTERN.fullmatch(value):
        raise click.BadParameter(f"`{value}` is not a version such as v1.36.0")
    return value


def _check_files(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> object:
    """Check that files exist; URLs are checked when they are fetched."""
    for value in values:
        if not value.lower().startswith(("https://", "http://")):
            _EXISTING_PATH.convert(value, option, ctx)
    return values


def _parse_duration(_ctx: click.Context, option: click.Parameter, text: str) -> Ms | None:
    from tidegate.model.times import parse_duration  # noqa: PLC0415 - only when a verb runs

    try:
        return parse_duration(text) if text or option.default else None
    except ValueError:
        problem = f"`{text}` is not a duration such as 90s, 30m or 2h"
        raise click.BadParameter(problem, param_hint=option.opts[0]) from None


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
    help="A chart's values; may be repeated.",
)
SET = click.option(
    "--set",
    "parameters",
    multiple=True,
    callback=_parse_pairs,
    help="A chart's value, NAME=VALUE; may be repeated.",
)
SET_STRING = click.option(
    "--set-string",
    "string_parameters",
    multiple=True,
    callback=_parse_pairs,
    help="The same, and VALUE is a text whatever it looks like.",
)
SET_FILE = click.option(
    "--set-file",
    "file_parameters",
    multiple=True,
    callback=_parse_file_pairs,
    metavar="NAME=FILE",
    help="A chart's value that is what stands in a file; may be repeated.",
)
TIMEOUT = click.option(
    "--timeout",
    default="",
    callback=_parse_duration,
    help="Stop cleanly after so long, such as 30m.",
)
OFFLINE = click.option(
    "--offline", is_flag=True, help="Use only what is here or in the cache; no network."
)
ROOT = click.option(
    "--root",
    default=None,
    type=click.Path(exists=True, file_okay=False),
    help="The directory that overlays may reach; the repository's if not given.",
)
REPO_MAP = click.option(
    "--repo-map",
    "maps",
    multiple=True,
    metavar="URL=PATH",
    help="Use a directory in the place of a repository; may be repeated.",
)
KUBE_VERSION = click.option(
    "--kube-version",
    default=DEFAULT_KUBE_VERSION,
    show_default=True,
    callback=_check_version,
    help="The version of Kubernetes that charts see.",
)
API_VERSIONS = click.option(
    "--api-versions",
    multiple=True,
    callback=_split_commas,
    metavar="GROUP/VERSION[/KIND]",
    help="APIs that charts see besides the usual ones; may be repeated, or given as A,B.",
)


def until_option(default: str, help_text: str) -> Callable[[FC], FC]:
    """Return the option for the simulated duration."""
    return click.option(
        "--until", default=default, show_default=True, callback=_parse_duration, help=help_text
    )


OUTPUT = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How."
)


def print_warnings(errors: Iterable[TidegateError]) -> None:
    """Print errors as warnings to standard error."""
    from tidegate.report.findings import warning_from_error  # noqa: PLC0415 - only when a verb runs

    print_findings(map(warning_from_error, errors))


def print_findings(findings: Iterable[Finding]) -> int:
    """Print findings to standard error and return the exit code: errors are invalid input."""
    from tidegate.report.findings import (  # noqa: PLC0415 - only when a verb runs
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
    import msgspec  # noqa: PLC0415 - only when a verb runs

    if output == "json":
        for document in documents:
            print_document(msgspec.json.encode(document).decode())
        return
    for line in lines:
        print_line(line)
