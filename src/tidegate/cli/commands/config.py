"""`tidegate config`."""

from __future__ import annotations

from pathlib import Path

import click

from tidegate.cli import options


@click.command()
@click.argument("path", default=".", type=click.Path(exists=True, path_type=Path))
@options.OUTPUT
def config(path: Path, output: str) -> None:
    """Show what counts for the repository at PATH, and where it comes from.

    It is what the nearest `tidegate.yaml` says, from PATH up to the root of its Git repository, and
    the default for the rest. The text can be such a file itself.

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
