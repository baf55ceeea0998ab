"""`tidegate help`."""

from __future__ import annotations

import click

from tidegate.cli.saying import say, say_lines

EXIT_CODES = "exit-codes"


@click.command("help")
@click.argument("words", metavar="[COMMAND...]", nargs=-1)
def help(words: tuple[str, ...]) -> None:  # noqa: A001 - the name of the verb
    """Show how a command is called, as its --help does; `exit-codes` shows what those mean.

    \b
    Examples:
      tidegate help
      tidegate help sync
      tidegate help exit-codes
    """
    from tidegate.cli.exit_codes import MEANINGS
    from tidegate.cli.main import cli

    if words == (EXIT_CODES,):
        for code, meaning in MEANINGS.items():
            say(f"{code:>5}  {meaning}")
        return
    root: click.Command = cli
    context = click.Context(root, info_name="tidegate", **cli.context_settings)
    for word in words:
        if not isinstance(root, click.Group):
            raise click.UsageError(f"`{context.command_path}` has no command `{word}`")
        name, found, _ = root.resolve_command(context, [word])
        if found is None:
            raise click.UsageError(f"`{context.command_path}` has no command `{word}`")
        root, context = found, click.Context(found, info_name=name, parent=context)
    say_lines(context.get_help())
