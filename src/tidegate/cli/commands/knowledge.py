"""`tidegate knowledge`."""

from __future__ import annotations

from pathlib import Path

import click

from tidegate.cli.saying import hand_out, say
from tidegate.cli.unit_options import FILE


@click.command()
@click.argument("kind", required=False, default="")
@click.option("--operators", type=FILE, help="Rows for operators of your own.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    help="How; markdown is the page of all kinds.",
)
def knowledge(kind: str, operators: Path | None, output: str) -> int:
    """Show what is known of KIND: who serves it, what it needs and makes, when it is well.

    Without KIND, show the operators that a scenario can give by their names.

    \b
    Examples:
      tidegate knowledge Certificate
      tidegate knowledge gateways.networking.istio.io
      tidegate knowledge -o markdown
    """
    import msgspec

    from tidegate.flows.knowledge import all_known, rows_about
    from tidegate.report.knowledge import kind_lines, known_kind, operator_lines, page_lines

    known = all_known(operators)
    asked = rows_about(kind, known) if kind else [(name, r) for r in known.rows for name in r.kinds]
    if output == "json":
        for name, row in asked:
            hand_out(msgspec.json.encode(known_kind(name, row, known.operators)).decode())
        return 0
    if output == "markdown":
        lines = [*page_lines(known)]
    elif kind:
        parts = ("\n".join(kind_lines(known_kind(*one, known.operators))) for one in asked)
        lines = "\n\n".join(parts).split("\n")
    else:
        lines = [*operator_lines(known)]
    for line in lines:
        say(line)
    return 0
