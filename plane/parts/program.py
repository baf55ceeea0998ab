"""One running program: started in a session of its own, ended by force, whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from plane.parts import tied

_TIED = str(Path(tied.__file__))


class Program:
    """A child process with a log. If tied, it ends with this process; otherwise it continues."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self.pid = child.pid

    @classmethod
    def start(cls, command: list[str], *, log: Path, directory: Path, is_tied: bool) -> Program:
        """Start it. Its environment is nearly empty: etcd and kwok take settings from there."""
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_tied:
            # Isolated and without `site`, a Python that only becomes something else is quick.
            command = [sys.executable, "-I", "-S", _TIED, str(os.getpid()), *command]
        with log.open("ab") as output:
            child = subprocess.Popen(
                command,
                cwd=directory,
                env={"HOME": str(directory), "PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                stdout=output,
            )
        return cls(child)

    @property
    def ended_with(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._child.poll()

    def kill(self) -> None:
        """End it now, also when it is paused. A plane's parts take seconds to end politely."""
        self._child.kill()
        self._child.wait()

    def pause(self) -> None:
        self._child.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._child.send_signal(signal.SIGCONT)
