"""`tidegate completion`."""

from __future__ import annotations

import click

from tidegate.cli import options
from tidegate.cli.output import print_document

SHELLS = ("bash", "zsh", "fish")


@options.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a completion script for bash, zsh or fish.

    \b
    Examples:
      eval "$(tidegate completion bash)"
      tidegate completion zsh > ~/.zfunc/_tidegate
      tidegate completion fish > ~/.config/fish/completions/tidegate.fish
    """
    from click.shell_completion import get_completion_class

    from tidegate.cli.main import cli

    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.BadParameter(f"no completion script for `{shell}`")
    print_document(completion_class(cli, {}, "tidegate", "_TIDEGATE_COMPLETE").source())
