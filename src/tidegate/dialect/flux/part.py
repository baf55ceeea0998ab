"""A custom resource of Flux's while it is read: its fields by their types, and what is to be said.

What is not of its type is told and read as absent, so that a reader goes on to the next field.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

import msgspec

from tidegate.documents import Document
from tidegate.documents.document import FieldPath, path_text
from tidegate.errors import Place, foreign
from tidegate.model.finding import Finding, Severity
from tidegate.model.moment import Ms, parse_duration
from tidegate.model.objects import Json, Kind
from tidegate.model.patterns import late
from tidegate.model.reading import mapping, text

REFUSED = "the API server refuses the object"
CURRENT = frozenset({"v1", "v2"})
GONE = {"v1beta1": "2.7", "v2beta1": "2.7", "v1beta2": "2.8", "v2beta2": "2.8"}
"""Since when Flux does not serve a version any more."""
ALPHA = "alpha"
EMPTY: tuple[Json, ...] = (None, "", [], {})
_DURATION = late(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+")
_WORDS = {str: "a text", bool: "true or false", dict: "a mapping", list: "a list", int: "a number"}
_Value = TypeVar("_Value", str, bool, int, dict[str, Json], list[Json])


class Part:
    """A mapping somewhere in an object, and what was found in the whole of it."""

    def __init__(
        self, body: dict[str, Json], place: Place, path: FieldPath, findings: list[Finding]
    ) -> None:
        self.findings = findings
        self.body, self._place, self._path = body, place, path

    def at(self, name: str | int = "") -> Place:
        """The place of a field or an item, or of the part itself."""
        path = self._path if name == "" else (*self._path, name)
        return self._place.at(path_text(path))

    def tell(
        self,
        code: str,
        name: str | int,
        what: str,
        *,
        severity: Severity = Severity.ERROR,
        why: str = REFUSED,
        fix: str = "",
    ) -> None:
        """Say something of a field: its name is the subject of the sentence."""
        where = self.at(name)
        sentence = f"`{where.field}` {what}"
        self.findings.append(
            Finding(code=code, severity=severity, sentence=sentence, where=where, why=why, fix=fix)
        )

    def value(self, name: str) -> Json:
        return self.body.get(name)

    def has(self, name: str) -> bool:
        return self.body.get(name) is not None

    def part(self, name: str) -> Part:
        """The mapping of this name; an empty one where there is none."""
        return self.inside(name, self._typed(name, dict) or {})

    def parts(self, name: str) -> list[Part]:
        """The mappings of a list."""
        own = self.inside(name, {})
        found = [own.check(at, one, dict) for at, one in enumerate(self._typed(name, list) or ())]
        return [own.inside(at, one) for at, one in enumerate(found) if one is not None]

    def text(
        self, name: str, *, default: str = "", among: Collection[str] = (), needed: bool = False
    ) -> str:
        """A text, one of those that are possible; what is `needed` is missed."""
        said = self._typed(name, str) or ""
        if needed and self.value(name) in EMPTY:
            self.miss(name)
        if said and among and said not in among:
            possible = ", ".join(f"`{one}`" for one in among)
            self.tell("flux.choice", name, f"is `{foreign(said)}`", fix=f"write one of {possible}")
            return default
        return said or default

    def flag(self, name: str, *, needed: bool = False) -> bool:
        if needed and not self.has(name):
            self.miss(name)
        return self._typed(name, bool) or False

    def number(self, name: str) -> int:
        return self._typed(name, int) or 0

    def words(self, name: str) -> tuple[str, ...]:
        """The texts of a list."""
        own = self.inside(name, {})
        found = (own.check(at, one, str) for at, one in enumerate(self._typed(name, list) or ()))
        return tuple(one for one in found if one is not None)

    def texts(self, name: str) -> dict[str, str]:
        """The texts of a mapping."""
        own = self.part(name)
        found = ((key, own.check(key, one, str)) for key, one in own.body.items())
        return {key: one for key, one in found if one is not None}

    def span(self, name: str, *, needed: bool = False) -> Ms | None:
        """A duration as Flux writes it."""
        said = self.text(name, needed=needed)
        if not said:
            return None
        try:
            return parse_duration(said if _DURATION.fullmatch(said) else "")
        except ValueError as error:
            fix = "write numbers with ms, s, m or h, such as `1m30s`"
            self.tell("flux.duration", name, f"is `{foreign(said)}`: {error}", fix=fix)
            return None

    def tree_path(self, name: str) -> str:
        """A path as Flux walks it: from the root of the tree, and never out of it."""
        said = self.text(name)
        inside = posixpath.normpath(f"/{said}").strip("/") or "."
        if posixpath.normpath(said or ".").split("/")[0] == "..":
            self.tell(
                "flux.path",
                name,
                "leads out of its tree",
                severity=Severity.WARNING,
                why=f"Flux stops at the root and takes `{foreign(inside)}`",
                fix="write a path that starts at the root of the tree",
            )
        return inside

    def tell_unplayed(self, fields: Mapping[str, str], usual: Mapping[str, Json]) -> None:
        """Tell of fields that have no effect here, each with what is done instead."""
        for path, instead in fields.items():
            *inside, name = path.split(".")
            part = self
            for one in inside:
                part = part.part(one)
            said = part.value(name)
            if said not in EMPTY and said != usual.get(path, False):
                part.tell_difference(name, instead)

    def tell_difference(
        self, name: str, instead: str, severity: Severity = Severity.WARNING
    ) -> None:
        why = "Flux does what it says; a rollout and a simulation by Tidegate do not"
        self.tell("flux.unplayed", name, f"is not played: {instead}", severity=severity, why=why)

    def tell_ignored(self, names: Iterable[str], why: str, fix: str = "") -> None:
        """Tell of fields that Flux itself does not read."""
        for name in names:
            if self.value(name) not in EMPTY:
                note = Severity.WARNING
                self.tell("flux.ignored", name, "has no effect", severity=note, why=why, fix=fix)

    def check(self, name: str | int, said: Json, wanted: type[_Value]) -> _Value | None:
        """What stands there, if it is of its type."""
        if said is None or type(said) is wanted:
            return said
        word = _WORDS[wanted]
        self.tell("flux.type", name, f"is not {word}", fix=f"write {word}")
        return None

    def inside(self, name: str | int, body: dict[str, Json]) -> Part:
        return Part(body, self._place, (*self._path, name), self.findings)

    def _typed(self, name: str, wanted: type[_Value]) -> _Value | None:
        return self.check(name, self.body.get(name), wanted)

    def miss(self, name: str) -> None:
        """Tell that a field is not there which must be."""
        self.tell("flux.required", name, "is missing", fix=f"add `{name}`")


class FluxResource(msgspec.Struct, frozen=True):
    """Which object it is, where it is at home, and its spec."""

    kind: Kind
    name: str
    home: str
    place: Place
    spec: Part

    @property
    def is_old(self) -> bool:
        """Whether its version is one of those before Flux's first stable ones."""
        return self.kind.version not in CURRENT

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, each once: some fields are read for two reasons."""
        return tuple(dict.fromkeys(self.spec.findings))


def open_resource(
    document: Document, namespace: str, current: Collection[str] = CURRENT
) -> FluxResource:
    """The resource of a document. One that names no namespace is in this one.

    `current`: the versions of its kind that Flux serves today.
    """
    body, place = document.body, document.place
    kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
    whole = Part(body, place, (), [])
    name = whole.part("metadata").text("name", needed=True)
    if kind.version not in current and (kind.version in GONE or ALPHA in kind.version):
        since = f"since {GONE[kind.version]}" if kind.version in GONE else "any more"
        whole.tell(
            "flux.version",
            "apiVersion",
            f"is `{foreign(kind.api_version)}`, which Flux does not serve {since}",
            severity=Severity.WARNING,
            why="a cluster with a Flux of today does not know the kind",
            fix="write v2 for a HelmRelease and v1 for all else; `flux migrate` does that",
        )
    home = text(mapping(body, "metadata"), "namespace", default=namespace)
    return FluxResource(kind, name, home, place, whole.part("spec"))
