"""Supervisor: starts one program and makes sure that nothing of it is left.

Run as a script by `process`, never imported:

    tidegate ── lifeline (a socket) ── supervisor ── the program ── its children

The lifeline carries one request to the supervisor and one exit status back. It ends when Tidegate
closes it, and also when Tidegate is killed: then the supervisor kills the program and all its
descendants. It does the same after the program has exited, so that no child is left.

Why a separate process: the work between `fork` and `exec` is not safe in a program with threads; a
parent that is killed cannot clean up; and the kernel's remedy, a signal on the death of the parent,
does not reach grandchildren. It costs about 12 ms, and so it imports little.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import sys

TYPE_CHECKING = False  # `typing` itself takes as long to import as all the others together
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # the same without enums, which take as long as all of the rest

HEADER_SIZE = 8
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
DISCONNECTED = b"cut"
CHILDREN_FILE = f"/proc/self/task/{os.getpid()}/children"

# A terminal sends these to all foreground processes; the supervisor obeys only its lifeline.
IGNORED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)
RESET_SIGNALS = (*IGNORED_SIGNALS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ)


class suppress:  # noqa: N801 - as `contextlib` has it, which takes longer to import
    """Like `contextlib.suppress`."""

    def __init__(self, *errors: type[OSError]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self._errors)


class StartRequest:
    """What to start. On the lifeline, NUL separates the fields; no field can contain it."""

    def __init__(self, text: bytes) -> None:
        memory, terminal, self.cwd, self.program, count, *values = text.split(b"\0")
        self.memory = int(memory)
        self.shares_terminal = terminal == b"1"
        self.argv, pairs = values[: int(count)], values[int(count) :]
        self.environment = dict(zip(pairs[::2], pairs[1::2], strict=True))


def main(lifeline: int) -> None:
    """Run one program and clean up after it."""
    os.set_inheritable(lifeline, False)
    for signal_number in IGNORED_SIGNALS:
        signal.signal(signal_number, signal.SIG_IGN)
    request = read_request(lifeline)
    if request is None:
        return
    if os.access(CHILDREN_FILE, os.R_OK):
        set_process_option(ADOPT_ORPHANS, 1)
    wakeup_reader = open_wakeup_pipe()
    error_reader, error_writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        exec_program(request, error_writer)
    os.close(error_writer)
    detach_streams()
    exit_status = wait_for_exit(pid, lifeline, wakeup_reader)
    kill_descendants(pid, has_own_group=not request.shares_terminal)
    errno = os.read(error_reader, HEADER_SIZE)
    with suppress(OSError):
        os.write(lifeline, b"errno " + errno if errno else exit_status)


def read_request(lifeline: int) -> StartRequest | None:
    """Read the request. Returns None if Tidegate is already gone."""
    size = int.from_bytes(read_exactly(lifeline, HEADER_SIZE), "big")
    text = read_exactly(lifeline, size)
    return StartRequest(text) if text else None


def read_exactly(source: int, size: int) -> bytes:
    """Read `size` bytes. Returns nothing if there are fewer."""
    data = b""
    while len(data) < size:
        chunk = os.read(source, size - len(data))
        if not chunk:
            return b""
        data += chunk
    return data


def set_process_option(option: int, value: int) -> None:
    """Call `prctl`, on Linux only. Elsewhere, descendants are found by the process group alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def open_wakeup_pipe() -> int:
    """Return a pipe that becomes readable when a child has exited."""
    wakeup_reader, wakeup_writer = os.pipe()
    os.set_blocking(wakeup_writer, False)
    signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return wakeup_reader


def exec_program(request: StartRequest, error_writer: int) -> NoReturn:
    """Become the program. An error is reported as its errno."""
    try:
        signal.set_wakeup_fd(-1)
        for signal_number in RESET_SIGNALS:
            signal.signal(signal_number, signal.SIG_DFL)
        if not request.shares_terminal:
            os.setsid()
        set_process_option(DIE_WITH_PARENT, signal.SIGKILL)
        set_limit(resource.RLIMIT_CORE, 0)
        set_limit(resource.RLIMIT_DATA, request.memory)
        os.chdir(request.cwd)
        os.execve(request.program, request.argv, request.environment)  # noqa: S606
    except OSError as error:
        os.write(error_writer, str(error.errno).encode())
    finally:
        os._exit(127)


def set_limit(limit_type: int, size: int) -> None:
    """Set a resource limit of this process."""
    _, hard = resource.getrlimit(limit_type)
    size = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(limit_type, (size, size))


def detach_streams() -> None:
    """Detach from the standard streams, so that readers of the output do not wait for the
    supervisor.
    """
    null_device = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null_device, stream)


def wait_for_exit(pid: int, lifeline: int, wakeup_reader: int) -> bytes:
    """Wait until the program exits or the lifeline is closed. Return the exit status to report."""
    while True:
        ready, _, _ = select.select([lifeline, wakeup_reader], [], [])
        if lifeline in ready:
            return DISCONNECTED
        os.read(wakeup_reader, select.PIPE_BUF)
        # The program stays a zombie for now, so that no other process gets its group ID.
        status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if status is not None:
            kind = b"exit" if status.si_code == os.CLD_EXITED else b"signal"
            return b"%s %d" % (kind, status.si_status)


def kill_descendants(pid: int, *, has_own_group: bool) -> None:
    """Kill and reap the program and all its descendants.

    Orphans become children of the supervisor, so each round finds those whose parents died in the
    round before.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
        if has_own_group:
            os.killpg(pid, signal.SIGKILL)
    with suppress(ChildProcessError, PermissionError):
        while True:
            for child in list_children():
                os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)


def list_children() -> list[int]:
    """Return the process ids of all children."""
    if not os.access(CHILDREN_FILE, os.R_OK):
        return []
    with open(CHILDREN_FILE, "rb") as file:  # noqa: PTH123  (pathlib is slow to import)
        return [int(child) for child in file.read().split()]


if __name__ == "__main__":
    main(int(sys.argv[1]))
