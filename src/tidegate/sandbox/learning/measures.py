"""Single measurements: what took how long, for whom; and what could not be measured, and why."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import msgspec

from tidegate.model.moment import MINUTE, Ms

LONGEST = Ms(60 * MINUTE)
"""What seems to take longer is another change, later on: times tell of the last one only."""


class Whom(NamedTuple):
    """What the `when` of a rule says."""

    kind: str = ""
    name: str = ""
    container: str = ""
    image: str = ""
    group: str = ""
    stage: str = ""

    @property
    def keys(self) -> dict[str, str]:
        return {key: said for key, said in self._asdict().items() if said}


class Measures(msgspec.Struct):
    """Spans by what they are of (`pull`, `run`, `after`) and by whose they are."""

    spans: dict[str, dict[Whom, list[Ms]]] = msgspec.field(default_factory=dict)
    left_out: Counter[str] = msgspec.field(default_factory=Counter)
    """Why something was not counted, in words, and how often."""

    def take(self, part: str, whom: Whom, span: Ms) -> None:
        """Note a span; one that cannot be is left out."""
        if span < 0 or span > LONGEST:
            self.left_out["times that belong to a later change"] += 1
            return
        self.spans.setdefault(part, {}).setdefault(whom, []).append(span)

    def of(self, part: str) -> dict[Whom, list[Ms]]:
        return self.spans.get(part, {})
