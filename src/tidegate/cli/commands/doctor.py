"""`tidegate doctor`."""

from __future__ import annotations

from tidegate.cli import options
from tidegate.cli.progress import show_progress


@options.command()
@options.OUTPUT
def doctor(output: str) -> None:
    """Show which external tools are installed, and what each is needed for.

    \b
    Examples:
      tidegate doctor
      tidegate doctor -o json
    """
    progress_line = show_progress("looking for tools", quiet=output == "json")
    from tidegate.actions.doctor import check_tools
    from tidegate.cli.run_async import run_async

    tools = run_async(check_tools())
    progress_line.clear()
    name_width = max(len(tool_status.name) for tool_status in tools)
    version_width = max(len(tool_status.version) for tool_status in tools)
    lines = (
        f"{tool.name:{name_width}}  {tool.state:7}  {tool.version:{version_width}}  {tool.purpose}:"
        f" {tool.detail}"
        for tool in tools
    )
    options.print_result(output, [tools], lines)
