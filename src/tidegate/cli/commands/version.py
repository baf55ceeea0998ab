"""`tidegate version`."""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of

import click

from tidegate.cli import options


@click.command()
@options.text_or_json
def version(output: str) -> None:
    """Show the version of Tidegate.

    \b
    Examples:
      tidegate version
      tidegate version -o json
    """
    from tidegate.report.rollout.documents import VERSION

    found = {
        "tidegate": version_of("tidegate"),
        "python": platform.python_version(),
        "json": VERSION,
    }
    line = f"tidegate {found['tidegate']} (Python {found['python']})"
    options.show(output, [found], [line])
