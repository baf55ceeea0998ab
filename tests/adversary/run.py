"""Which tries there are for a seed, and how they run side by side."""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from plane import ControlPlane
from tests.adversary.attacks import ATTACKS
from tests.adversary.tries import Outage, Try


class PlannedTry(NamedTuple):
    """A try, before it runs. The same seed and number make the same choices."""

    number: int
    attack: str
    place: int
    """How many earlier tries have the same attack."""
    seed: int


@dataclass(frozen=True, slots=True)
class TryResult:
    """What a try found."""

    planned: PlannedTry
    seconds: float = 0.0
    faults: tuple[str, ...] = ()
    figures: Counter[str] = field(default_factory=Counter)


def schedule(count: int, seed: int) -> list[PlannedTry]:
    """Return the tries of a seed; a longer schedule only appends to a shorter one."""
    chance, places = random.Random(seed), Counter[str]()
    deck = [name for name, attack in ATTACKS.items() for _ in range(attack.share)]
    planned: list[PlannedTry] = []
    while len(planned) < count:
        for name in chance.sample(deck, len(deck)):
            planned.append(PlannedTry(len(planned) + 1, name, places[name], seed))
            places[name] += 1
    return planned[:count]


def run_tries(
    planned: Sequence[PlannedTry],
    plane: ControlPlane,
    directory: Path,
    *,
    workers: int,
    seconds: float,
) -> Iterator[TryResult]:
    """Run tries and yield their results as they end. Starts none when the time is over."""
    deadline, outage = time.monotonic() + seconds, Outage()

    def attempt(item: PlannedTry) -> TryResult | None:
        stops_api = ATTACKS[item.attack].stops_api
        with outage.alone() if stops_api else outage.shared():
            if time.monotonic() >= deadline:
                return None
            return run_try(item, plane, directory)

    with ThreadPoolExecutor(workers) as pool:
        for future in as_completed([pool.submit(attempt, item) for item in planned]):
            result = future.result()
            if result is not None:
                yield result


def run_try(planned: PlannedTry, plane: ControlPlane, directory: Path) -> TryResult:
    """Run one try."""
    attack, name = ATTACKS[planned.attack], f"adv-{planned.number}"
    chance = random.Random(f"{planned.seed}-{planned.number}")
    place = directory / f"try-{planned.number}"
    place.mkdir()
    started = time.monotonic()
    subject = attack.make_subject(chance, place, name, planned.place)
    attempt = Try(plane, name, subject, place, chance)
    try:
        attempt.prepare()
        attack.run(attempt, planned.place)
    except Exception:  # noqa: BLE001 - a try that breaks is a result, too
        attempt.faults.append(f"the try itself failed: {traceback.format_exc()}")
    finally:
        attempt.clean_up()
    seconds = time.monotonic() - started
    return TryResult(planned, seconds, tuple(attempt.faults), attempt.figures)
