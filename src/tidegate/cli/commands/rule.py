"""`tidegate rule`."""

from __future__ import annotations

import click

from tidegate.cli import options


@options.command()
@click.argument("code", metavar="CODE")
@options.OUTPUT
def rule(code: str, output: str) -> None:
    """Explain a lint rule, with a bad and a good example, or any other code that is printed.

    \b
    Examples:
      tidegate rule ORD003
      tidegate rule units.unknown
      tidegate rule ORD003 -o json
    """
    from tidegate.linting.code_pages import describe_code
    from tidegate.report.lint.output import rule_page_lines

    documented_rule = describe_code(code)
    options.print_result(output, [documented_rule], rule_page_lines(documented_rule.page))
