"""A long-running worker process for code without an event loop.

    worker = BlockingWorker(command, limits)
    response = worker.request(b"...")
    worker.kill()

The worker starts with the first request. If it is too slow or dies, the request raises an error,
and the next request starts a new worker. A supervisor makes sure that it is cleaned up. Its stderr
is dropped, since it may contain data of the request.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import ExitStack

from tidegate.errors import ProcessError
from tidegate.external.process import SUPERVISOR, Command, Limits, encode_request
from tidegate.external.worker import START_LIMIT, output_error, timeout_error
from tidegate.external.worker_main import HEADER_SIZE, frame
from tidegate.model.times import SECOND


class BlockingWorker:
    """A worker that processes requests one by one, each within the limits or with a
    `ProcessError`.
    """

    def __init__(self, command: Command, limits: Limits) -> None:
        self._command = command
        self._limits = limits
        self._resources = ExitStack()
        self._channel: socket.socket | None = None

    def request(self, payload: bytes) -> bytes:
        """Send a request and return the response. Any failure kills the worker."""
        answered = False
        try:
            channel = self._channel or self._start()
            channel.settimeout(self._limits.time / SECOND)
            channel.sendall(frame(payload))
            response = self._receive(channel)
            answered = True
        except TimeoutError:
            raise timeout_error(self._limits) from None
        except OSError:
            raise ProcessError("external.worker.crash", "the worker ended") from None
        finally:
            if not answered:
                self.kill()
        return response

    def kill(self) -> None:
        """Kill the worker, if there is one. Nothing of it is left when this returns."""
        self._channel = None
        self._resources.close()

    def _start(self) -> socket.socket:
        """Start the worker and wait until it is ready."""
        request = encode_request(self._command, self._limits)
        channel, worker_end = socket.socketpair()
        lifeline, supervisor_end = socket.socketpair()
        with worker_end, supervisor_end:
            descriptor = supervisor_end.fileno()
            supervisor = subprocess.Popen(  # noqa: S603 - our own program
                (sys.executable, "-I", "-S", str(SUPERVISOR), str(descriptor)),
                stdin=worker_end.fileno(),
                stdout=worker_end.fileno(),
                stderr=subprocess.DEVNULL,
                pass_fds=(descriptor,),
                start_new_session=True,
            )
        self._resources.enter_context(supervisor)  # waited for after its lifeline is closed
        self._resources.enter_context(lifeline)
        self._resources.enter_context(channel)
        channel.settimeout(START_LIMIT / SECOND)
        try:
            lifeline.sendall(request)
            self._receive(channel)
        except OSError:
            raise ProcessError("external.worker.start", "cannot start the worker") from None
        self._channel = channel
        return channel

    def _receive(self, channel: socket.socket) -> bytes:
        size = int.from_bytes(_read_exactly(channel, HEADER_SIZE), "big")
        if size > self._limits.output:
            raise output_error(self._limits)
        return _read_exactly(channel, size)


def _read_exactly(channel: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = channel.recv(size - len(data))
        if not chunk:
            raise ConnectionResetError
        data += chunk
    return bytes(data)
