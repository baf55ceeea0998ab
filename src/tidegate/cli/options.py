"""Options that several verbs share, so that they are called and explained alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.decorators import FC

from tidegate.cli.completing import complete_path
from tidegate.cli.saying import hand_out, say, say_document, speaks_json
from tidegate.model.patterns import late

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidegate.errors import TidegateError
    from tidegate.model.finding import Finding
    from tidegate.model.moment import Ms

KUBE_VERSION = "v1.36.0"
"""What charts see where no cluster is known; a test compares it with what is rendered so."""

INPUT = 3
"""What was read is at fault."""
_FILE = click.Path(exists=True, dir_okay=False)
_VERSION = late(r"v?\d+\.\d+(?:\.\d+)?(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")


def _check_version(_ctx: click.Context, _option: click.Parameter, value: str) -> str:
    if not _VERSION.fullmatch(value):
        raise click.BadParameter(f"`{value}` is not a version such as v1.36.0")
    return value


def _check_files(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> object:
    """Web addresses are looked at when they are asked for; paths now."""
    for value in values:
        if not value.lower().startswith(("https://", "http://")):
            _FILE.convert(value, option, ctx)
    return values


def _check_span(_ctx: click.Context, option: click.Parameter, text: str) -> Ms | None:
    from tidegate.model.moment import parse_duration  # noqa: PLC0415 - only when a verb runs

    try:
        return parse_duration(text) if text or option.default else None
    except ValueError:
        problem = f"`{text}` is not a duration such as 90s, 30m or 2h"
        raise click.BadParameter(problem, param_hint=option.opts[0]) from None


def _check_pairs(
    _ctx: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    for value in values:
        name, sign, _ = value.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"`{value}` is not NAME=VALUE", param_hint=option.opts[0])
    return tuple((name, text) for name, _, text in (value.partition("=") for value in values))


def _check_file_pairs(
    ctx: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    pairs = _check_pairs(ctx, option, values)
    for _, path in pairs:
        _FILE.convert(path, option, ctx)
    return pairs


def _split(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> object:
    return tuple(part for value in values for part in value.split(",") if part)


values = click.option(
    "-f",
    "--values",
    multiple=True,
    callback=_check_files,
    metavar="FILE|URL",
    shell_complete=complete_path,
    help="A chart's values; may be repeated.",
)
parameters = click.option(
    "--set",
    "parameters",
    multiple=True,
    callback=_check_pairs,
    help="A chart's value, NAME=VALUE; may be repeated.",
)
string_parameters = click.option(
    "--set-string",
    "string_parameters",
    multiple=True,
    callback=_check_pairs,
    help="The same, and VALUE is a text whatever it looks like.",
)
file_parameters = click.option(
    "--set-file",
    "file_parameters",
    multiple=True,
    callback=_check_file_pairs,
    metavar="NAME=FILE",
    help="A chart's value that is what stands in a file; may be repeated.",
)
timeout = click.option(
    "--timeout", default="", callback=_check_span, help="Stop cleanly after so long, such as 30m."
)
offline = click.option(
    "--offline", is_flag=True, help="Use only what is here or in the cache; no network."
)
root = click.option(
    "--root",
    default=None,
    type=click.Path(exists=True, file_okay=False),
    help="The directory that overlays may reach; the repository's if not given.",
)
repo_map = click.option(
    "--repo-map",
    "maps",
    multiple=True,
    metavar="URL=PATH",
    help="Use a directory in the place of a repository; may be repeated.",
)
kube_version = click.option(
    "--kube-version",
    default=KUBE_VERSION,
    show_default=True,
    callback=_check_version,
    help="The version of Kubernetes that charts see.",
)
api_versions = click.option(
    "--api-versions",
    multiple=True,
    callback=_split,
    metavar="GROUP/VERSION[/KIND]",
    help="APIs that charts see besides the usual ones; may be repeated, or given as A,B.",
)


def until(default: str, explanation: str) -> Callable[[FC], FC]:
    """How long a simulated cluster is looked at."""
    return click.option(
        "--until", default=default, show_default=True, callback=_check_span, help=explanation
    )


text_or_json = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How."
)


def say_notes(notes: Iterable[TidegateError]) -> None:
    """Tell what is not certain, beside the output."""
    from tidegate.report.findings import as_warning  # noqa: PLC0415 - only when a verb runs

    say_findings(map(as_warning, notes))


def say_findings(findings: Iterable[Finding]) -> int:
    """Tell what was found, beside the output. Gives the exit code: errors are input at fault."""
    from tidegate.report.findings import (  # noqa: PLC0415 - only when a verb runs
        finding_document,
        finding_lines,
        in_order,
        is_error,
    )

    findings = tuple(findings)
    if speaks_json():
        for one in in_order(findings):
            say_document(finding_document(one))
    else:
        for line in finding_lines(findings):
            say(line, err=True)
    return INPUT if any(map(is_error, findings)) else 0


def show(output: str, documents: Iterable[object], lines: Iterable[str]) -> None:
    """Documents as JSON, each on a line, or lines for people."""
    import msgspec  # noqa: PLC0415 - only when a verb runs

    if output == "json":
        for document in documents:
            hand_out(msgspec.json.encode(document).decode())
        return
    for line in lines:
        say(line)
