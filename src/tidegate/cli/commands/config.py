"""`tidegate config`."""

from __future__ import annotations

from pathlib import Path

import click

from tidegate.cli import options


@options.command()
@click.argument("path", default=".", type=click.Path(exists=True, path_type=Path))
@options.OUTPUT
def config(path: Path, output: str) -> None:
    """Show the effective configuration of PATH and where each value comes from.

    Values come from the closest `tidegate.yaml` between PATH and the root of its Git repository;
    the others are defaults. The output is a valid `tidegate.yaml`.

    \b
    Examples:
      tidegate config
      tidegate config clusters/prod
      tidegate config -o json
    """
    from tidegate.report.config import config_document, config_lines
    from tidegate.workspace.config import load_config

    effective = load_config(path)
    options.print_result(output, [config_document(effective)], config_lines(effective))
