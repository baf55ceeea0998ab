"""`tidegate appset`."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.saying import hand_out, say_lines
from tidegate.cli.unit_options import FILE, Given, takes

WRITTEN = click.Path(exists=True, path_type=Path)
DATA = click.option(
    "--generator-data", type=FILE, help="What generators find that ask a server elsewhere."
)


@click.group()
def appset() -> None:
    """Show what ApplicationSets come to.

    \b
    Examples:
      tidegate appset generate argocd/platform.yaml
      tidegate appset generate argocd/platform.yaml -o names --params
    """


@appset.command(short_help="Show the Applications that sets generate.")
@click.argument("file", type=WRITTEN)
@takes((DATA,))
@options.offline
@options.repo_map
@click.option("--params", is_flag=True, help="Show the parameters of each Application.")
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json", "names"]), default="yaml", help="How."
)
def generate(file: Path, params: bool, **told: Unpack[Given]) -> int:  # noqa: FBT001 - click's way
    """Show the Applications that the sets in FILE generate, in the order of their generators.

    FILE may be a directory: then all sets below it are meant. Git generators look into the
    repository that FILE lies in, where they speak of it. No Application is rendered.

    With --params the parameters are shown: in the place of the Applications, or beside them with
    -o json and -o names.

    \b
    Examples:
      tidegate appset generate argocd/platform.yaml
      tidegate appset generate argocd/platform.yaml -o names
      tidegate appset generate argocd/platform.yaml --params
      tidegate appset generate argocd -o json --params --generator-data found.yaml
    """
    doing = say_first(f"reading {file}")
    from tidegate.cli.asking import pointed_of, setting_of
    from tidegate.cli.running import run
    from tidegate.flows.appset import generate_sets
    from tidegate.report.sets import set_texts

    made = run(generate_sets(pointed_of(str(file), told), setting_of(told)))
    doing.clear()
    for text in set_texts(made.rows, form=told["output"], params=params):
        if told["output"] == "names":
            say_lines(text.removesuffix("\n"))
        else:
            hand_out(text, end="")
    return options.say_findings(made.findings)
