"""`tidegate help`."""

from __future__ import annotations

import click

from tidegate.cli.output import print_line, print_lines

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
    from tidegate.cli.exit_codes import EXIT_CODE_MEANINGS
    from tidegate.cli.main import cli

    if words == (EXIT_CODES,):
        for code, meaning in EXIT_CODE_MEANINGS.items():
            print_line(f"{code:>5}  {meaning}")
        return
    root: click.Command = cli
    context = click.Context(root, info_name="tidegate", **cli.context_settings)
    for name in words:
        if not isinstance(root, click.Group):
            raise click.UsageError(f"`{context.command_path}` has no command `{name}`")
        command_name, command, _ = root.resolve_command(context, [name])
        if command is None:
            raise click.UsageError(f"`{context.command_path}` has no command `{name}`")
        root, context = command, click.Context(command, info_name=command_name, parent=context)
    print_lines(context.get_help())
