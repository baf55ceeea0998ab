"""Bands: which phases of a rollout are for what, and which hundreds are whose.

A phase is a number of three digits. Its hundreds are a domain's, its last two digits say what
belongs there: definitions, operators, secrets, settings, runtimes.
"""

from __future__ import annotations

import msgspec

from tidegate.model.objects import Json


class Band(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What belongs into the phases that end so; with `phases`, into exactly these."""

    name: str
    ends: tuple[int, ...] = ()
    phases: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()


USUAL = (
    Band(name="namespaces", phases=(100,), kinds=("Namespace",)),
    Band(name="definitions", ends=(10,), kinds=("CustomResourceDefinition", "Namespace")),
    Band(name="operators", ends=(20,)),
    Band(name="secrets", ends=(30,)),
    Band(name="settings", ends=(40,)),
    Band(name="runtimes", ends=(50,)),
    Band(name="bootstraps", ends=(55,), phases=(260,)),
    Band(name="smokes", ends=(99,)),
)
EMPTY = (30, 40, 50)


class Bands(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bands of a repository. `label` holds the phase, `domain_label` the domain.

    `domains`: by domain, the first and the last phase that are its own. `empty`: phases that
    nothing belongs into.
    """

    label: str = ""
    domain_label: str = msgspec.field(default="domain", name="domainLabel")
    domains: dict[str, tuple[int, ...]] = {}
    bands: tuple[Band, ...] = USUAL
    empty: tuple[int, ...] = EMPTY

    def band_of(self, phase: int) -> Band | None:
        """The band of exactly this phase, or else of its last two digits."""
        exact = (one for one in self.bands if phase in one.phases)
        ending = (one for one in self.bands if phase % 100 in one.ends)
        return next(exact, None) or next(ending, None)


def phase_in(labels: dict[str, Json], label: str) -> int | None:
    said = labels.get(label)
    return int(said) if isinstance(said, str) and said.isdecimal() else None
