"""The command as a user runs it, in a process of its own, with a log of the programs it starts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.warm_start import WarmRun, may_be_warm

# Python loads this by its name before anything else, and calls it for each program.
SPY = """
import sys
def hear(event, arguments):
    if event == "subprocess.Popen":
        with open({log!r}, "a") as log:
            print(arguments[1][0], file=log)
sys.addaudithook(hear)
"""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How it ended, what it wrote, and how many programs it started."""

    code: int
    stdout: str
    stderr: str
    started: int

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


@dataclass(frozen=True, slots=True)
class Tidegate:
    """One user with a home, and so with a cache, of their own."""

    user_home: Path

    @property
    def cache(self) -> Path:
        return self.user_home / ".cache" / "tidegate"

    async def run(
        self, *arguments: str | Path, cwd: Path | None = None, **more: str
    ) -> CommandResult:
        log = self._place_spy()
        result, folder, known = (
            [*map(str, arguments)],
            cwd or self.user_home,
            self._environment() | more,
        )
        if may_be_warm(more):
            warm = WarmRun(result, folder, known, first=SPY.format(log=str(log)))
            ended = await asyncio.to_thread(warm.to_its_end)
        else:
            command = [sys.executable, "-m", "tidegate", *result]
            ended = await asyncio.to_thread(
                subprocess.run, command, cwd=folder, env=known, capture_output=True, text=True
            )
        return CommandResult(ended.returncode, ended.stdout, ended.stderr, _lines(log))

    def _environment(self) -> dict[str, str]:
        passed = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        paths = (str(self.user_home / "spy"), *(path for path in sys.path if path))
        return passed | {"HOME": str(self.user_home), "PYTHONPATH": os.pathsep.join(paths)}

    def _place_spy(self) -> Path:
        folder, log = self.user_home / "spy", self.user_home / "started"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "sitecustomize.py").write_text(SPY.format(log=str(log)))
        log.write_text("")
        return log


def _lines(log: Path) -> int:
    return len(log.read_text().splitlines())
