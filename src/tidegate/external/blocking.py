"""One worker that stays warm, for code that has no loop to wait on.

    worker = BlockingWorker(command, limits)
    answer = worker.ask(b"...")
    worker.end()

It starts with the first request. One that is too slow or dies is one error for the one who asked;
the next to ask gets a new one. It stands behind a warden, so it is not left behind. What it writes
to stderr is nobody's business: it may hold what it was asked about.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import ExitStack

from tidegate.errors import ProcessError
from tidegate.external.process import WARDEN, Command, Limits, request_of
from tidegate.external.serving import HEADER, framed
from tidegate.external.worker import START_LIMIT, too_much, too_slow
from tidegate.model.moment import SECOND


class BlockingWorker:
    """Answers one request after another, each within the limits or with a `ProcessError`."""

    def __init__(self, command: Command, limits: Limits) -> None:
        self._command = command
        self._limits = limits
        self._life = ExitStack()
        self._line: socket.socket | None = None

    def ask(self, request: bytes) -> bytes:
        """One answer. Whatever goes wrong with the worker ends it."""
        answered = False
        try:
            line = self._line or self._start()
            line.settimeout(self._limits.time / SECOND)
            line.sendall(framed(request))
            answer = self._receive(line)
            answered = True
        except TimeoutError:
            raise too_slow(self._limits) from None
        except OSError:
            raise ProcessError("external.worker.crash", "the worker ended") from None
        finally:
            if not answered:
                self.end()
        return answer

    def end(self) -> None:
        """Kill it, if there is one. Once this returns nothing of it is left."""
        self._line = None
        self._life.close()

    def _start(self) -> socket.socket:
        """Start it, and wait until it says that it is ready."""
        request = request_of(self._command, self._limits)
        ours, theirs = socket.socketpair()
        lifeline, their_end = socket.socketpair()
        with theirs, their_end:
            number = their_end.fileno()
            warden = subprocess.Popen(  # noqa: S603 - our own program
                (sys.executable, "-I", "-S", str(WARDEN), str(number)),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                pass_fds=(number,),
                start_new_session=True,
            )
        self._life.enter_context(warden)  # it is waited for once its lifeline is cut
        self._life.enter_context(lifeline)
        self._life.enter_context(ours)
        ours.settimeout(START_LIMIT / SECOND)
        try:
            lifeline.sendall(request)
            self._receive(ours)
        except OSError:
            raise ProcessError("external.worker.start", "the worker cannot be started") from None
        self._line = ours
        return ours

    def _receive(self, line: socket.socket) -> bytes:
        size = int.from_bytes(_exactly(line, HEADER), "big")
        if size > self._limits.output:
            raise too_much(self._limits)
        return _exactly(line, size)


def _exactly(line: socket.socket, size: int) -> bytes:
    text = bytearray()
    while len(text) < size:
        piece = line.recv(size - len(text))
        if not piece:
            raise ConnectionResetError
        text += piece
    return bytes(text)
