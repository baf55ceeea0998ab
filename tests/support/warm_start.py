"""Verbs in processes of their own that find everything imported: to start costs more than most do.

A server imports all of Tidegate, and forks for each command. The command has the directory, the
environment and the streams that it is given, and ends as any process does. What a process is only
from its very first moment on (locale, time zone, options of Python) needs a real start.

    caller          server               keeper             command
      │  streams      │
      ├──────────────>│  forks             │
      │  words, directory, environment     │
      ├───────────────────────────────────>│  forks            │
      │                                    ├──────────────────>│  main()
      │  exit code                         │<──────────────────┤
      │<───────────────────────────────────┤
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

FROM_THE_START = ("PYTHON", "LC_", "LANG", "TZ")
"""How variables begin that a process must know when it starts."""
NOT_BEFORE = ("tidegate.__main__", "tidegate.render.helm.")
"""What is not imported before: the Helm SDK has threads, and no fork keeps them."""
ROOT = Path(__file__).parents[2]
LONGEST = 1 << 20


def may_be_warm(environment: Mapping[str, str]) -> bool:
    """Whether nothing of it must be known from the start."""
    return not any(name.startswith(FROM_THE_START) for name in environment)


class WarmRun(NamedTuple):
    """How a command is run. `given`: its standard input. `first`: Python that it runs before."""

    words: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    given: str = ""
    first: str = ""
    is_merged: bool = False
    """Lines of standard error appear between those of standard output."""

    def to_its_end(self) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` would, with what it writes."""
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        line, line_end = socket.socketpair()
        with line, _holding(self.given) as read_end:
            with line_end:
                streams = [read_end, out_end, out_end if self.is_merged else err_end]
                socket.send_fds(_server(), [b"."], [line_end.fileno(), *streams])
            os.close(out_end)
            os.close(err_end)
            line.sendall(f"{self._request()}\n".encode())
            written = _read_both(out, err)
            code = int(line.makefile().readline())
        command = [sys.executable, "-m", "tidegate", *self.words]
        return subprocess.CompletedProcess(command, code, *written)

    def _request(self) -> str:
        environment = dict(self.environment)
        return json.dumps([[*self.words], str(self.folder), environment, self.first])


@contextmanager
def _holding(text: str) -> Iterator[int]:
    """Where a text can be read from its beginning."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        yield file.fileno()


def _read_both(*ends: int) -> list[str]:
    """Read until all writers have closed the pipe."""
    by_name: dict[int, list[bytes]] = {end: [] for end in ends}
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                if part := os.read(key.fd, LONGEST):
                    by_name[key.fd].append(part)
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return [b"".join(parts).decode().replace("\r\n", "\n") for parts in by_name.values()]


@cache
def _server() -> socket.socket:
    """Where this process's own server hears; it ends with this process."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONPATH": paths},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    atexit.register(server.communicate)
    atexit.register(mine.close)
    return mine


def _serve(listener: socket.socket) -> None:
    """Fork for each caller, until the parent process has ended."""
    _import_all()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no code reads how keepers end
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(0, selectors.EVENT_READ)
        while all(key.fileobj is listener for key, _ in selector.select()):
            _, given, _, _ = socket.recv_fds(listener, 1, 4)
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _keep(socket.socket(fileno=given[0]), given[1:])
            for item in given:
                os.close(item)


def _import_all() -> None:
    import tidegate  # noqa: PLC0415 - by the server alone

    for module in pkgutil.walk_packages(tidegate.__path__, "tidegate."):
        if not module.name.startswith(NOT_BEFORE):
            importlib.import_module(module.name)


def _keep(line: socket.socket, streams: list[int]) -> None:
    """Start what is asked for, and say how it ended."""
    document = json.loads(line.makefile().readline())
    command = os.fork()
    if command == 0:
        line.close()
        _become(document, streams)
    for stream in streams:
        os.close(stream)
    _, status = os.waitpid(command, 0)
    line.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(request: tuple[list[str], str, dict[str, str], str], streams: list[int]) -> None:
    """This process is the command from here on."""
    from tidegate.cli.main import main  # noqa: PLC0415 - by the server alone

    words, folder, environment, first = request
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["tidegate", *words]
    exec(first, {})  # noqa: S102 - a test's own
    main()


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
