"""Versions and version ranges, as Helm, Flux and Argo CD read them.

Those three share one Go library; its answers are recorded in the tests. A range without a
prerelease in it never takes one: `>=1.0.0` does not take `1.1.0-rc.1`, but `>=1.0.0-0` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import zip_longest

import msgspec

from tidegate.errors import SourceError, sanitize
from tidegate.model.text.lazy_regex import lazy_regex

LONGEST_VERSION = 256
LONGEST_RANGE = 512
MOST_ALTERNATIVES = 32
LARGEST_NUMBER = 2**64 - 1
_NUMBER = r"([0-9]+)"
_LABEL = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION = lazy_regex(
    rf"v?{_NUMBER}(?:\.{_NUMBER})?(?:\.{_NUMBER})?(?:-({_LABEL}(?:\.{_LABEL})*))?(?:\+({_BUILD}))?"
)
_PART = r"[0-9xX*]+"
_BOUND = rf"v?{_PART}(?:\.{_PART})?(?:\.{_PART})?(?:-{_BUILD})?(?:\+{_BUILD})?"
_SIGN = r"(?:!=|>=|=>|<=|=<|~>|=|>|<|~|\^|)"
_TERM = lazy_regex(rf"({_SIGN}) ?({_BOUND})")
_BETWEEN = lazy_regex(r" ?, ?| ")
_SPAN = lazy_regex(rf" ?({_BOUND}) - ({_BOUND}) ?")
_SPACE = lazy_regex(r"[\t\n\f\r ]+")
_BOUND_PARTS = lazy_regex(rf"v?({_PART})(?:\.({_PART}))?(?:\.({_PART}))?(-{_BUILD})?(?:\+.*)?")


class Version(msgspec.Struct, frozen=True):
    """One version: its three numbers and its prerelease; the build part does not count."""

    release: tuple[int, int, int]
    prerelease: str
    text: str

    @property
    def order(self) -> tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]:
        """What versions are compared by: numbers before words, and a release after all of them."""
        words = self.prerelease.split(".") if self.prerelease else ()
        labels = tuple((not w.isdecimal(), int(w) if w.isdecimal() else 0, w) for w in words)
        return self.release, not self.prerelease, labels


class Comparison(msgspec.Struct, frozen=True):
    """One comparison: a sign, a version, and how many of its numbers were written."""

    sign: str
    bound: Version
    written: int

    def takes(self, version: Version) -> bool:
        match self.sign:
            case "<":
                return version.order < self.bound.order
            case ">=" | "=>":
                return version.order >= self.bound.order
            case ">":
                return self._is_above(version)
            case "<=" | "=<":
                return self._is_at_most(version)
            case "!=":
                return self._differs(version)
            case "^":
                return self._is_near(version, self._caret_width())
            case "" | "=" if self.written == len(version.release):
                return version.order == self.bound.order
            case _:
                return self._is_near(version, self._tilde_width())

    def _is_near(self, version: Version, width: int) -> bool:
        """Not below the bound, and equal to it in the first `width` numbers."""
        same = version.release[:width] == self.bound.release[:width]
        return same and version.order >= self.bound.order

    def _tilde_width(self) -> int:
        if self.written == 3 and self.bound.release == (0, 0, 0):  # noqa: PLR2004
            return 0  # the library takes `~0.0.0` for "anything"
        return min(self.written, 2)

    def _caret_width(self) -> int:
        major, minor, _ = self.bound.release
        if major or self.written == 1:
            return 1
        # `^*` takes 0.0.0 and nothing else: so the library does, whatever its manual says.
        return 2 if minor or self.written == 2 else 3  # noqa: PLR2004

    def _is_above(self, version: Version) -> bool:
        if self.written in (1, 2):
            return version.release[: self.written] > self.bound.release[: self.written]
        return version.order > self.bound.order

    def _is_at_most(self, version: Version) -> bool:
        if self.written == 3:  # noqa: PLR2004
            return version.order <= self.bound.order
        width = self.written or 2
        return version.release[:width] <= self.bound.release[:width]

    def _differs(self, version: Version) -> bool:
        if self.written not in (1, 2):
            return version.order != self.bound.order
        if version.release[: self.written] != self.bound.release[: self.written]:
            return True
        return self.written == 2 and version.prerelease != self.bound.prerelease  # noqa: PLR2004


class Range(msgspec.Struct, frozen=True, dict=True):
    """Which versions will do: one of the alternatives must hold, with all of its terms."""

    alternatives: tuple[tuple[Comparison, ...], ...]
    text: str

    @cached_property
    def takes_prereleases(self) -> tuple[bool, ...]:
        return tuple(any(term.bound.prerelease for term in terms) for terms in self.alternatives)

    @property
    def is_one_version(self) -> bool:
        """Whether it is no range at all, but one version written in full."""
        match self.alternatives:
            case ((Comparison(sign="", written=3),),):
                return True
            case _:
                return False

    def takes(self, version: Version) -> bool:
        return any(
            (early or not version.prerelease) and all(term.takes(version) for term in terms)
            for terms, early in zip_longest(self.alternatives, self.takes_prereleases)
        )


def read_version(text: str) -> Version | None:
    """A version, with or without a leading `v`, perhaps with fewer than three numbers."""
    found = _VERSION.fullmatch(text) if len(text) <= LONGEST_VERSION else None
    if found is None:
        return None
    release = (int(found[1]), int(found[2] or 0), int(found[3] or 0))
    if max(release) > LARGEST_NUMBER:
        return None
    return Version(release, found[4] or "", text)


def read_range(text: str) -> Range | None:
    """A range such as `^1.2`, `>=1.0 <2.0 || 3.x` or `1.2 - 1.4`."""
    if len(text) > LONGEST_RANGE:
        return None
    even = _SPACE.sub(" ", text)
    alternatives = _SPAN.sub(r">= \1, <= \2 ", even).split("||")
    if len(alternatives) > MOST_ALTERNATIVES:
        return None
    found = tuple(_read_terms(alternative) for alternative in alternatives)
    every = tuple(terms for terms in found if terms is not None)
    return Range(every, text) if len(every) == len(found) else None


def require_range(text: str) -> Range:
    """The range, or an error that names what was written."""
    found = read_range(text)
    if found is None:
        raise SourceError(
            "source.version.range",
            f"`{sanitize(text)}` is not a version or a range of versions",
            hint="ranges are written as `^1.2`, `~1.2.3`, `>=1.0 <2.0`, `1.x` or `1.0 - 1.4`",
        )
    return found


def is_in_range(version: str, wanted: str) -> bool:
    """Whether a version will do; an empty range takes all that are no prereleases."""
    found, takers = read_version(version), read_range(wanted or "*")
    return version == wanted or (found is not None and takers is not None and takers.takes(found))


def pick_highest(wanted: Range, texts: Iterable[str]) -> Version | None:
    """The highest version that the range takes; what is no version is passed over.

    Of versions that differ in their build part alone, the one last in the alphabet is taken.
    """
    versions = (version for text in texts if (version := read_version(text)))
    fitting = [version for version in versions if wanted.takes(version)]
    return max(fitting, key=lambda version: (version.order, version.text), default=None)


def _read_terms(text: str) -> tuple[Comparison, ...] | None:
    """Terms with a comma or a space between them, read from left to right and never back."""
    text, at, terms = text.strip(" "), 0, []
    while True:
        found = _TERM.match(text, at)
        term = _read_term(found[1], found[2]) if found else None
        if found is None or term is None:
            return None
        terms.append(term)
        if found.end() == len(text):
            return tuple(terms)
        between = _BETWEEN.match(text, found.end())
        if between is None:
            return None
        at = between.end()


def _read_term(sign: str, bound: str) -> Comparison | None:
    found = _BOUND_PARTS.fullmatch(bound)
    if found is None:
        return None
    numbers: list[str] = []
    for part in (found[1], found[2], found[3]):
        if part is None or part in ("x", "X", "*"):
            break
        numbers.append(part)
    padded = ".".join([*numbers, "0", "0", "0"][:3])
    version = read_version(padded + (found[4] or ""))
    return Comparison(sign, version, len(numbers)) if version else None
