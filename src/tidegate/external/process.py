"""External programs: runs one within limits and returns its output.

A small `supervisor` process starts and kills each program (see there for the reasons). Output is
bytes; the caller interprets it.
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

from tidegate.errors import SANITIZED_LIMIT, ProcessError, sanitize
from tidegate.external.tools import find_program
from tidegate.model.times import MINUTE, SECOND, Ms

MIB = 1024 * 1024
STDERR_LIMIT = 64 * 1024
STDOUT, STDERR = 1, 2
SUPERVISOR = Path(__file__).with_name("supervisor.py")
INHERITED_VARIABLES = frozenset(
    {"PATH", "HOME", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    | {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
)
"""Environment variables that every program inherits, besides LC_*. Others are passed explicitly."""

# Messages of runtimes about a failed allocation: Go and the shell, C, Python, C++.
OUT_OF_MEMORY_MESSAGES = (b"out of memory", b"cannot allocate memory", b"memoryerror", b"bad_alloc")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Resource limits of a program."""

    time: Ms = MINUTE
    """Maximum duration."""
    memory: int = 2048 * MIB
    """Bytes that each process may write to (RLIMIT_DATA).

    Address space is not limited: Go, Java and Node reserve gigabytes that they never touch.
    """
    output: int = 64 * MIB
    """Maximum bytes of stdout. Of stderr, the end is kept."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A program to run."""

    argv: tuple[str, ...]
    """Program and arguments."""
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Variables added to the inherited ones."""
    cwd: Path | None = None
    """Working directory; None for the current one."""
    stdin: bytes = b""
    """Input of the program, unless it shares the terminal."""
    shares_terminal: bool = False
    """Whether it reads our stdin and writes to our stderr, so that it may prompt the user."""
    accepted_codes: frozenset[int] = frozenset({0})
    """Exit codes that are not an error."""

    def __repr__(self) -> str:
        return f"Command({self.argv})"

    @property
    def name(self) -> str:
        """The program, as it is given."""
        return self.argv[0]


class ProcessResult(msgspec.Struct, frozen=True):
    """Result of a program: exit code, complete stdout, and the end of stderr."""

    exit_code: int
    """Exit code."""
    stdout: bytes
    """Complete standard output."""
    stderr: bytes
    """The end of standard error."""

    def __repr__(self) -> str:
        return f"Ran({self.exit_code})"


async def run(command: Command, *, limits: Limits | None = None) -> ProcessResult:
    """Run a program to its end. Nothing of it is left when this returns or raises.

    Raises ProcessError if it fails, exceeds a limit, or cannot be started.
    """
    limits = limits or Limits()
    request = encode_request(command, limits)
    process = _CapturedProcess(limits.output)
    try:
        await _start_process(command, process)
        async with asyncio.timeout(limits.time / SECOND):
            await process.send(request)
            await process.ended.wait()
    except TimeoutError:
        problem = f"`{command.name}` timed out after {limits.time / SECOND:g}s"
        hint = "run it manually to see what it waits for"
        raise ProcessError("external.timeout", problem, hint=hint) from None
    finally:
        await process.kill()
    if process.overflowed:
        problem = f"`{command.name}` wrote more than {limits.output} bytes"
        raise ProcessError("external.output", problem)
    return _check_result(command, limits, process)


class SupervisedProcess(asyncio.SubprocessProtocol):
    """A program with its supervisor, which kills it when the lifeline is closed."""

    def __init__(self) -> None:
        self._lifeline, self._supervisor_end = socket.socketpair()
        self._lifeline.setblocking(False)
        self._transport: asyncio.SubprocessTransport | None = None
        self.exit_status = ""
        self.ended = asyncio.Event()

    async def start(
        self, *, stdin: int | IO[bytes] | None, stderr: int | None, new_session: bool = True
    ) -> None:
        """Start the supervisor. `new_session`: it does not share our terminal."""
        with self._supervisor_end as supervisor_end:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                *(sys.executable, "-I", "-S", str(SUPERVISOR), str(supervisor_end.fileno())),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                pass_fds=(supervisor_end.fileno(),),
                start_new_session=new_session,
            )

    async def send(self, request: bytes) -> None:
        """Send the supervisor what to run."""
        with suppress(ConnectionError):
            await asyncio.get_running_loop().sock_sendall(self._lifeline, request)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the supervisor."""
        if isinstance(transport, asyncio.SubprocessTransport):
            self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the supervisor. Its pipes are closed, so nothing of the program is
        left.
        """
        del exc
        if self._transport is not None:
            self._transport.close()
        with suppress(OSError):
            self.exit_status = self._lifeline.recv(64).decode()
        self.ended.set()

    def close_lifeline(self) -> None:
        """Close the lifeline: the supervisor kills the program, then sends its exit status."""
        with suppress(OSError):
            self._lifeline.shutdown(socket.SHUT_WR)

    async def kill(self) -> None:
        """Kill the program. Nothing of it is left when this returns."""
        self.close_lifeline()
        if self._transport is not None:
            await self.ended.wait()
        self._lifeline.close()
        self._supervisor_end.close()


class _CapturedProcess(SupervisedProcess):
    """A process whose output is collected, and which is killed if the output is too large."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.overflowed = False

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == STDERR:
            self.stderr += data
            del self.stderr[:-STDERR_LIMIT]
        elif len(self.stdout) + len(data) <= self._limit:
            self.stdout += data
        else:
            self.overflowed = True
            self.close_lifeline()


async def _start_process(command: Command, process: _CapturedProcess) -> None:
    if command.shares_terminal:
        await process.start(stdin=None, stderr=None, new_session=False)
        return
    with ExitStack() as stack:
        # Not a pipe: some programs open /dev/stdin, which works on a file everywhere.
        stdin = (
            stack.enter_context(open_temporary_file(command.stdin))
            if command.stdin
            else subprocess.DEVNULL
        )
        await process.start(stdin=stdin, stderr=subprocess.PIPE)


def encode_request(command: Command, limits: Limits) -> bytes:
    """Encode the request to the supervisor, in the order in which it reads."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED_VARIABLES or name.startswith("LC_")
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
        problem = f"`{command.name}` cannot be started: an argument or variable contains a NUL byte"
        raise ProcessError("external.start", problem)
    request = b"\0".join(os.fsencode(text) for text in texts)
    return len(request).to_bytes(8, "big") + request


def describe_exit(exit_status: str) -> str:
    """Describe how a program ended, from the exit status of its supervisor."""
    match exit_status.split():
        case ["exit", number]:
            return f"exited with code {number}"
        case ["signal", number]:
            return f"was terminated by {signal.Signals(int(number)).name}"
        case ["errno", number]:
            return f"cannot be started: {os.strerror(int(number))}"
        case _:
            return "was terminated"


def _check_result(command: Command, limits: Limits, process: _CapturedProcess) -> ProcessResult:
    exit_status = process.exit_status
    kind, _, number = exit_status.partition(" ")
    if kind == "exit" and int(number) in command.accepted_codes:
        return ProcessResult(int(number), bytes(process.stdout), bytes(process.stderr))
    problem = f"`{command.name}` {describe_exit(exit_status)}"
    if kind == "errno":
        hint = "check that it is built for this system and that its interpreter exists"
        raise ProcessError("external.start", problem, hint=hint)
    message = _last_lines(process.stderr)
    problem += f": {message}" if message else ""
    if any(phrase in process.stderr.lower() for phrase in OUT_OF_MEMORY_MESSAGES):
        hint = f"the memory limit is {limits.memory // MIB} MiB"
        raise ProcessError("external.memory", problem, hint=hint)
    raise ProcessError("external.failed", problem)


def _last_lines(stderr: bytearray) -> str:
    """Return the last lines that fit into a message, where programs print why they failed."""
    text = stderr.decode(errors="replace")
    message = ""
    for line in reversed(text.splitlines()):
        sanitized = sanitize(line)
        longer = f"{sanitized} {message}".strip()
        if message and len(longer) > SANITIZED_LIMIT:
            break
        message = longer
    return message


def open_temporary_file(content: bytes) -> IO[bytes]:
    """Return an open file with this content, at its start. It is deleted when it is closed."""
    file: IO[bytes]
    if sys.platform == "linux":
        file = os.fdopen(os.memfd_create("tidegate", os.MFD_CLOEXEC), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115  (the caller closes it)
    file.write(content)
    file.flush()
    file.seek(0)
    return file
