"""`tidegate cache`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first

if TYPE_CHECKING:
    from tidegate.flows.cache import Contents, ShelfContents

KINDS = ("sources", "charts", "renders", "answers")
"""Known without an import; a test compares them with what there is."""


@click.group(invoke_without_command=True)
@click.pass_context
def cache(context: click.Context) -> None:
    """Show or clear what was fetched and rendered before.

    \b
    Examples:
      tidegate cache
      tidegate cache show -o json
      tidegate cache clear renders
    """
    if context.invoked_subcommand is None:
        context.invoke(show)


@cache.command(short_help="Show what the cache holds.")
@options.text_or_json
def show(output: str = "text") -> None:
    """Show what the cache holds: how many, how large, and when it was used last."""
    doing = say_first("looking into the cache", quiet=output == "json")
    from tidegate.flows.cache import look_into_cache

    contents = look_into_cache()
    doing.clear()
    options.show(output, [contents], _table(contents))


@cache.command()
@click.argument("kinds", nargs=-1, type=click.Choice(KINDS))
@options.text_or_json
def clear(kinds: tuple[str, ...], output: str) -> None:
    """Remove everything, or only these KINDS. What another process uses stays."""
    doing = say_first("clearing the cache", quiet=output == "json")
    from tidegate.flows.cache import clear_cache

    cleared = clear_cache(kinds)
    doing.clear()
    stayed = f"; {cleared.kept} in use stayed" if cleared.kept else ""
    line = f"{cleared.removed} removed, {_size(cleared.bytes)} free again{stayed}"
    options.show(output, [cleared], [line])


def _table(contents: Contents) -> list[str]:
    rows = [("kind", "count", "size", "last used", "oldest")]
    rows += [_row(shelf) for shelf in contents.shelves]
    home = str(Path.home())
    root = contents.root.replace(home, "~", 1) if contents.root.startswith(home) else contents.root
    return [
        *(
            f"{kind:8} {count:>6} {size:>10}  {last:14} {old}".rstrip()
            for kind, count, size, last, old in rows
        ),
        f"{_size(contents.bytes)} of at most {_size(contents.limit)} in {root}",
    ]


def _row(shelf: ShelfContents) -> tuple[str, str, str, str, str]:
    return shelf.kind, str(shelf.count), _size(shelf.bytes), _ago(shelf.newest), _ago(shelf.oldest)


def _size(count: int) -> str:
    """Bytes as people read them."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024:  # noqa: PLR2004
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def _ago(seconds: int | None) -> str:
    if seconds is None:
        return ""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} seconds ago" if seconds > 1 else "just now"
