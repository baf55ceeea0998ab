"""`tidegate cache`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.cli import options
from tidegate.cli.progress import show_progress

if TYPE_CHECKING:
    from tidegate.actions.cache import CacheContents, CacheSection

CACHE_KINDS = ("sources", "charts", "renders", "answers")
"""Known without an import; a test compares them with the cache sections."""


@click.group(invoke_without_command=True)
@click.pass_context
def cache(context: click.Context) -> None:
    """Show or clear the cache of fetched sources and rendered charts.

    \b
    Examples:
      tidegate cache
      tidegate cache show -o json
      tidegate cache clear renders
    """
    if context.invoked_subcommand is None:
        context.invoke(show)


@cache.command(short_help="Show the contents of the cache.")
@options.OUTPUT
def show(output: str = "text") -> None:
    """Show the number, size and last use of cached sources, charts and renders."""
    progress_line = show_progress("reading the cache", quiet=output == "json")
    from tidegate.actions.cache import read_cache_contents

    contents = read_cache_contents()
    progress_line.clear()
    options.print_result(output, [contents], _table(contents))


@cache.command()
@click.argument("kinds", nargs=-1, type=click.Choice(CACHE_KINDS))
@options.OUTPUT
def clear(kinds: tuple[str, ...], output: str) -> None:
    """Remove everything, or only these KINDS. Entries in use are kept."""
    progress_line = show_progress("clearing the cache", quiet=output == "json")
    from tidegate.actions.cache import clear_cache

    cleared = clear_cache(kinds)
    progress_line.clear()
    in_use_text = f"; kept {cleared.kept} in use" if cleared.kept else ""
    line = f"removed {cleared.removed}, freed {_format_size(cleared.bytes)}{in_use_text}"
    options.print_result(output, [cleared], [line])


def _table(contents: CacheContents) -> list[str]:
    rows = [("kind", "count", "size", "last used", "oldest")]
    rows += [_section_row(section) for section in contents.sections]
    home_directory = str(Path.home())
    root = (
        contents.root.replace(home_directory, "~", 1)
        if contents.root.startswith(home_directory)
        else contents.root
    )
    return [
        *(
            f"{kind:8} {count:>6} {size:>10}  {last_used:14} {oldest}".rstrip()
            for kind, count, size, last_used, oldest in rows
        ),
        f"{_format_size(contents.bytes)} of at most {_format_size(contents.limit)} in {root}",
    ]


def _section_row(section: CacheSection) -> tuple[str, str, str, str, str]:
    return (
        section.kind,
        str(section.count),
        _format_size(section.bytes),
        _format_age(section.newest),
        _format_age(section.oldest),
    )


def _format_size(count: int) -> str:
    """Format a number of bytes."""
    size, unit = float(count), "B"
    for next_unit in ("KiB", "MiB", "GiB"):
        if size < 1024:  # noqa: PLR2004
            break
        size, unit = size / 1024, next_unit
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def _format_age(seconds: int | None) -> str:
    if seconds is None:
        return ""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} seconds ago" if seconds > 1 else "just now"
