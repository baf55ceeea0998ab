"""Verbs from the shell's prompt to their end, on ten objects: in times of `tidegate --help`.

CPU time of the command and of all that it starts; of several runs the least. Bytecode is written
before, as an installation does. `libraries` is what no verb that reads files can be below: Python,
and the libraries that we do not write.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.cpu_time import spent_by_programs

ROUNDS = 5
FIRST = str(Path(__file__).parents[1] / "examples" / "first")
TIDEGATE = ("-m", "tidegate")
COMMANDS = {
    "--help": (*TIDEGATE, "--help"),
    "libraries": ("-c", "import asyncio, click, msgspec, yaml"),
    "render": (*TIDEGATE, "render", FIRST),
    "plan": (*TIDEGATE, "plan", FIRST),
    "lint": (*TIDEGATE, "lint", FIRST),
    "simulate": (*TIDEGATE, "simulate", FIRST),
}
LIMITS = {"plan": 3, "simulate": 5}
"""What is aimed at, in times of `--help`."""


def measure() -> dict[str, float]:
    least = dict.fromkeys(COMMANDS, float("inf"))
    for number in range(ROUNDS + 1):
        for name, arguments in COMMANDS.items():
            spent = _run(arguments)
            if number:  # the first round writes bytecode
                least[name] = min(least[name], spent)
    by_name = {f"{name}, ms": 1000 * seconds for name, seconds in least.items()}
    for name, seconds in least.items():
        if name != "--help":
            aim = f" (aim: {LIMITS[name]})" if name in LIMITS else ""
            by_name[f"{name} / --help{aim}"] = seconds / least["--help"]
    return by_name


def _run(arguments: tuple[str, ...]) -> float:
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = spent_by_programs()
    command = [sys.executable, *arguments]
    subprocess.run(command, check=False, capture_output=True, env=environ)  # noqa: S603
    return spent_by_programs() - before
