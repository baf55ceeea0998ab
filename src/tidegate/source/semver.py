"""Versions and version ranges, as Helm, Flux and Argo CD read them.

All three use the Go library Masterminds/semver; the tests contain its recorded results. A range
without a prerelease contains none: `>=1.0.0` does not contain `1.1.0-rc.1`, but `>=1.0.0-0` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import zip_longest

import msgspec

from tidegate.errors import SourceError, sanitize
from tidegate.model.text.lazy_regex import lazy_regex

MAX_VERSION_LENGTH = 256
MAX_RANGE_LENGTH = 512
MAX_ALTERNATIVES = 32
MAX_NUMBER = 2**64 - 1
_NUMBER = r"([0-9]+)"
_LABEL = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION = lazy_regex(
    rf"v?{_NUMBER}(?:\.{_NUMBER})?(?:\.{_NUMBER})?(?:-({_LABEL}(?:\.{_LABEL})*))?(?:\+({_BUILD}))?"
)
_PART = r"[0-9xX*]+"
_BOUND = rf"v?{_PART}(?:\.{_PART})?(?:\.{_PART})?(?:-{_BUILD})?(?:\+{_BUILD})?"
_OPERATOR = r"(?:!=|>=|=>|<=|=<|~>|=|>|<|~|\^|)"
_COMPARISON = lazy_regex(rf"({_OPERATOR}) ?({_BOUND})")
_SEPARATOR = lazy_regex(r" ?, ?| ")
_HYPHEN_RANGE = lazy_regex(rf" ?({_BOUND}) - ({_BOUND}) ?")
_WHITESPACE = lazy_regex(r"[\t\n\f\r ]+")
_BOUND_PARTS = lazy_regex(rf"v?({_PART})(?:\.({_PART}))?(?:\.({_PART}))?(-{_BUILD})?(?:\+.*)?")


class Version(msgspec.Struct, frozen=True):
    """A semantic version; build metadata is ignored."""

    release: tuple[int, int, int]
    """Major, minor and patch number."""
    prerelease: str
    """The prerelease, such as `rc.1`; empty for none."""
    text: str
    """The version as it is written."""

    @property
    def sort_key(self) -> tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]:
        """Return the key by which versions are sorted.

        Like `Compare` in `version.go` of Masterminds/semver 3.5.0.
        """
        identifiers = self.prerelease.split(".") if self.prerelease else ()
        labels = tuple(
            (
                not identifier.isdecimal(),
                int(identifier) if identifier.isdecimal() else 0,
                identifier,
            )
            for identifier in identifiers
        )
        return self.release, not self.prerelease, labels


class Comparison(msgspec.Struct, frozen=True):
    """One comparison of a range, such as `>=1.2`."""

    operator: str
    """The operator, such as `>=`."""
    bound: Version
    """The version to compare with."""
    component_count: int
    """How many of the three numbers of the bound are written."""

    def matches(self, version: Version) -> bool:
        """Return whether the comparison holds for a version."""
        match self.operator:
            case "<":
                return version.sort_key < self.bound.sort_key
            case ">=" | "=>":
                return version.sort_key >= self.bound.sort_key
            case ">":
                return self._is_above(version)
            case "<=" | "=<":
                return self._is_at_most(version)
            case "!=":
                return self._differs(version)
            case "^":
                return self._is_compatible(version, self._caret_components())
            case "" | "=" if self.component_count == len(version.release):
                return version.sort_key == self.bound.sort_key
            case _:
                return self._is_compatible(version, self._tilde_components())

    def _is_compatible(self, version: Version, width: int) -> bool:
        """Return whether a version is at least the bound, and equal in the first `width` numbers.

        Like `constraintTilde` and `constraintCaret` in `constraints.go` of Masterminds/semver
        3.5.0.
        """
        has_same_prefix = version.release[:width] == self.bound.release[:width]
        return has_same_prefix and version.sort_key >= self.bound.sort_key

    def _tilde_components(self) -> int:
        if self.component_count == 3 and self.bound.release == (0, 0, 0):  # noqa: PLR2004
            return 0  # the library matches any version with `~0.0.0`
        return min(self.component_count, 2)

    def _caret_components(self) -> int:
        major, minor, _ = self.bound.release
        if major or self.component_count == 1:
            return 1
        # The library matches only 0.0.0 with `^*`, unlike its documentation.
        return 2 if minor or self.component_count == 2 else 3  # noqa: PLR2004

    def _is_above(self, version: Version) -> bool:
        if self.component_count in (1, 2):
            return (
                version.release[: self.component_count] > self.bound.release[: self.component_count]
            )
        return version.sort_key > self.bound.sort_key

    def _is_at_most(self, version: Version) -> bool:
        if self.component_count == 3:  # noqa: PLR2004
            return version.sort_key <= self.bound.sort_key
        width = self.component_count or 2
        return version.release[:width] <= self.bound.release[:width]

    def _differs(self, version: Version) -> bool:
        if self.component_count not in (1, 2):
            return version.sort_key != self.bound.sort_key
        if version.release[: self.component_count] != self.bound.release[: self.component_count]:
            return True
        return self.component_count == 2 and version.prerelease != self.bound.prerelease  # noqa: PLR2004


class Range(msgspec.Struct, frozen=True, dict=True):
    """A version range: one of the alternatives must hold, with all of its comparisons."""

    alternatives: tuple[tuple[Comparison, ...], ...]
    """The comparisons of each alternative."""
    text: str
    """The range as it is written."""

    @cached_property
    def allows_prereleases(self) -> tuple[bool, ...]:
        """Return for each alternative whether it contains prereleases."""
        return tuple(
            any(comparison.bound.prerelease for comparison in comparisons)
            for comparisons in self.alternatives
        )

    @property
    def is_exact(self) -> bool:
        """Whether the range is one version, written in full."""
        match self.alternatives:
            case ((Comparison(operator="", component_count=3),),):
                return True
            case _:
                return False

    def matches(self, version: Version) -> bool:
        """Return whether the range contains a version."""
        return any(
            (allows_prerelease or not version.prerelease)
            and all(comparison.matches(version) for comparison in comparisons)
            for comparisons, allows_prerelease in zip_longest(
                self.alternatives, self.allows_prereleases
            )
        )


def read_version(text: str) -> Version | None:
    """Read a version, with or without a leading `v`, with one to three numbers; None if invalid.

    Like `NewVersion` in `version.go` of Masterminds/semver 3.5.0.
    """
    match = _VERSION.fullmatch(text) if len(text) <= MAX_VERSION_LENGTH else None
    if match is None:
        return None
    release = (int(match[1]), int(match[2] or 0), int(match[3] or 0))
    if max(release) > MAX_NUMBER:
        return None
    return Version(release, match[4] or "", text)


def read_range(text: str) -> Range | None:
    """Read a range such as `^1.2`, `>=1.0 <2.0



    3.x` or `1.2 - 1.4`; None if invalid.

    Like `NewConstraint` in `constraints.go` of Masterminds/semver 3.5.0.
    """
    if len(text) > MAX_RANGE_LENGTH:
        return None
    normalized = _WHITESPACE.sub(" ", text)
    alternatives = _HYPHEN_RANGE.sub(r">= \1, <= \2 ", normalized).split("||")
    if len(alternatives) > MAX_ALTERNATIVES:
        return None
    results = tuple(_read_comparisons(alternative) for alternative in alternatives)
    valid = tuple(comparisons for comparisons in results if comparisons is not None)
    return Range(valid, text) if len(valid) == len(results) else None


def require_range(text: str) -> Range:
    """Read a range. Raises SourceError if it is invalid."""
    version_range = read_range(text)
    if version_range is None:
        raise SourceError(
            "source.version.range",
            f"`{sanitize(text)}` is not a version or version range",
            hint="write ranges like `^1.2`, `~1.2.3`, `>=1.0 <2.0`, `1.x` or `1.0 - 1.4`",
        )
    return version_range


def is_in_range(version: str, version_range: str) -> bool:
    """Return whether a version is in a range.

    An empty range contains all versions but prereleases.
    """
    parsed, parsed_range = read_version(version), read_range(version_range or "*")
    return version == version_range or (
        parsed is not None and parsed_range is not None and parsed_range.matches(parsed)
    )


def pick_highest(version_range: Range, texts: Iterable[str]) -> Version | None:
    """Return the highest version in a range; None without one. Invalid versions are ignored.

    Of versions that differ only in build metadata, the alphabetically last one.
    """
    versions = (version for text in texts if (version := read_version(text)))
    candidates = [version for version in versions if version_range.matches(version)]
    return max(candidates, key=lambda version: (version.sort_key, version.text), default=None)


def _read_comparisons(text: str) -> tuple[Comparison, ...] | None:
    """Read comparisons that are separated by a comma or a space; None if one is invalid."""
    text, position, comparisons = text.strip(" "), 0, []
    while True:
        match = _COMPARISON.match(text, position)
        comparison = _read_comparison(match[1], match[2]) if match else None
        if match is None or comparison is None:
            return None
        comparisons.append(comparison)
        if match.end() == len(text):
            return tuple(comparisons)
        separator = _SEPARATOR.match(text, match.end())
        if separator is None:
            return None
        position = separator.end()


def _read_comparison(operator: str, bound: str) -> Comparison | None:
    match = _BOUND_PARTS.fullmatch(bound)
    if match is None:
        return None
    numbers: list[str] = []
    for part in (match[1], match[2], match[3]):
        if part is None or part in ("x", "X", "*"):
            break
        numbers.append(part)
    padded = ".".join([*numbers, "0", "0", "0"][:3])
    version = read_version(padded + (match[4] or ""))
    return Comparison(operator, version, len(numbers)) if version else None
