"""`tidegate doctor`."""

from __future__ import annotations

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first


@click.command()
@options.text_or_json
def doctor(output: str) -> None:
    """Show which tools were found, what is missing, and what each is needed for.

    \b
    Examples:
      tidegate doctor
      tidegate doctor -o json
    """
    doing = say_first("looking for tools", quiet=output == "json")
    from tidegate.cli.running import run
    from tidegate.flows.doctor import examine

    findings = run(examine())
    doing.clear()
    names = max(len(finding.name) for finding in findings)
    versions = max(len(finding.version) for finding in findings)
    lines = (
        f"{one.name:{names}}  {one.state:7}  {one.version:{versions}}  {one.purpose}: {one.detail}"
        for one in findings
    )
    options.show(output, [findings], lines)
