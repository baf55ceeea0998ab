"""`tidegate version`."""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of

from tidegate.cli import options


@options.command()
@options.OUTPUT
def version(output: str) -> None:
    """Show the version of Tidegate.

    \b
    Examples:
      tidegate version
      tidegate version -o json
    """
    from tidegate.model.rollouts.documents import JSON_VERSION

    versions = {
        "tidegate": version_of("tidegate"),
        "python": platform.python_version(),
        "json": JSON_VERSION,
    }
    line = f"tidegate {versions['tidegate']} (Python {versions['python']})"
    options.print_result(output, [versions], [line])
