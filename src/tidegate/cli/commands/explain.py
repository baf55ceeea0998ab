"""`tidegate explain`."""

from __future__ import annotations

import click

from tidegate.cli import options


@click.command()
@click.argument("code", metavar="CODE")
@options.OUTPUT
def explain(code: str, output: str) -> None:
    """Print the page of a rule: what it means, a bad example and a good one.

    \b
    Examples:
      tidegate explain ORD003
      tidegate explain ORD003 -o json
    """
    from tidegate.linting.run import rule_page
    from tidegate.report.lint.output import rule_page_lines

    documented_rule = rule_page(code)
    options.print_result(output, [documented_rule], rule_page_lines(documented_rule.page))
