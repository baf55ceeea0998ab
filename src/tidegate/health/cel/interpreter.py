"""Evaluates expressions, one question after the other; made for a worker that can be killed.

The library is Google's own in C++. Flux uses the one in Go. They were compared on some two hundred
expressions: docs/flux.md tells the two differences.
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
SETTINGS = "name: flux\nextensions:\n" + "".join(
    f"- name: {name}\n" for name in ("optional", "strings", "sets", "encoders")
)
"""What Flux gives to expressions beside the language itself."""
KEPT = 256
"""How many compiled expressions are kept."""
SHOWN = 300


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


class CelMachine:
    """Keeps what it has compiled."""

    def __init__(self) -> None:
        self._cel = import_module(f"{LIBRARY}.cel")
        self._settings = self._cel.NewEnvConfigFromYaml(SETTINGS)
        self._loose: _Env = self._cel.NewEnv(config=self._settings)
        self._compiled: OrderedDict[tuple[str, tuple[str, ...]], _Compiled] = OrderedDict()

    def answer(self, request: bytes) -> bytes:
        """One request of a worker's line."""
        return messages.write_cel_answer(self.evaluate(messages.read_cel_question(request)))

    def evaluate(self, question: messages.CelQuestion) -> messages.CelAnswer:
        variables: dict[str, Json] = msgspec.json.decode(question.variables)
        names = tuple(sorted(variables)) if question.checked else ()
        for place, expression in enumerate(question.expressions):
            if not expression:
                continue
            try:
                compiled = self._compile(expression, names)
            except RuntimeError as error:
                return messages.Uncompiled(place, _told(error))
            kind = compiled.return_type().name()
            if question.checked and kind != "BOOL":
                problem = f"it gives {_called(kind)}, and must give true or false"
                return messages.Uncompiled(place, problem)
            result = compiled.eval(data=variables)
            if result.type().name() == "ERROR":
                return messages.Failing(place, _told(result.value()))
            if result.value() is True:
                return messages.Chose(place)
        return messages.Chose(-1)

    def _compile(self, expression: str, names: tuple[str, ...]) -> _Compiled:
        key = (expression, names)
        found = self._compiled.get(key)
        if found is None:
            env = self._strict(names) if names else self._loose
            found = env.compile(expression, disable_check=not names)
            self._compiled[key] = found
            while len(self._compiled) > KEPT:
                self._compiled.popitem(last=False)
        return found

    def _strict(self, names: tuple[str, ...]) -> _Env:
        variables = dict.fromkeys(names, self._cel.Type.DYN)
        env: _Env = self._cel.NewEnv(config=self._settings, variables=variables)
        return env


def find_cel() -> bool:
    """Whether expressions can be evaluated here."""
    return find_spec(LIBRARY) is not None


def _called(kind: str) -> str:
    return "something that only the object tells" if kind == "DYN" else f"`{kind.lower()}`"


def _told(problem: object) -> str:
    """The first line says what is wrong; behind it the expression is drawn."""
    first = str(problem).partition("\n")[0]
    for word in ("INVALID_ARGUMENT: ", "ERROR: ", "UNKNOWN: ", "NOT_FOUND: ", "<input>:"):
        first = first.removeprefix(word)
    return first.removesuffix(" [INVALID_ARGUMENT]")[:SHOWN]
