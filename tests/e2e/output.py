"""What tests read of the output of a command."""

from __future__ import annotations

import json
import re


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
