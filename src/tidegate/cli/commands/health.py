"""`tidegate health`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import FILE

if TYPE_CHECKING:
    from tidegate.flows.health import FileVerdict
    from tidegate.flows.health_tests import ScriptTest

OBJECTS = click.Path(exists=True, dir_okay=False, allow_dash=True)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
HEALTHY, UNHEALTHY = "Healthy", 4


class _Rules(TypedDict):
    """Scripts of the user's: a file of Argo CD's settings, or one for everything."""

    health_rules: Path | None
    script: Path | None
    open_libs: bool


class _FilesOrTest(click.Command):
    """Takes files, or the word `test` and a folder."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:
        if args[:1] == ["test"]:
            return test.make_context(f"{info_name} test", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@options.text_or_json
def test(folder: Path, output: str) -> int:
    """Run the tests of the health scripts below DIR.

    A folder has `health.lua`, `health_test.yaml` and bodies, as in Argo CD's repository.

    \b
    Examples:
      tidegate health test resource_customizations/cert-manager.io
      tidegate health test . -o json
    """
    doing = say_first(f"testing {folder}", quiet=output == "json")
    from tidegate.cli.running import run
    from tidegate.flows.health_tests import run_tests

    found = run(run_tests(folder))
    doing.clear()
    options.show(output, found, _results(found))
    return 0 if all(one.passed for one in found) else UNHEALTHY


def _results(found: Sequence[ScriptTest]) -> Iterator[str]:
    """What failed, and how many there were."""
    wrong = [one for one in found if not one.passed]
    for one in wrong:
        yield one.body
        yield f"  wanted  {': '.join(filter(None, one.wanted))}"
        yield f"  said    {one.problem or ': '.join(filter(None, one.said)) or 'nothing'}"
    yield f"{len(found) - len(wrong)} of {len(found)} passed"


@click.command(cls=_FilesOrTest)
@click.argument("files", nargs=-1, required=True, type=OBJECTS, metavar="FILE...")
@click.option(
    "--health-rules",
    "--config",
    "health_rules",
    type=FILE,
    help="Scripts, as Argo CD has them in argocd-cm.",
)
@click.option("--lua", "script", type=FILE, help="One script, for every object.")
@click.option("--open-libs", is_flag=True, help="Let the script of --lua use all libraries.")
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
    dialect: str,
    exit_code: bool,  # noqa: FBT001 - click hands over what is on the command line
    output: str,
    **rules: Unpack[_Rules],
) -> int:
    """Show how the objects in FILES are, and which rule says so.

    A file holds objects as they live, with their status. `-` reads standard input.

    \b
    Examples:
      tidegate health deployment.yaml
      kubectl get applications -A -o yaml | tidegate health - --health-rules argocd-cm.yaml
      tidegate health objects.yaml --rules kstatus
      tidegate health objects.yaml -o json --exit-code
      tidegate health certificate.yaml --lua health.lua
      tidegate health test DIR
    """
    doing = say_first(f"judging {', '.join(files)}", quiet=output == "json")
    from tidegate.cli.running import run
    from tidegate.flows.health import judge_files

    if (rules["health_rules"] or rules["script"]) and dialect != "argo":
        raise click.BadParameter("only Argo CD has scripts", param_hint="--health-rules")
    found = run(judge_files(files, dialect=dialect, **rules))
    doing.clear()
    options.show(output, map(_document, found), _table(found))
    ill = any(one.verdict.health != HEALTHY for one in found)
    return UNHEALTHY if exit_code and ill else 0


def _document(one: FileVerdict) -> dict[str, object]:
    from tidegate.report.status import verdict_document

    judged = {"rule": one.rule, "script": one.script}
    return {**verdict_document(one.ref, one.verdict), "where": one.where, **judged}


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
