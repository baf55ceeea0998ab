"""`tidegate health`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.cli import options
from tidegate.cli.unit_options import FILE

if TYPE_CHECKING:
    from tidegate.flows.health import FileVerdict

OBJECTS = click.Path(exists=True, dir_okay=False, allow_dash=True)
HEALTHY, UNHEALTHY = "Healthy", 4


@click.command()
@click.argument("files", nargs=-1, required=True, type=OBJECTS, metavar="FILE...")
@click.option("--health-rules", type=FILE, help="Scripts, as Argo CD has them in argocd-cm.")
@click.option(
    "--rules",
    "dialect",
    type=click.Choice(["argo", "kstatus"]),
    default="argo",
    show_default=True,
    help="Whose rules: Argo CD's, or Flux's.",
)
@click.option("--exit-code", is_flag=True, help="Leave with 4 if an object is not Healthy.")
@options.text_or_json
def health(
    files: tuple[str, ...],
    health_rules: Path | None,
    dialect: str,
    exit_code: bool,  # noqa: FBT001 - click hands over what is on the command line
    output: str,
) -> int:
    """Show how the objects in FILES are, and which rule says so.

    A file holds objects as they live, with their status. `-` reads standard input.

    \b
    Examples:
      tidegate health deployment.yaml
      kubectl get applications -A -o yaml | tidegate health - --health-rules argocd-cm.yaml
      tidegate health objects.yaml --rules kstatus
      tidegate health objects.yaml -o json --exit-code
    """
    import asyncio

    from tidegate.flows.health import judge_files

    if health_rules is not None and dialect != "argo":
        raise click.BadParameter("only Argo CD has scripts", param_hint="--health-rules")
    found = asyncio.run(judge_files(files, health_rules=health_rules, dialect=dialect))
    options.show(output, found, _table(found))
    ill = any(one.verdict.health != HEALTHY for one in found)
    return UNHEALTHY if exit_code and ill else 0


def _table(found: Sequence[FileVerdict]) -> Iterator[str]:
    rows = [("object", "health", "rule", "reason", "")]
    rows += [_row(one) for one in found]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=False))
        yield "  ".join((*cells, row[-1])).rstrip()


def _row(one: FileVerdict) -> tuple[str, str, str, str, str]:
    verdict = one.verdict
    rule = f"{one.rule} {one.script}" if one.script else str(one.rule)
    rule += "" if verdict.checked else ", unchecked"
    return str(one.ref), str(verdict.health), rule, verdict.reason, verdict.sentence
