"""A pool of long-running worker processes.

    async with Workers(command, count=2) as workers:
        response = await workers.request(b"...")

A worker reads requests and writes responses, both bytes, with `worker_protocol.serve`. If a worker
is too slow, uses too much memory or dies, the request raises an error, and the next request gets a
new worker. A supervisor makes sure that each is cleaned up.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from typing import Self

from tidegate.errors import ProcessError, sanitize
from tidegate.external.process import (
    MIB,
    OUT_OF_MEMORY_MESSAGES,
    STDERR,
    Command,
    Limits,
    SupervisedProcess,
    describe_exit,
    encode_request,
)
from tidegate.external.worker_main import HEADER_SIZE, STDIN, frame
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.times import MINUTE, SECOND

START_LIMIT = MINUTE
STDERR_LIMIT = 16 * 1024

# How fatal errors of runtimes begin; in Go, a long stack trace follows.
_FATAL_ERROR = lazy_regex(
    rb"^(?:fatal error|panic|runtime|Fatal Python error|\w*Error): .+$", re.MULTILINE
)


class Workers:
    """Workers of one command, started on demand and killed at the end of the block."""

    def __init__(self, command: Command, *, count: int = 2, limits: Limits | None = None) -> None:
        self._command = command
        self._limits = limits or Limits()
        self._slots = asyncio.Semaphore(count)
        self._idle: list[_Worker] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._idle:
            await self._idle.pop().kill()

    async def request(self, payload: bytes) -> bytes:
        """Send a request and return the response.

        Any failure kills the worker and raises `ProcessError`.
        """
        async with self._slots:
            worker = await self._acquire()
            try:
                response = await worker.request(payload)
            except BaseException:
                await worker.kill()
                raise
            self._idle.append(worker)
            return response

    async def _acquire(self) -> _Worker:
        """Return an idle worker or a new one. The most recently used comes first: its caches are
        warm.
        """
        while self._idle:
            worker = self._idle.pop()
            if not worker.ended.is_set():
                return worker
            await worker.kill()
        worker = _Worker(self._command, self._limits)
        try:
            await worker.start_and_wait()
        except BaseException:
            await worker.kill()
            raise
        return worker


class _Worker(SupervisedProcess):
    """One worker process, with its output since the last response."""

    def __init__(self, command: Command, limits: Limits) -> None:
        super().__init__()
        self._command = command
        self._limits = limits
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._response_ready = asyncio.Event()

    async def start_and_wait(self) -> None:
        """Start the worker and wait until it is ready."""
        request = encode_request(self._command, self._limits)
        await self.start(stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            async with asyncio.timeout(START_LIMIT / SECOND):
                await self.send(request)
                await self._response_ready.wait()
        except TimeoutError:
            raise self._start_error(f"is not ready after {START_LIMIT // SECOND}s") from None
        if self._pop_response() is None:
            raise self._start_error(await self._describe_end())

    async def request(self, payload: bytes) -> bytes:
        """Send a request and wait for the response."""
        self._stderr.clear()
        if not self.ended.is_set():
            self._response_ready.clear()
        self._write_request(payload)
        try:
            async with asyncio.timeout(self._limits.time / SECOND):
                await self._response_ready.wait()
        except TimeoutError:
            raise timeout_error(self._limits) from None
        if self._response_size() > self._limits.output:
            raise output_error(self._limits)
        response = self._pop_response()
        if response is None:
            raise self._crash_error(await self._describe_end())
        return response

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == STDERR:
            self._stderr += data[: STDERR_LIMIT - len(self._stderr)]
            return
        self._stdout += data
        size = self._response_size()
        if size > self._limits.output or (size >= 0 and len(self._stdout) >= HEADER_SIZE + size):
            self._response_ready.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._response_ready.set()

    def _write_request(self, payload: bytes) -> None:
        pipe = self._transport.get_pipe_transport(STDIN) if self._transport else None
        if isinstance(pipe, asyncio.WriteTransport):
            pipe.write(frame(payload))

    def _response_size(self) -> int:
        """Return the length of the response; -1 while it is not known."""
        if len(self._stdout) < HEADER_SIZE:
            return -1
        return int.from_bytes(self._stdout[:HEADER_SIZE], "big")

    def _pop_response(self) -> bytes | None:
        size = self._response_size()
        if size < 0 or len(self._stdout) < HEADER_SIZE + size:
            return None
        response = bytes(self._stdout[HEADER_SIZE : HEADER_SIZE + size])
        self._stdout.clear()
        return response

    async def _describe_end(self) -> str:
        await self.ended.wait()
        message = self._last_error()
        return (
            f"{describe_exit(self.exit_status)}: {message}"
            if message
            else describe_exit(self.exit_status)
        )

    def _last_error(self) -> str:
        match = _FATAL_ERROR.search(self._stderr)
        lines = match[0].splitlines() if match else self._stderr.splitlines()
        return sanitize(lines[-1].decode(errors="replace")) if lines else ""

    def _crash_error(self, reason: str) -> ProcessError:
        problem = f"the worker {reason}"
        if any(phrase in self._stderr.lower() for phrase in OUT_OF_MEMORY_MESSAGES):
            hint = f"the memory limit is {self._limits.memory // MIB} MiB"
            return ProcessError("external.worker.memory", problem, hint=hint)
        return ProcessError("external.worker.crash", problem)

    def _start_error(self, reason: str) -> ProcessError:
        return ProcessError("external.worker.start", f"the worker {reason}")


def timeout_error(limits: Limits) -> ProcessError:
    """Return the error for a worker that was too slow."""
    problem = f"the worker timed out after {limits.time / SECOND:g}s"
    return ProcessError("external.worker.timeout", problem)


def output_error(limits: Limits) -> ProcessError:
    """Return the error for a response that was too large."""
    problem = f"the response of the worker is larger than {limits.output} bytes"
    return ProcessError("external.worker.output", problem)
