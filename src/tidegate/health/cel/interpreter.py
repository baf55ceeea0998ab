"""A CEL interpreter for a worker process that can be killed.

It uses the C++ library of Google; Flux uses the Go library. docs/flux.md lists the two differences
that a comparison of some two hundred expressions has shown.
"""

from __future__ import annotations

from collections import OrderedDict
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

import msgspec

from tidegate.health.cel import messages
from tidegate.model.k8s.objects import Json

LIBRARY = "cel_expr_python"
ENVIRONMENT = "name: flux\nextensions:\n" + "".join(
    f"- name: {name}\n" for name in ("optional", "strings", "sets", "encoders")
)
"""The CEL extensions that Flux enables."""
MAX_COMPILED = 256
"""How many compiled expressions are cached."""
MAX_PROBLEM_LENGTH = 300
"""The length to which an error message is cut."""


class _Kind(Protocol):
    def name(self) -> str: ...


class _Result(Protocol):
    def type(self) -> _Kind: ...
    def value(self) -> object: ...


class _Compiled(Protocol):
    def eval(self, *, data: dict[str, Json]) -> _Result: ...
    def return_type(self) -> _Kind: ...


class _Env(Protocol):
    def compile(self, expression: str, *, disable_check: bool) -> _Compiled: ...


class CelInterpreter:
    """An interpreter that evaluates expressions and caches the compiled ones."""

    def __init__(self) -> None:
        self._cel = import_module(f"{LIBRARY}.cel")
        self._settings = self._cel.NewEnvConfigFromYaml(ENVIRONMENT)
        self._unchecked_env: _Env = self._cel.NewEnv(config=self._settings)
        self._compiled: OrderedDict[tuple[str, tuple[str, ...]], _Compiled] = OrderedDict()

    def answer(self, request: bytes) -> bytes:
        """Answer an encoded request."""
        return messages.encode_cel_response(self.evaluate(messages.decode_cel_request(request)))

    def evaluate(self, request: messages.CelRequest) -> messages.CelResponse:
        """Return the first expression that is true, or the first error.

        Like `Evaluate` in `cel/status_evaluator.go` of fluxcd/pkg/runtime 0.110.3.
        """
        variables: dict[str, Json] = msgspec.json.decode(request.variables)
        names = tuple(sorted(variables)) if request.checked else ()
        for index, expression in enumerate(request.expressions):
            if not expression:
                continue
            try:
                compiled = self._compile(expression, names)
            except RuntimeError as error:
                return messages.CelCompileError(index, _error_message(error))
            kind = compiled.return_type().name()
            if request.checked and kind != "BOOL":
                problem = f"the result is {_type_name(kind)}, not true or false"
                return messages.CelCompileError(index, problem)
            result = compiled.eval(data=variables)
            if result.type().name() == "ERROR":
                return messages.CelEvaluationError(index, _error_message(result.value()))
            if result.value() is True:
                return messages.CelMatch(index)
        return messages.CelMatch(-1)

    def _compile(self, expression: str, names: tuple[str, ...]) -> _Compiled:
        key = (expression, names)
        compiled = self._compiled.get(key)
        if compiled is None:
            env = self._checked_env(names) if names else self._unchecked_env
            compiled = env.compile(expression, disable_check=not names)
            self._compiled[key] = compiled
            while len(self._compiled) > MAX_COMPILED:
                self._compiled.popitem(last=False)
        return compiled

    def _checked_env(self, names: tuple[str, ...]) -> _Env:
        variables = dict.fromkeys(names, self._cel.Type.DYN)
        env: _Env = self._cel.NewEnv(config=self._settings, variables=variables)
        return env


def is_cel_installed() -> bool:
    """Return whether the CEL library is installed."""
    return find_spec(LIBRARY) is not None


def _type_name(kind: str) -> str:
    return "a value that depends on the object" if kind == "DYN" else f"`{kind.lower()}`"


def _error_message(problem: object) -> str:
    """Return the first line of an error, without its prefixes.

    The other lines draw the expression.
    """
    message = str(problem).partition("\n")[0]
    for word in ("INVALID_ARGUMENT: ", "ERROR: ", "UNKNOWN: ", "NOT_FOUND: ", "<input>:"):
        message = message.removeprefix(word)
    return message.removesuffix(" [INVALID_ARGUMENT]")[:MAX_PROBLEM_LENGTH]
