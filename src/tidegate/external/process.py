"""Run a program of somebody else's, within limits, and give back what it wrote.

Every program is started and ended by a `warden`, a small process of ours that stands between: see
there for why. What a program wrote is bytes; what it means is the caller's business.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

import msgspec

from tidegate.errors import FOREIGN_LIMIT, ProcessError, foreign
from tidegate.external.tools import find_program
from tidegate.model.moment import MINUTE, SECOND, Ms

MIB = 1024 * 1024
STDERR_KEPT = 64 * 1024
STDOUT, STDERR = 1, 2
WARDEN = Path(__file__).with_name("warden.py")

INHERITED = frozenset(
    {"PATH", "HOME", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    | {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
)
"""What every program gets of our environment, with LC_*. More than that is given by name."""

# How runtimes say that an allocation was refused: Go and the shell, C, Python, C++.
OUT_OF_MEMORY = (b"out of memory", b"cannot allocate memory", b"memoryerror", b"bad_alloc")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a program may use.

    `memory` bounds what each of its processes may write to (RLIMIT_DATA). Address space is not
    bounded: Go, Java and Node reserve gigabytes of it that they never touch. `output` bounds
    stdout; of stderr the end is kept.
    """

    time: Ms = MINUTE
    memory: int = 2048 * MIB
    output: int = 64 * MIB


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. `env` comes on top of the few variables that every program gets.

    With `shares_terminal` it reads our stdin, writes to our stderr, and may ask questions there.
    Otherwise it reads `stdin` and then the end.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    cwd: Path | None = None
    stdin: bytes = b""
    shares_terminal: bool = False
    accepts: frozenset[int] = frozenset({0})

    def __repr__(self) -> str:
        return f"Command({self.argv})"

    @property
    def name(self) -> str:
        return self.argv[0]


class Ran(msgspec.Struct, frozen=True):
    """How a program ended: its exit code, all of its stdout, the end of its stderr."""

    code: int
    stdout: bytes
    stderr: bytes

    def __repr__(self) -> str:
        return f"Ran({self.code})"


async def run(command: Command, *, limits: Limits | None = None) -> Ran:
    """Run it to its end. Once this returns or raises, nothing of the program is left."""
    limits = limits or Limits()
    request = request_of(command, limits)
    watch = _Watch(limits.output)
    try:
        await _start(command, watch)
        async with asyncio.timeout(limits.time / SECOND):
            await watch.send(request)
            await watch.ended.wait()
    except TimeoutError:
        problem = f"`{command.name}` did not end within {limits.time / SECOND:g} s"
        hint = "run it by hand to see what it waits for"
        raise ProcessError("external.timeout", problem, hint=hint) from None
    finally:
        await watch.end()
    if watch.overflowed:
        problem = f"`{command.name}` wrote more than {limits.output} bytes"
        raise ProcessError("external.output", problem)
    return _judge(command, limits, watch)


class Ward(asyncio.SubprocessProtocol):
    """A program behind its warden, which kills it when the lifeline between us is cut."""

    def __init__(self) -> None:
        self._lifeline, self._theirs = socket.socketpair()
        self._lifeline.setblocking(False)
        self._transport: asyncio.SubprocessTransport | None = None
        self.verdict = ""
        self.ended = asyncio.Event()

    async def start(
        self, *, stdin: int | IO[bytes] | None, stderr: int | None, alone: bool = True
    ) -> None:
        """Start the warden, `alone` where it shares no terminal with us."""
        with self._theirs as theirs:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                *(sys.executable, "-I", "-S", str(WARDEN), str(theirs.fileno())),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                pass_fds=(theirs.fileno(),),
                start_new_session=alone,
            )

    async def send(self, request: bytes) -> None:
        """Tell the warden what to run."""
        with suppress(ConnectionError):
            await asyncio.get_running_loop().sock_sendall(self._lifeline, request)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.SubprocessTransport):
            self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """The warden has ended and nobody holds its pipes: of the program nothing is left."""
        del exc
        if self._transport is not None:
            self._transport.close()
        with suppress(OSError):
            self.verdict = self._lifeline.recv(64).decode()
        self.ended.set()

    def cut(self) -> None:
        """Cut the lifeline: the warden kills what there is. It can still send its verdict."""
        with suppress(OSError):
            self._lifeline.shutdown(socket.SHUT_WR)

    async def end(self) -> None:
        """Kill it. Once this returns nothing of it is left."""
        self.cut()
        if self._transport is not None:
            await self.ended.wait()
        self._lifeline.close()
        self._theirs.close()


class _Watch(Ward):
    """Collects what comes out of the warden, and ends it when it is too much."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._room = limit
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.overflowed = False

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == STDERR:
            self.stderr += data
            del self.stderr[:-STDERR_KEPT]
        elif len(self.stdout) + len(data) <= self._room:
            self.stdout += data
        else:
            self.overflowed = True
            self.cut()


async def _start(command: Command, watch: _Watch) -> None:
    if command.shares_terminal:
        await watch.start(stdin=None, stderr=None, alone=False)
        return
    with ExitStack() as stack:
        # Not a pipe: some programs open /dev/stdin, which works on a file everywhere.
        given = stack.enter_context(hold(command.stdin)) if command.stdin else subprocess.DEVNULL
        await watch.start(stdin=given, stderr=subprocess.PIPE)


def request_of(command: Command, limits: Limits) -> bytes:
    """What the warden is told, in the order in which it reads."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED or name.startswith("LC_")
    }
    environment.update(command.env)
    cwd = command.cwd or Path.cwd()
    program = find_program(command.name, path=environment.get("PATH", os.defpath), cwd=cwd)
    terminal = "1" if command.shares_terminal else "0"
    texts = [str(limits.memory), terminal, str(cwd), str(program), str(len(command.argv))]
    texts += command.argv
    for name, value in environment.items():
        texts += (name, value)
    if any("\0" in text for text in texts):
        problem = f"`{command.name}` cannot be started: an argument or variable holds a NUL byte"
        raise ProcessError("external.start", problem)
    request = b"\0".join(os.fsencode(text) for text in texts)
    return len(request).to_bytes(8, "big") + request


def end_of(verdict: str) -> str:
    """How a program ended, in words, by the verdict of its warden."""
    match verdict.split():
        case ["exit", number]:
            return f"ended with exit code {number}"
        case ["signal", number]:
            return f"was ended by {signal.Signals(int(number)).name}"
        case ["errno", number]:
            return f"cannot be started: {os.strerror(int(number))}"
        case _:
            return "was ended from outside"


def _judge(command: Command, limits: Limits, watch: _Watch) -> Ran:
    verdict = watch.verdict
    how, _, number = verdict.partition(" ")
    if how == "exit" and int(number) in command.accepts:
        return Ran(int(number), bytes(watch.stdout), bytes(watch.stderr))
    problem = f"`{command.name}` {end_of(verdict)}"
    if how == "errno":
        hint = "check that it is made for this system, and that the interpreter it names is there"
        raise ProcessError("external.start", problem, hint=hint)
    words = _last_words(watch.stderr)
    problem += f": {words}" if words else ""
    if any(phrase in watch.stderr.lower() for phrase in OUT_OF_MEMORY):
        hint = f"it may use {limits.memory // MIB} MiB of memory"
        raise ProcessError("external.memory", problem, hint=hint)
    raise ProcessError("external.failed", problem)


def _last_words(stderr: bytearray) -> str:
    """The last lines that fit into a message; that is where programs say why they gave up."""
    text = stderr.decode(errors="replace")
    words = ""
    for line in reversed(text.splitlines()):
        clean = foreign(line)
        longer = f"{clean} {words}".strip()
        if words and len(longer) > FOREIGN_LIMIT:
            break
        words = longer
    return words


def hold(content: bytes) -> IO[bytes]:
    """An open file with this content, at its beginning. Closing it is the end of it."""
    file: IO[bytes]
    if sys.platform == "linux":
        file = os.fdopen(os.memfd_create("tidegate", os.MFD_CLOEXEC), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115  (the caller closes it)
    file.write(content)
    file.flush()
    file.seek(0)
    return file
