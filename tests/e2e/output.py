"""What tests read of the output of a command."""

from __future__ import annotations

import json
import re
from asyncio.subprocess import Process


def lines_with(text: str, *parts: str) -> list[str]:
    """The lines that have all of these parts."""
    return [line for line in text.splitlines() if all(part in line for part in parts)]


def numbers_in(line: str) -> list[int]:
    """The whole numbers of a line, in order."""
    return [int(number) for number in re.findall(r"\b\d+\b", line)]


def events_of(stdout: str, kind: str) -> list[dict[str, str]]:
    """The events of a kind, of a command with `-o json`."""
    events = [json.loads(line) for line in stdout.splitlines()]
    return [event for event in events if event["event"] == kind]


def plain_lines(stderr: str) -> list[str]:
    """The lines that belong to no finding: notes about what could not be done."""
    return [line for line in stderr.splitlines() if not re.match(r"(error|warning|note)\[| ", line)]


async def read_until(process: Process, text: str) -> list[str]:
    """Read the lines of a running command up to the first with a text, such as an event type."""
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or text not in lines[-1]:
        lines.append((await process.stdout.readline()).decode())
        assert lines[-1], f"ended without {text}"
    return lines
