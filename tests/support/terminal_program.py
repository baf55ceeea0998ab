"""A program on a terminal of its own: what its user sees, types, and makes of the window."""

from __future__ import annotations

import codecs
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.support.virtual_terminal import VirtualTerminal

ROOT = Path(__file__).parents[2]
TAKE_TERMINAL = """
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
PATIENCE = 20.0


class TerminalProgram:
    """A program that runs, and the screen in front of it."""

    def __init__(self, program: subprocess.Popen[bytes], master: int, vt: VirtualTerminal) -> None:
        self.vt = vt
        self.written = ""
        """All that came, seen for however short a time."""
        self._program = program
        self._master = master
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read_until(self, seen: Callable[[VirtualTerminal], bool]) -> None:
        """Look on until the screen shows it."""
        while not seen(self.vt):
            if not self._read():
                raise AssertionError(f"it ended before:\n{self.vt.text}")

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        self.vt.resize(columns, lines)
        _set_size(self._master, columns, lines)

    def finish(self) -> int:
        """Look on to the end; the exit code."""
        while self._read():
            pass
        return self._program.wait(PATIENCE)

    def is_stopped(self) -> bool:
        """Wait until the condition holds; fail if the program ends before."""
        _, status = os.waitpid(self._program.pid, os.WUNTRACED)
        return os.WIFSTOPPED(status)

    def send_continue(self) -> None:
        self._program.send_signal(signal.SIGCONT)

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], PATIENCE)
        if not ready:
            raise AssertionError(f"nothing more is shown:\n{self.vt.text}")
        try:
            result = os.read(self._master, 65_536)
        except OSError:  # Linux says so when the last one has closed the other end
            return False
        text = self._decoder.decode(result)
        self.written += text
        self.vt.feed(text)
        return bool(result)


@contextmanager
def on_terminal(
    module: str,
    *arguments: str,
    columns: int = 80,
    lines: int = 24,
    kept: IO[bytes] | None = None,
    **environ: str,
) -> Iterator[TerminalProgram]:
    """Run a module of Python on a new terminal; with `kept`, its output goes there instead."""
    master, slave = os.openpty()
    _set_size(master, columns, lines)
    known = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    path = os.pathsep.join([str(ROOT), *(item for item in sys.path if item)])
    usual = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONPATH": path}
    program = subprocess.Popen(
        [sys.executable, "-c", TAKE_TERMINAL, module, *arguments],
        cwd=ROOT,
        env=known | usual | environ,
        stdin=slave,
        stdout=kept or slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield TerminalProgram(program, master, VirtualTerminal(columns, lines))
    finally:
        program.kill()
        program.wait(PATIENCE)
        os.close(master)


def _set_size(terminal: int, columns: int, lines: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
