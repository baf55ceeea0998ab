"""`tidegate lint`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_path
from tidegate.cli.options import (
    ALLOW_INCOMPLETE,
    HEALTH,
    PLAIN_UNIT,
    SELECTION,
    Flags,
    with_options,
)
from tidegate.cli.output import print_document
from tidegate.cli.progress import show_progress
from tidegate.errors import sanitize

if TYPE_CHECKING:
    from tidegate.linting.run import LintOptions
    from tidegate.model.views.lint import LintReport

FORMATS = ("text", "json", "sarif", "junit", "github", "markdown")


def _split_codes(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> object:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _parse_levels(
    _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return pairs of code and severity; the code is empty for the minimum severity."""
    from tidegate.model.finding import Severity

    pairs = tuple((code, level) for code, _, level in (value.rpartition("=") for value in values))
    for _, level in pairs:
        if level not in {severity.value for severity in Severity}:
            known = ", ".join(severity.value for severity in Severity)
            raise click.BadParameter(f"unknown severity `{level}`; use one of {known}")
    return pairs


@options.command()
@click.argument(
    "paths",
    nargs=-1,
    default=(".",),
    metavar="[PATH] [FILE]...",
    shell_complete=complete_path,
)
@click.option(
    "--engine",
    default="native",
    type=click.Choice(["native", "argocd", "flux", "tidegate"]),
    show_default=True,
    help="Semantics to check. native: Argo CD for Applications, Flux for Kustomizations.",
)
@click.option(
    "--empty-cluster",
    is_flag=True,
    help="Check that an empty cluster can be bootstrapped, and list what is missing.",
)
@click.option(
    "--select", multiple=True, callback=_split_codes, metavar="CODE", help="Run only these rules."
)
@click.option(
    "--ignore", multiple=True, callback=_split_codes, metavar="CODE", help="Skip these rules."
)
@click.option(
    "--severity",
    multiple=True,
    callback=_parse_levels,
    metavar="[CODE=]SEVERITY",
    help="Minimum severity to report; CODE=SEVERITY overrides the severity of a rule.",
)
@click.option(
    "--baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Do not report the findings that this file lists.",
)
@click.option(
    "--base", default="", metavar="REV", help="Report only findings that this revision lacks."
)
@options.FAIL_ON
@click.option("--update-baseline", is_flag=True, help="Write all findings to the baseline file.")
@with_options(SELECTION, PLAIN_UNIT, HEALTH, ALLOW_INCOMPLETE)
@click.option(
    "--operator-defs",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE",
    help="File with additional operator definitions.",
)
@options.output_option(FORMATS)
def lint(**flags: Unpack[LintFlags]) -> int:
    """Check the deployment order of PATH for errors, without a cluster.

    PATH is an Argo CD or Flux repository, a Helm chart, a Kustomize overlay or a directory of
    manifests. With files, only findings about them and the units that they belong to are reported.
    `tidegate rule CODE` explains a finding.

    \b
    Examples:
      tidegate lint
      tidegate lint clusters/prod --severity warning
      tidegate lint . --baseline .tidegate-baseline.json -o sarif
      tidegate lint . --base origin/main...
      tidegate lint . apps/web/deployment.yaml apps/web/service.yaml
      tidegate lint . --empty-cluster --select ORD003,ORD006
    """
    path, files = _split_paths(flags["paths"])
    progress_line = show_progress(f"linting {path}", quiet=flags["output"] != "text")
    from tidegate.linting.run import LintOptions
    from tidegate.model.finding import Severity
    from tidegate.model.units.semantics import SEMANTICS_BY_NAME

    if flags["base"] and flags["baseline"]:
        problem = "--base and --baseline both leave out known findings; use one of them"
        raise click.UsageError(problem)
    if flags["update_baseline"] and flags["baseline"] is None:
        raise click.BadParameter("add `--baseline FILE`", param_hint="--update-baseline")
    levels = {code: Severity(level) for code, level in flags["severity"] if code}
    minimum = [Severity(level) for code, level in flags["severity"] if not code]
    lint_options = LintOptions(
        select=flags["select"],
        ignore=flags["ignore"],
        severity=minimum[-1] if minimum else Severity.NOTE,
        severity_overrides=levels,
        semantics=SEMANTICS_BY_NAME.get(flags["engine"]),
        empty_cluster=flags["empty_cluster"],
        baseline=flags["baseline"],
        update_baseline=flags["update_baseline"],
        files=files,
        command=f"tidegate lint {path}",
    )
    report = _lint_report(path, flags, lint_options)
    progress_line.clear()
    for line in _report_lines(report, flags["output"]):
        print_document(line)  # each format escapes texts from files in its own way
    allow_incomplete = flags["allow_incomplete"]
    if report.fails(Severity(flags["fail_on"]), allow_incomplete=allow_incomplete):
        return options.INPUT_ERROR
    is_incomplete = report.coverage.is_incomplete and not allow_incomplete
    return options.INCOMPLETE if is_incomplete else 0


class LintFlags(Flags, total=False):
    """Flags of `lint`."""

    empty_cluster: bool
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    severity: tuple[tuple[str, str], ...]
    baseline: Path | None
    update_baseline: bool
    base: str
    paths: tuple[str, ...]
    fail_on: str


def _split_paths(paths: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return PATH and the files; with files alone, as pre-commit passes them, PATH is here."""
    first, files = paths[:1], paths[1:]
    if files and not Path(first[0]).is_dir():
        first, files = (".",), paths
    missing = next((file for file in files if not os.path.lexists(file)), None)
    if missing is not None:
        raise click.BadParameter(f"file `{sanitize(missing)}` does not exist", param_hint="FILE")
    return (*first, ".")[0], files


def _lint_report(path: str, flags: LintFlags, lint_options: LintOptions) -> LintReport:
    """Return all findings, or those that the base revision lacks."""
    from tidegate.actions.diff import lint_new_findings
    from tidegate.cli.requests import load_request, render_settings, static_targets
    from tidegate.cli.run_async import run_async
    from tidegate.linting.run import lint as lint_repository
    from tidegate.workspace.request import require_local
    from tidegate.workspace.revisions import RevisionNames

    request = load_request(path, flags)
    target, settings = static_targets(flags), render_settings(flags)
    if not flags["base"]:
        return run_async(lint_repository(request, target, settings, lint_options))
    require_local(path)
    names = RevisionNames(base=flags["base"])
    return run_async(lint_new_findings(request, target, settings, names, lint_options))


def _report_lines(report: LintReport, output_format: str) -> Iterable[str]:
    import os
    import sys

    import msgspec

    from tidegate.cli.output import is_interactive, max_line_width
    from tidegate.report.lint import output
    from tidegate.report.lint.output import lint_lines

    def encode(document: object) -> list[str]:
        return [msgspec.json.encode(document).decode()]

    match output_format:
        case "json":
            return encode(output.lint_document(report))
        case "sarif":
            return encode(output.sarif_document(report))
        case "junit":
            return output.junit_lines(report)
        case "github":
            return output.github_lines(report)
        case "markdown":
            return output.markdown_lines(report)
        case _:
            use_color = is_interactive(sys.stdout, os.environ) and not os.environ.get("NO_COLOR")
            return lint_lines(report, max_width=max_line_width(sys.stdout), use_color=use_color)
