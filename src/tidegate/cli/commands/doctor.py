"""`tidegate doctor`."""

from __future__ import annotations

import click


@click.command()
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How.")
def doctor(output: str) -> None:
    """Show which tools were found, what is missing, and what each is needed for.

    \b
    Examples:
      tidegate doctor
      tidegate doctor -o json
    """
    import msgspec

    from tidegate.flows.doctor import examine

    findings = list(examine())
    if output == "json":
        click.echo(msgspec.json.encode(findings))
        return
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        click.echo(
            f"{finding.name:{width}}  {finding.state:7}  {finding.purpose}: {finding.detail}"
        )
