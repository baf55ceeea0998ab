"""`tidegate diff`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import HEALTH, PLAIN_UNIT, SELECTION, Flags, with_options
from tidegate.cli.output import print_document, print_line
from tidegate.cli.progress import show_progress

if TYPE_CHECKING:
    from tidegate.model.views.order_diff import DiffReport

FORMATS = ("text", "json", "markdown", "sarif", "github")


@options.command()
@options.PATH
@click.option(
    "--base",
    default="",
    metavar="REV",
    help="Revision to compare with; `REV...` is the merge base with it. Default: the merge base "
    "with the upstream or default branch.",
)
@click.option(
    "--head", default="", metavar="REV", help="Changed revision. Default: the working tree."
)
@with_options(SELECTION, PLAIN_UNIT, HEALTH)
@options.FAIL_ON
@click.option("--exit-code", is_flag=True, help="Exit with 10 if the order changed.")
@options.output_option(FORMATS, show_default=True)
def diff(**flags: Unpack[DiffFlags]) -> int:
    """Show what a change does to the deployment order of PATH, without a cluster.

    Compares two revisions of a Git repository: new and fixed errors, gates, moved objects,
    dependencies, units, the critical path. Your working tree is only read.

    \b
    Examples:
      tidegate diff
      tidegate diff clusters/prod --base origin/main
      tidegate diff --base origin/main... -o markdown > comment.md
      tidegate diff --base v1.4 --head v1.5 --exit-code
    """
    path = flags["path"]
    progress_line = show_progress(f"comparing {path}", quiet=flags["output"] != "text")
    from tidegate.actions.diff import diff_revisions
    from tidegate.cli.outcome_codes import HAS_CHANGES
    from tidegate.cli.requests import load_request, render_settings, static_targets
    from tidegate.cli.run_async import run_async
    from tidegate.linting.run import LintOptions
    from tidegate.model.finding import Severity
    from tidegate.workspace.request import require_local
    from tidegate.workspace.revisions import RevisionNames

    require_local(path)
    report = run_async(
        diff_revisions(
            load_request(path, flags, check_exists=False),
            static_targets(flags),
            render_settings(flags),
            RevisionNames(base=flags["base"], head=flags["head"]),
            LintOptions(command=f"tidegate lint {path}"),
        )
    )
    progress_line.clear()
    print_report(report, flags["output"])
    if report.new.fails(Severity(flags["fail_on"])):
        return options.INPUT_ERROR
    return HAS_CHANGES if flags["exit_code"] and not report.is_same_order else 0


class DiffFlags(Flags, total=False):
    """Flags of `diff`."""

    base: str
    head: str
    fail_on: str


def print_report(report: DiffReport, output_format: str) -> None:
    """Print the report in a format."""
    import sys

    import msgspec

    from tidegate.cli.output import max_line_width
    from tidegate.report.lint import output
    from tidegate.report.order_diff.document import diff_document
    from tidegate.report.order_diff.markdown import markdown_lines
    from tidegate.report.order_diff.text import diff_lines

    lines: Iterable[str]
    show: Callable[[str], None] = print_document
    match output_format:
        case "json":
            lines = [msgspec.json.encode(diff_document(report)).decode()]
        case "sarif":
            lines = [msgspec.json.encode(output.sarif_document(report.new)).decode()]
        case "github":
            lines = output.github_lines(report.new)
        case "markdown":
            lines = markdown_lines(report)
        case _:
            lines, show = diff_lines(report, max_width=max_line_width(sys.stdout)), print_line
    for line in lines:
        show(line)
