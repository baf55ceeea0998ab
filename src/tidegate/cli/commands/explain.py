"""`tidegate explain`."""

from __future__ import annotations

import click

from tidegate.cli.saying import say


@click.command()
@click.argument("code", metavar="CODE")
def explain(code: str) -> None:
    """Print the page of a rule: what it means, a bad example and a good one.

    \b
    Examples:
      tidegate explain ORD003
    """
    from tidegate.flows.lint import page_of
    from tidegate.report.lint.page import page_lines

    for line in page_lines(page_of(code)):
        say(line)
