"""`tidegate explain`."""

from __future__ import annotations

import click

from tidegate.cli import options


@click.command()
@click.argument("code", metavar="CODE")
@options.text_or_json
def explain(code: str, output: str) -> None:
    """Print the page of a rule: what it means, a bad example and a good one.

    \b
    Examples:
      tidegate explain ORD003
      tidegate explain ORD003 -o json
    """
    from tidegate.flows.lint import page_of
    from tidegate.report.lint.page import page_lines

    found = page_of(code)
    options.show(output, [found], page_lines(found.page))
