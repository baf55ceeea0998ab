"""`tidegate kinds`."""

from __future__ import annotations

from pathlib import Path

import click

from tidegate.cli import options
from tidegate.cli.options import EXISTING_FILE
from tidegate.cli.output import print_document, print_line


@options.command()
@click.argument("kind", required=False, default="")
@click.option(
    "--operator-defs", type=EXISTING_FILE, help="File with additional operator definitions."
)
@options.output_option(
    ["text", "json", "markdown"], text="Output format; markdown is a page of all kinds."
)
def kinds(kind: str, operator_defs: Path | None, output: str) -> int:
    """Describe KIND: its operator, its dependencies, what it creates and when it is ready.

    Without KIND, list the operators that a scenario can preinstall by name.

    \b
    Examples:
      tidegate kinds Certificate
      tidegate kinds gateways.networking.istio.io
      tidegate kinds -o markdown
    """
    import msgspec

    from tidegate.actions.knowledge import find_rows, load_effective_knowledge
    from tidegate.report.knowledge import (
        catalog_page_lines,
        kind_document,
        kind_lines,
        operator_lines,
    )

    catalog = load_effective_knowledge(operator_defs)
    selected = (
        find_rows(kind, catalog)
        if kind
        else [(name, kind_row) for kind_row in catalog.rows for name in kind_row.kinds]
    )
    if output == "json":
        for name, row in selected:
            print_document(
                msgspec.json.encode(kind_document(name, row, catalog.operators)).decode()
            )
        return 0
    if output == "markdown":
        lines = [*catalog_page_lines(catalog)]
    elif kind:
        parts = (
            "\n".join(kind_lines(kind_document(*selection, catalog.operators)))
            for selection in selected
        )
        lines = "\n\n".join(parts).split("\n")
    else:
        lines = [*operator_lines(catalog)]
    for line in lines:
        print_line(line)
    return 0
