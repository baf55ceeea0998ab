"""`tidegate lint`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_path
from tidegate.cli.doing import say_first
from tidegate.cli.saying import hand_out
from tidegate.cli.unit_options import HEALTH, NARROWING, UNIT, Given, takes

if TYPE_CHECKING:
    from tidegate.report.lint.report import LintReport

FORMS = ("text", "json", "sarif", "junit", "github", "markdown")


def _codes(_ctx: click.Context, _option: click.Parameter, said: tuple[str, ...]) -> object:
    return tuple(part.strip() for one in said for part in one.split(",") if part.strip())


def _levels(
    _ctx: click.Context, _option: click.Parameter, said: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """How bad a finding must be, or CODE=SEVERITY: how bad one is."""
    from tidegate.model.finding import Severity

    pairs = tuple((code, level) for code, _, level in (one.rpartition("=") for one in said))
    for _, level in pairs:
        if level not in {one.value for one in Severity}:
            known = ", ".join(one.value for one in Severity)
            raise click.BadParameter(f"there is no severity `{level}`; there are {known}")
    return pairs


@click.command()
@click.argument("what", metavar="[PATH]", default=".", shell_complete=complete_path)
@click.option(
    "--engine",
    default="own",
    type=click.Choice(["own", "argocd", "flux", "tidegate"]),
    show_default=True,
    help="Whose rules; each unit's own, unless said.",
)
@click.option("--greenfield", is_flag=True, help="Say what an empty cluster lacks.")
@click.option("--select", multiple=True, callback=_codes, metavar="CODE", help="Only these rules.")
@click.option("--ignore", multiple=True, callback=_codes, metavar="CODE", help="Not these rules.")
@click.option(
    "--severity",
    multiple=True,
    callback=_levels,
    metavar="[CODE=]SEVERITY",
    help="Tell what is at least so bad; with a code, how bad that is.",
)
@click.option(
    "--baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Say nothing of what this file has.",
)
@click.option("--update-baseline", is_flag=True, help="Write all that is found into the baseline.")
@takes(NARROWING, UNIT, HEALTH)
@click.option("--operators", type=click.Path(exists=True, path_type=Path), help="Rows of your own.")
@click.option("-o", "--output", type=click.Choice(FORMS), default="text", help="How.")
def lint(what: str, **told: Unpack[LintGiven]) -> int:
    """Say whether the order of a repository can work, before anything runs.

    PATH is a repository of Argo CD's or Flux's, or of both, a chart, an overlay or a directory.
    Nothing is written, and no cluster is asked. `tidegate explain CODE` tells more of a finding.

    \b
    Examples:
      tidegate lint
      tidegate lint clusters/prod --severity warning
      tidegate lint . --baseline .tidegate-baseline.json -o sarif
      tidegate lint . --greenfield --select ORD003,ORD006
    """
    doing = say_first(f"linting {what}", quiet=told["output"] != "text")
    from tidegate.cli.asking import pointed_of, setting_of, target_of
    from tidegate.cli.running import run as run_story
    from tidegate.flows.lint import Asking
    from tidegate.flows.lint import lint as run
    from tidegate.model.finding import Severity
    from tidegate.model.semantics import BY_NAME

    if told["update_baseline"] and told["baseline"] is None:
        raise click.BadParameter("it needs `--baseline FILE`", param_hint="--update-baseline")
    told["sandbox"] = told["still"] = True
    levels = {code: Severity(level) for code, level in told["severity"] if code}
    least = [Severity(level) for code, level in told["severity"] if not code]
    asking = Asking(
        select=told["select"],
        ignore=told["ignore"],
        severity=least[-1] if least else Severity.NOTE,
        levels=levels,
        rules=BY_NAME.get(told["engine"]),
        greenfield=told["greenfield"],
        baseline=told["baseline"],
        updates=told["update_baseline"],
    )
    report = run_story(run(pointed_of(what, told), target_of(told), setting_of(told), asking))
    doing.clear()
    for line in _lines(report, told["output"]):
        hand_out(line)  # what others wrote is made printable in each form's own way
    return options.INPUT if report.has_errors else 0


class LintGiven(Given, total=False):
    """What can be said to this verb alone."""

    greenfield: bool
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    severity: tuple[tuple[str, str], ...]
    baseline: Path | None
    update_baseline: bool


def _lines(report: LintReport, form: str) -> Iterable[str]:
    import os
    import sys

    import msgspec

    from tidegate.cli.window import can_draw, room_on
    from tidegate.report.lint import documents
    from tidegate.report.lint.text import lint_lines

    def encoded(document: object) -> list[str]:
        return [msgspec.json.encode(document).decode()]

    match form:
        case "json":
            return encoded(documents.lint_document(report))
        case "sarif":
            return encoded(documents.sarif_document(report))
        case "junit":
            return documents.junit_text(report)
        case "github":
            return documents.github_lines(report)
        case "markdown":
            return documents.markdown_lines(report)
        case _:
            is_seen = can_draw(sys.stdout, os.environ) and not os.environ.get("NO_COLOR")
            return lint_lines(report, room=room_on(sys.stdout), colour=is_seen)
