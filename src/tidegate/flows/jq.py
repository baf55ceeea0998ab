"""Asks jq, in a worker of its own, about the expressions of ignored differences.

    with closing(Jq()) as jq:
        jq.check(expression)                               # raises what is wrong with it
        jq.paths_for(item)(expressions, (wanted, live))

Nothing starts before the first question. An answer is kept: what is asked again of the same
objects, and what has cost a worker its life, is not asked of a worker again.
"""

from __future__ import annotations

import sys
from functools import partial
from hashlib import blake2b
from importlib.util import find_spec
from itertools import chain

import msgspec

from tidegate.errors import DialectError, Place, ProcessError, foreign
from tidegate.external.blocking import BlockingWorker
from tidegate.external.process import MIB, Command, Limits
from tidegate.flows import jq_machine
from tidegate.flows.jq_machine import JqQuestion, JqReply
from tidegate.model.ignoring import FindPaths, Paths
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json
from tidegate.model.plan import Item

LIMITS = Limits(time=Ms(SECOND), memory=256 * MIB, output=16 * MIB)
"""The time is Argo CD's, `ignore.normalizer.jq.timeout`."""
KEPT = 1024
TIMEOUT, START = "external.worker.timeout", "external.worker.start"

_read = msgspec.msgpack.Decoder(JqReply).decode


class Jq:
    """Answers at once, or within a second: it is asked by those who cannot wait for anything."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        command = Command(argv=(sys.executable, "-I", "-m", jq_machine.__name__))
        self._limits = limits
        self._worker = BlockingWorker(command, limits)
        self._known: dict[bytes, JqReply | ProcessError] = {}

    def close(self) -> None:
        self._worker.end()

    def check(self, expression: str) -> None:
        """Raise what is wrong with an expression, whatever it will be asked about."""
        reply = self._ask(JqQuestion((expression,), (b"{}",)))
        if isinstance(reply, ProcessError):
            raise self._costly(expression, reply)
        if reply.mistake:
            problem = f"`{foreign(expression)}` is no path: {foreign(reply.mistake)}"
            hint = "write it like `.spec.replicas` or `.webhooks[]?.clientConfig.caBundle`"
            raise DialectError("dialect.jq.expression", problem, hint=hint)

    def paths_for(self, item: Item) -> FindPaths:
        """Where expressions lead in an object; it is named where one of them does not end."""
        return partial(self._find, Place(item.origin or str(item.ref)))

    def paths_at(self, where: Place) -> FindPaths:
        return partial(self._find, where)

    def _find(
        self, where: Place, expressions: tuple[str, ...], bodies: tuple[dict[str, Json], ...]
    ) -> tuple[Paths, ...]:
        """All in one question. Where that fails each has its own time, and the culprit is found."""
        reply = self._ask(JqQuestion(expressions, tuple(map(msgspec.json.encode, bodies))))
        if isinstance(reply, JqReply):
            return reply.paths
        if len(expressions) == 1:
            raise self._costly(expressions[0], reply, where)
        each = [self._find(where, (one,), bodies) for one in expressions]
        return tuple(tuple(chain.from_iterable(side)) for side in zip(*each, strict=True))

    def _ask(self, question: JqQuestion) -> JqReply | ProcessError:
        request = msgspec.msgpack.encode(question)
        name = blake2b(request, digest_size=16).digest()
        if name not in self._known:
            if len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            self._known[name] = self._ask_worker(request)
        return self._known[name]

    def _ask_worker(self, request: bytes) -> JqReply | ProcessError:
        if not self._known and find_spec("jq") is None:
            problem = "expressions of jq's cannot be used: jq is not installed"
            raise DialectError("dialect.jq.missing", problem, hint="install `tidegate[jq]`")
        try:
            return _read(self._worker.ask(request))
        except ProcessError as error:
            if error.code == START:
                raise
            return error

    def _costly(
        self, expression: str, error: ProcessError, where: Place | None = None
    ) -> DialectError:
        shown, hint = f"`{foreign(expression)}`", "ask for less of the object"
        if error.code == TIMEOUT:
            problem = f"{shown} does not end within {self._limits.time / SECOND:g} s"
            return DialectError("dialect.jq.timeout", problem, where=where, hint=hint)
        problem = f"{shown} needs more than {self._limits.memory // MIB} MiB of memory"
        return DialectError("dialect.jq.memory", problem, where=where, hint=hint)
