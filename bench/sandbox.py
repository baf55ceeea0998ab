"""What a write and a list cost in the sandbox, with few and with many objects stored."""

from __future__ import annotations

import statistics
import time

import msgspec

from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.sandbox.world import Sandbox
from tidegate.world.messages import ListPage, Success
from tidegate.world.requests import List, Selection, Verb, Write

CONFIG_MAP = Kind("", "v1", "ConfigMap")
NAMESPACE = Kind("", "v1", "Namespace")
SIZES = (100, 10_000, 100_000)
WRITES = 300


def a_write(number: int, turn: int) -> Write:
    body: dict[str, Json] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"m{number}", "namespace": "bench"},
        "data": {"turn": str(turn), "text": "x" * 900},
    }
    ref = Ref(CONFIG_MAP, "bench", f"m{number}")
    return Write(verb=Verb.APPLY, ref=ref, body=msgspec.json.encode(body), manager="bench")


class Bench:
    """A sandbox that is filled step by step."""

    def __init__(self) -> None:
        self._server = Sandbox().clusters[""].server
        self._stored = 0
        namespace = msgspec.json.encode(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}}
        )
        ref = Ref(NAMESPACE, "", "bench")
        self._server.perform(Write(verb=Verb.CREATE, ref=ref, body=namespace))

    def fill(self, size: int) -> None:
        while self._stored < size:
            self._server.perform(a_write(self._stored, 0))
            self._stored += 1

    def write(self, turn: int) -> float:
        """Microseconds of one apply that changes an object."""
        write = a_write(turn % self._stored, turn + 1)
        start = time.perf_counter()
        outcome = self._server.perform(write)
        spent = time.perf_counter() - start
        if not isinstance(outcome, Success):
            raise TypeError(outcome)
        return spent * 1e6

    def list(self) -> float:
        """Microseconds for each object of a list of all."""
        start = time.perf_counter()
        outcome = self._server.perform(List(Selection(CONFIG_MAP, "bench")))
        spent = time.perf_counter() - start
        if not isinstance(outcome, ListPage) or len(outcome.items) < self._stored:
            raise TypeError(outcome)
        return spent * 1e6 / self._stored


def measure() -> dict[str, float]:
    """Medians; the first list, which encodes objects for the first time, does not count."""
    bench = Bench()
    figures: dict[str, float] = {}
    for size in SIZES:
        bench.fill(size)
        figures[f"write at {size:,}, us"] = statistics.median(map(bench.write, range(WRITES)))
        bench.list()
        figures[f"list of {size:,}, us/object"] = statistics.median(bench.list() for _ in range(5))
    first, last = SIZES[0], SIZES[-1]
    figures["write, largest / smallest"] = (
        figures[f"write at {last:,}, us"] / figures[f"write at {first:,}, us"]
    )
    return figures


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:28} {value:10.2f}")
