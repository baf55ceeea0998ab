"""`tidegate health`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import EXISTING_FILE
from tidegate.cli.progress import show_progress

if TYPE_CHECKING:
    from tidegate.actions.health import FileVerdict, ScriptTest

OBJECT_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)
EXISTING_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
HEALTHY, UNHEALTHY = "Healthy", 4


class _RuleFlags(TypedDict):
    """Health scripts of the user: a file of Argo CD settings, or one script for all objects."""

    health_rules: Path | None
    script: Path | None
    open_libs: bool


@options.command()
@click.argument("folder", type=EXISTING_DIRECTORY, metavar="DIR")
@options.OUTPUT
def test(folder: Path, output: str) -> int:
    """Run the tests of the health scripts in DIR and its subdirectories.

    A directory has `health.lua`, `health_test.yaml` and objects, as in the Argo CD repository.

    \b
    Examples:
      tidegate health test resource_customizations/cert-manager.io
      tidegate health test . -o json
    """
    progress_line = show_progress(f"testing {folder}", quiet=output == "json")
    from tidegate.actions.health import run_tests
    from tidegate.cli.run_async import run_async

    results = run_async(run_tests(folder))
    progress_line.clear()
    options.print_result(output, results, _test_lines(results))
    return 0 if all(result.passed for result in results) else UNHEALTHY


def _test_lines(results: Sequence[ScriptTest]) -> Iterator[str]:
    """Yield the failed tests and the number of passed ones."""
    failures = [result for result in results if not result.passed]
    for failure in failures:
        yield failure.body
        yield f"  expected  {': '.join(filter(None, failure.expected))}"
        actual = ": ".join(filter(None, failure.actual))
        yield f"  actual    {failure.problem or actual or 'nothing'}"
    yield f"{len(results) - len(failures)} of {len(results)} passed"


@options.command(subcommands={"test": test})
@click.argument("files", nargs=-1, required=True, type=OBJECT_FILE, metavar="FILE...")
@click.option(
    "--health-rules",
    "--config",
    "health_rules",
    type=EXISTING_FILE,
    help="File with Lua health checks, in the format of argocd-cm.",
)
@click.option("--lua", "script", type=EXISTING_FILE, help="Lua script for all objects.")
@click.option(
    "--open-libs", is_flag=True, help="Allow the script of --lua to use all Lua libraries."
)
@click.option(
    "--rules",
    "dialect",
    type=click.Choice(["argo", "kstatus"]),
    default="argo",
    show_default=True,
    help="Health rules: those of Argo CD, or kstatus as in Flux.",
)
@click.option("--exit-code", is_flag=True, help="Exit with 4 if an object is not Healthy.")
@options.OUTPUT
def health(
    files: tuple[str, ...],
    dialect: str,
    exit_code: bool,  # noqa: FBT001 - a click parameter
    output: str,
    **rules: Unpack[_RuleFlags],
) -> int:
    """Evaluate the health of the objects in each FILE, and name the rule that applied.

    A file contains live objects, with their status. `-` reads standard input.

    \b
    Examples:
      tidegate health deployment.yaml
      kubectl get apps -A -o yaml | tidegate health -
      tidegate health objects.yaml --health-rules argocd-cm.yaml
      tidegate health objects.yaml --rules kstatus
      tidegate health objects.yaml -o json --exit-code
      tidegate health certificate.yaml --lua health.lua
      tidegate health test DIR
    """
    progress_line = show_progress(f"evaluating {', '.join(files)}", quiet=output == "json")
    from tidegate.actions.health import judge_files
    from tidegate.cli.run_async import run_async

    if (rules["health_rules"] or rules["script"]) and dialect != "argo":
        raise click.BadParameter("only Argo CD has Lua health checks", param_hint="--health-rules")
    verdicts = run_async(judge_files(files, dialect=dialect, **rules))
    progress_line.clear()
    options.print_result(output, map(_verdict_document, verdicts), _verdict_lines(verdicts))
    is_unhealthy = any(file_verdict.verdict.health != HEALTHY for file_verdict in verdicts)
    return UNHEALTHY if exit_code and is_unhealthy else 0


def _verdict_document(file_verdict: FileVerdict) -> dict[str, object]:
    from tidegate.report.status import verdict_document

    rule_fields = {"rule": file_verdict.rule, "script": file_verdict.script}
    return {
        **verdict_document(file_verdict.ref, file_verdict.verdict),
        "location": file_verdict.location,
        **rule_fields,
    }


def _verdict_lines(verdicts: Sequence[FileVerdict]) -> Iterator[str]:
    rows = [("object", "health", "rule", "reason", "")]
    rows += [_verdict_cells(file_verdict) for file_verdict in verdicts]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=False))
        yield "  ".join((*cells, row[-1])).rstrip()


def _verdict_cells(file_verdict: FileVerdict) -> tuple[str, str, str, str, str]:
    verdict = file_verdict.verdict
    rule = (
        f"{file_verdict.rule} {file_verdict.script}"
        if file_verdict.script
        else str(file_verdict.rule)
    )
    rule += "" if verdict.is_checked else ", unchecked"
    return str(file_verdict.ref), str(verdict.health), rule, verdict.reason, verdict.message
