"""Workers that stay warm: processes that answer one request after another, and can be killed.

    async with Workers(command, count=2) as workers:
        answer = await workers.ask(b"...")

What a worker does is its own business: it reads requests and writes answers, both bytes, and calls
`serving.serve` to do so. A worker that is too slow, takes too much memory or dies is one error for
the one who asked; the next to ask gets a new worker. Each stands behind a warden, so none is left
behind.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from typing import Self

from tidegate.errors import ProcessError, foreign
from tidegate.external.process import (
    MIB,
    OUT_OF_MEMORY,
    STDERR,
    Command,
    Limits,
    Ward,
    end_of,
    request_of,
)
from tidegate.external.serving import HEADER, STDIN, framed
from tidegate.model.moment import MINUTE, SECOND
from tidegate.model.patterns import late

START_LIMIT = MINUTE
STDERR_KEPT = 16 * 1024

# How runtimes begin their last words; what follows in Go is pages of stack.
_LAST_WORDS = late(
    rb"^(?:fatal error|panic|runtime|Fatal Python error|\w*Error): .+$", re.MULTILINE
)


class Workers:
    """Some workers of one kind, started when they are first needed and ended with the block."""

    def __init__(self, command: Command, *, count: int = 2, limits: Limits | None = None) -> None:
        self._command = command
        self._limits = limits or Limits()
        self._turns = asyncio.Semaphore(count)
        self._idle: list[_Worker] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._idle:
            await self._idle.pop().end()

    async def ask(self, request: bytes) -> bytes:
        """One answer. Whatever goes wrong with a worker ends it, and is a `ProcessError`."""
        async with self._turns:
            worker = await self._find()
            try:
                answer = await worker.ask(request)
            except BaseException:
                await worker.end()
                raise
            self._idle.append(worker)
            return answer

    async def _find(self) -> _Worker:
        """A worker that waits, or a new one. The last to answer comes first: it is the warmest."""
        while self._idle:
            worker = self._idle.pop()
            if not worker.ended.is_set():
                return worker
            await worker.end()
        worker = _Worker(self._command, self._limits)
        try:
            await worker.make_ready()
        except BaseException:
            await worker.end()
            raise
        return worker


class _Worker(Ward):
    """One process, and what has come out of it since the last answer."""

    def __init__(self, command: Command, limits: Limits) -> None:
        super().__init__()
        self._command = command
        self._limits = limits
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._heard = asyncio.Event()

    async def make_ready(self) -> None:
        """Start it, and wait until it says that it is ready."""
        request = request_of(self._command, self._limits)
        await self.start(stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            async with asyncio.timeout(START_LIMIT / SECOND):
                await self.send(request)
                await self._heard.wait()
        except TimeoutError:
            raise self._not_started(f"is not ready after {START_LIMIT // SECOND} s") from None
        if self._take() is None:
            raise self._not_started(await self._say_why_it_ended())

    async def ask(self, request: bytes) -> bytes:
        """Send a request and wait for the answer to it."""
        self._stderr.clear()
        if not self.ended.is_set():
            self._heard.clear()
        self._send(request)
        try:
            async with asyncio.timeout(self._limits.time / SECOND):
                await self._heard.wait()
        except TimeoutError:
            raise too_slow(self._limits) from None
        if self._announced() > self._limits.output:
            raise too_much(self._limits)
        answer = self._take()
        if answer is None:
            raise self._crashed(await self._say_why_it_ended())
        return answer

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == STDERR:
            self._stderr += data[: STDERR_KEPT - len(self._stderr)]
            return
        self._stdout += data
        size = self._announced()
        if size > self._limits.output or (size >= 0 and len(self._stdout) >= HEADER + size):
            self._heard.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._heard.set()

    def _send(self, request: bytes) -> None:
        pipe = self._transport.get_pipe_transport(STDIN) if self._transport else None
        if isinstance(pipe, asyncio.WriteTransport):
            pipe.write(framed(request))

    def _announced(self) -> int:
        """How long the answer will be; -1 as long as nobody knows."""
        if len(self._stdout) < HEADER:
            return -1
        return int.from_bytes(self._stdout[:HEADER], "big")

    def _take(self) -> bytes | None:
        size = self._announced()
        if size < 0 or len(self._stdout) < HEADER + size:
            return None
        answer = bytes(self._stdout[HEADER : HEADER + size])
        self._stdout.clear()
        return answer

    async def _say_why_it_ended(self) -> str:
        await self.ended.wait()
        words = self._last_words()
        return f"{end_of(self.verdict)}: {words}" if words else end_of(self.verdict)

    def _last_words(self) -> str:
        found = _LAST_WORDS.search(self._stderr)
        lines = found[0].splitlines() if found else self._stderr.splitlines()
        return foreign(lines[-1].decode(errors="replace")) if lines else ""

    def _crashed(self, end: str) -> ProcessError:
        problem = f"the worker {end}"
        if any(phrase in self._stderr.lower() for phrase in OUT_OF_MEMORY):
            hint = f"it may use {self._limits.memory // MIB} MiB of memory"
            return ProcessError("external.worker.memory", problem, hint=hint)
        return ProcessError("external.worker.crash", problem)

    def _not_started(self, why: str) -> ProcessError:
        return ProcessError("external.worker.start", f"the worker {why}")


def too_slow(limits: Limits) -> ProcessError:
    problem = f"the worker did not answer within {limits.time / SECOND:g} s"
    return ProcessError("external.worker.timeout", problem)


def too_much(limits: Limits) -> ProcessError:
    problem = f"the worker's answer is larger than {limits.output} bytes"
    return ProcessError("external.worker.output", problem)
