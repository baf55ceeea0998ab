"""Starts one program, and sees to it that nothing of it is left.

Run as a script by `process`, never imported:

    tidegate ── lifeline (a socket) ── warden ── the program ── its children

The lifeline carries one request to the warden and one verdict back. It ends when tidegate closes
it, and also when tidegate is killed: then the warden kills the program and all that came from it.
It does the same after the program has ended, so that no child of it stays behind.

Why a process of its own: what must be done between `fork` and `exec` is not safe in a program that
has threads; a parent that is killed can clean up nothing; and the kernel's own remedy, a signal on
the parent's death, does not reach grandchildren. It costs about 12 ms, and so imports little.
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

HEADER = 8
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
CUT = b"cut"
LIST_OF_CHILDREN = f"/proc/self/task/{os.getpid()}/children"

# A terminal sends these to everyone in the foreground; the warden listens to its lifeline alone.
UNHEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)
CHANGED = (*UNHEARD, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ)


class suppress:  # noqa: N801 - as `contextlib` has it, which takes longer to import
    """Goes on where one of these errors comes."""

    def __init__(self, *errors: type[OSError]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self._errors)


class Request:
    """What to start. On the line its fields are parted by NUL, which none of them can hold."""

    def __init__(self, text: bytes) -> None:
        memory, terminal, self.cwd, self.program, count, *rest = text.split(b"\0")
        self.memory = int(memory)
        self.shares_terminal = terminal == b"1"
        self.argv, pairs = rest[: int(count)], rest[int(count) :]
        self.environment = dict(zip(pairs[::2], pairs[1::2], strict=True))


def main(lifeline: int) -> None:
    os.set_inheritable(lifeline, False)
    for number in UNHEARD:
        signal.signal(number, signal.SIG_IGN)
    request = read_request(lifeline)
    if request is None:
        return
    if os.access(LIST_OF_CHILDREN, os.R_OK):
        ask_kernel(ADOPT_ORPHANS, 1)
    bell = hear_children()
    refusal, report = os.pipe()
    program = os.fork()
    if program == 0:
        start(request, report)
    os.close(report)
    let_go_of_streams()
    verdict = wait(program, lifeline, bell)
    sweep(program, has_own_group=not request.shares_terminal)
    errno = os.read(refusal, HEADER)
    with suppress(OSError):
        os.write(lifeline, b"errno " + errno if errno else verdict)


def read_request(lifeline: int) -> Request | None:
    """Read the one request; nothing when tidegate is gone already."""
    size = int.from_bytes(read_exactly(lifeline, HEADER), "big")
    text = read_exactly(lifeline, size)
    return Request(text) if text else None


def read_exactly(source: int, size: int) -> bytes:
    """All of it, or nothing."""
    text = b""
    while len(text) < size:
        piece = os.read(source, size - len(text))
        if not piece:
            return b""
        text += piece
    return text


def ask_kernel(option: int, value: int) -> None:
    """Linux only. Elsewhere what a program leaves is found by its process group alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def hear_children() -> int:
    """A pipe that can be read whenever a child has ended."""
    bell, hammer = os.pipe()
    os.set_blocking(hammer, False)
    signal.set_wakeup_fd(hammer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return bell


def start(request: Request, report: int) -> NoReturn:
    """Become the program. Whatever stands in the way is told as a number."""
    try:
        signal.set_wakeup_fd(-1)
        for number in CHANGED:
            signal.signal(number, signal.SIG_DFL)
        if not request.shares_terminal:
            os.setsid()
        ask_kernel(DIE_WITH_PARENT, signal.SIGKILL)
        limit(resource.RLIMIT_CORE, 0)
        limit(resource.RLIMIT_DATA, request.memory)
        os.chdir(request.cwd)
        os.execve(request.program, request.argv, request.environment)  # noqa: S606
    except OSError as error:
        os.write(report, str(error.errno).encode())
    finally:
        os._exit(127)


def limit(what: int, size: int) -> None:
    _, hard = resource.getrlimit(what)
    size = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(what, (size, size))


def let_go_of_streams() -> None:
    """Who reads the program's output must not wait for the warden, too."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)


def wait(program: int, lifeline: int, bell: int) -> bytes:
    """Until the program ends, which is told, or the lifeline is cut."""
    while True:
        ready, _, _ = select.select([lifeline, bell], [], [])
        if lifeline in ready:
            return CUT
        os.read(bell, select.PIPE_BUF)
        # It stays a zombie for now: as long as it does, nobody else gets the number of its group.
        ended = os.waitid(os.P_PID, program, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None:
            how = b"exit" if ended.si_code == os.CLD_EXITED else b"signal"
            return b"%s %d" % (how, ended.si_status)


def sweep(program: int, *, has_own_group: bool) -> None:
    """Kill and bury everything that came from the program, and the program.

    Orphans become the warden's children, so each round meets those whose parents died in the last.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.kill(program, signal.SIGKILL)
        if has_own_group:
            os.killpg(program, signal.SIGKILL)
    with suppress(ChildProcessError, PermissionError):
        while True:
            for child in children():
                os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)


def children() -> list[int]:
    if not os.access(LIST_OF_CHILDREN, os.R_OK):
        return []
    with open(LIST_OF_CHILDREN, "rb") as listed:  # noqa: PTH123  (pathlib is slow to import)
        return [int(child) for child in listed.read().split()]


if __name__ == "__main__":
    main(int(sys.argv[1]))
