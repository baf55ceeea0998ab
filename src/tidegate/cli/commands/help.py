"""`tidegate help`."""

from __future__ import annotations

import click

from tidegate.cli.output import print_line, print_lines

EXIT_CODES, RENDERING = "exit-codes", "rendering"


@click.command("help")
@click.argument("topic", metavar="[COMMAND...]", nargs=-1)
def help(topic: tuple[str, ...]) -> None:  # noqa: A001 - the name of the command
    """Show the help of a command, the exit codes, or the options for rendering sources.

    \b
    Examples:
      tidegate help
      tidegate help sync
      tidegate help rendering
      tidegate help exit-codes
    """
    from tidegate.cli.main import cli

    context = click.Context(cli, info_name="tidegate", **cli.context_settings)
    if topic == (EXIT_CODES,):
        _print_exit_codes()
    elif topic == (RENDERING,):
        _print_rendering_options(context)
    else:
        print_lines(_find_command(context, topic).get_help())


def _print_exit_codes() -> None:
    from tidegate.cli.exit_codes import EXIT_CODE_MEANINGS

    for code, meaning in EXIT_CODE_MEANINGS.items():
        print_line(f"{code:>5}  {meaning}")


def _print_rendering_options(context: click.Context) -> None:
    """Print the options of `sync` that select and render sources."""
    from tidegate.cli.command import RENDERING_OPTIONS
    from tidegate.cli.commands.sync import sync

    formatter = context.make_formatter()
    formatter.write_text("Options for rendering sources, of lint, plan, simulate, sync and others:")
    records = [
        record
        for parameter in sync.get_params(context)
        if parameter.name in RENDERING_OPTIONS
        and (record := parameter.get_help_record(context)) is not None
    ]
    with formatter.section("Options"):
        formatter.write_dl(records)
    print_lines(formatter.getvalue().rstrip("\n"))


def _find_command(context: click.Context, names: tuple[str, ...]) -> click.Context:
    """Return the context of a command. Raises click.UsageError if there is none."""
    for name in names:
        group = context.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"`{context.command_path}` has no command `{name}`")
        command_name, command, _ = group.resolve_command(context, [name])
        if command is None:
            raise click.UsageError(f"`{context.command_path}` has no command `{name}`")
        context = click.Context(command, info_name=command_name, parent=context)
    return context
