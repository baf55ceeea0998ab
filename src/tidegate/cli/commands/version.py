"""`tidegate version`."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version as version_of

import click


@click.command()
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How.")
def version(output: str) -> None:
    """Show the version of Tidegate.

    \b
    Examples:
      tidegate version
      tidegate version -o json
    """
    found = {"tidegate": version_of("tidegate"), "python": platform.python_version()}
    if output == "json":
        click.echo(json.dumps(found))
        return
    click.echo(f"tidegate {found['tidegate']} (Python {found['python']})")
