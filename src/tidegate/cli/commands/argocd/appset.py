"""`tidegate argocd appset`."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import EXISTING_FILE, Flags, with_options
from tidegate.cli.output import print_document, print_lines
from tidegate.cli.progress import show_progress

EXISTING_PATH = click.Path(exists=True, path_type=Path)
GENERATOR_DATA = click.option(
    "--generator-data",
    type=EXISTING_FILE,
    help="Results of generators that query external services.",
)


@click.group()
def appset() -> None:
    """Print the Applications that ApplicationSets generate.

    \b
    Examples:
      tidegate argocd appset generate argocd/platform.yaml
      tidegate argocd appset generate argocd/platform.yaml -o names --params
    """


@appset.command(short_help="Print the Applications that ApplicationSets generate.")
@click.argument("file", type=EXISTING_PATH)
@with_options((GENERATOR_DATA,))
@options.OFFLINE
@options.REPO_MAP
@click.option("--params", is_flag=True, help="Print the parameters of each Application.")
@options.output_option(["yaml", "json", "names"])
def generate(file: Path, params: bool, **flags: Unpack[Flags]) -> int:  # noqa: FBT001 - a click parameter
    """Print the Applications that the ApplicationSets in FILE generate, in generator order.

    FILE may be a directory with several ApplicationSets. Git generators that refer to the
    repository of FILE read the local checkout. Applications are not rendered.

    With --params, the parameters are printed instead of the Applications; with -o json and
    -o names, both are printed.

    \b
    Examples:
      tidegate argocd appset generate argocd/platform.yaml
      tidegate argocd appset generate argocd/platform.yaml -o names
      tidegate argocd appset generate argocd/platform.yaml --params
      tidegate argocd appset generate argocd --generator-data results.yaml
    """
    progress_line = show_progress(f"reading {file}")
    from tidegate.actions.appset import generate_appsets
    from tidegate.cli.requests import load_request, render_settings
    from tidegate.cli.run_async import run_async
    from tidegate.report.appset import appset_texts

    generated = run_async(generate_appsets(load_request(str(file), flags), render_settings(flags)))
    progress_line.clear()
    for text in appset_texts(generated.rows, output_format=flags["output"], with_params=params):
        if flags["output"] == "names":
            print_lines(text.removesuffix("\n"))
        else:
            print_document(text, end="")
    return options.print_findings(generated.findings)
