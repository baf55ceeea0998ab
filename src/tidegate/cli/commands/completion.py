"""`tidegate completion`."""

from __future__ import annotations

import click

from tidegate.cli.saying import hand_out

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what SHELL needs to complete tidegate's commands and options.

    \b
    Examples:
      eval "$(tidegate completion bash)"
      tidegate completion zsh > ~/.zfunc/_tidegate
      tidegate completion fish > ~/.config/fish/completions/tidegate.fish
    """
    from click.shell_completion import get_completion_class

    from tidegate.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.BadParameter(f"there is no completion for `{shell}`")
    hand_out(kind(cli, {}, "tidegate", "_TIDEGATE_COMPLETE").source())
