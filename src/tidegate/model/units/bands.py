"""Bands: the purpose of rollout phases, and the domains that own them.

A phase is a number of three digits. The hundreds belong to a domain; the last two digits show the
purpose: definitions, operators, secrets, settings, runtimes.
"""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.objects import Json


class Band(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The kinds that belong into some phases."""

    name: str
    ends: tuple[int, ...] = ()
    """The last two digits of its phases."""
    phases: tuple[int, ...] = ()
    """Exact phases, which win over `ends`."""
    kinds: tuple[str, ...] = ()


DEFAULT_BANDS = (
    Band(name="namespaces", phases=(100,), kinds=("Namespace",)),
    Band(name="definitions", ends=(10,), kinds=("CustomResourceDefinition", "Namespace")),
    Band(name="operators", ends=(20,)),
    Band(name="secrets", ends=(30,)),
    Band(name="settings", ends=(40,)),
    Band(name="runtimes", ends=(50,)),
    Band(name="bootstraps", ends=(55,), phases=(260,)),
    Band(name="smokes", ends=(99,)),
)
DEFAULT_EMPTY_PHASES = (30, 40, 50)


class Bands(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bands of a repository."""

    label: str = ""
    """The label that holds the phase."""
    domain_label: str = msgspec.field(default="domain", name="domainLabel")
    """The label that holds the domain."""
    domains: dict[str, tuple[int, ...]] = {}
    """The first and last phase of each domain."""
    bands: tuple[Band, ...] = DEFAULT_BANDS
    empty: tuple[int, ...] = DEFAULT_EMPTY_PHASES
    """Phases that must stay empty."""

    def band_for_phase(self, phase: int) -> Band | None:
        """Return the band of this exact phase, else of its last two digits.

        Returns None if there is none.
        """
        exact = (band for band in self.bands if phase in band.phases)
        ending = (band for band in self.bands if phase % 100 in band.ends)
        return next(exact, None) or next(ending, None)


def phase_from_labels(labels: dict[str, Json], label: str) -> int | None:
    value = labels.get(label)
    return int(value) if isinstance(value, str) and value.isdecimal() else None
