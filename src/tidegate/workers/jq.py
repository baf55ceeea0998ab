"""Evaluation of the jq path expressions of ignored differences, in a worker process.

    with closing(Jq()) as jq:
        jq.check(expression)                               # raises for an invalid expression
        jq.paths_for(item)(expressions, (desired, live))

Nothing starts before the first request. Replies are cached: a repeated request, and one that
killed a worker, is not sent again.
"""

from __future__ import annotations

import sys
from functools import partial
from hashlib import blake2b
from importlib.util import find_spec
from itertools import chain

import msgspec

from tidegate.errors import DialectError, Location, ProcessError, sanitize
from tidegate.external.blocking_worker import BlockingWorker
from tidegate.external.process import MIB, Command, Limits
from tidegate.model.k8s.objects import Json
from tidegate.model.plans.plan import PlanItem
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.ignore_differences import DifferencePathFinder, DifferencePaths
from tidegate.workers import jq_worker
from tidegate.workers.jq_worker import JqQuery, JqReply

LIMITS = Limits(time=Ms(SECOND), memory=256 * MIB, output=16 * MIB)
"""Limits of one request, with the default jq timeout of Argo CD.

Like `getJQExecutionTimeout` in `util/argo/normalizers/diff_normalizer.go` of Argo CD 3.5.6.
"""
CACHE_SIZE = 1024
TIMEOUT_CODE, START_CODE = "external.worker.timeout", "external.worker.start"
_decode_reply = msgspec.msgpack.Decoder(JqReply).decode


class Jq:
    """jq in a worker process, limited to a second, as its callers cannot wait."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        command = Command(argv=(sys.executable, "-I", "-m", jq_worker.__name__))
        self._limits = limits
        self._worker = BlockingWorker(command, limits)
        self._replies: dict[bytes, JqReply | ProcessError] = {}

    def close(self) -> None:
        """Kill the worker, if there is one."""
        self._worker.kill()

    def check(self, expression: str) -> None:
        """Raise DialectError for an expression that is invalid for every object."""
        reply = self._request(JqQuery((expression,), (b"{}",)))
        if isinstance(reply, ProcessError):
            raise self._limit_error(expression, reply)
        if reply.error:
            problem = f"`{sanitize(expression)}` is not a jq path: {sanitize(reply.error)}"
            hint = "write it like `.spec.replicas` or `.webhooks[]?.clientConfig.caBundle`"
            raise DialectError("dialect.jq.expression", problem, hint=hint)

    def paths_for(self, item: PlanItem) -> DifferencePathFinder:
        """Return a function that finds the paths of expressions. Errors name the item."""
        return partial(self._find_paths, Location(item.origin or str(item.ref)))

    def paths_at(self, location: Location) -> DifferencePathFinder:
        """Return a function that finds the paths of expressions. Errors name the location."""
        return partial(self._find_paths, location)

    def _find_paths(
        self, location: Location, expressions: tuple[str, ...], bodies: tuple[dict[str, Json], ...]
    ) -> tuple[DifferencePaths, ...]:
        """Evaluate all expressions in one request; if that fails, each alone, to name one."""
        reply = self._request(JqQuery(expressions, tuple(map(msgspec.json.encode, bodies))))
        if isinstance(reply, JqReply):
            return reply.paths
        if len(expressions) == 1:
            raise self._limit_error(expressions[0], reply, location)
        results = [self._find_paths(location, (expression,), bodies) for expression in expressions]
        return tuple(tuple(chain.from_iterable(side)) for side in zip(*results, strict=True))

    def _request(self, query: JqQuery) -> JqReply | ProcessError:
        payload = msgspec.msgpack.encode(query)
        key = blake2b(payload, digest_size=16).digest()
        if key not in self._replies:
            if len(self._replies) >= CACHE_SIZE:
                del self._replies[next(iter(self._replies))]
            self._replies[key] = self._send(payload)
        return self._replies[key]

    def _send(self, payload: bytes) -> JqReply | ProcessError:
        if not self._replies and find_spec("jq") is None:
            problem = "cannot use jq expressions: jq is not installed"
            raise DialectError("dialect.jq.missing", problem, hint="install `tidegate[jq]`")
        try:
            return _decode_reply(self._worker.request(payload))
        except ProcessError as error:
            if error.code == START_CODE:
                raise
            return error

    def _limit_error(
        self, expression: str, error: ProcessError, location: Location | None = None
    ) -> DialectError:
        shown, hint = f"`{sanitize(expression)}`", "select fewer fields"
        if error.code == TIMEOUT_CODE:
            problem = f"{shown} timed out after {self._limits.time / SECOND:g}s"
            return DialectError("dialect.jq.timeout", problem, location=location, hint=hint)
        problem = f"{shown} needs more than {self._limits.memory // MIB} MiB of memory"
        return DialectError("dialect.jq.memory", problem, location=location, hint=hint)
