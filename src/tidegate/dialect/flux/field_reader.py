"""Typed reader of the fields of a Flux resource that collects findings.

A field of the wrong type is reported and read as absent, so the other fields are still read.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

import msgspec

from tidegate.documents import Document
from tidegate.documents.document import format_path
from tidegate.errors import Location, sanitize
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_mapping, get_text, object_kind
from tidegate.model.k8s.objects import FieldPath, Json, Kind
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.times import Ms, parse_duration

REJECTED = "the API server rejects the object"
STABLE_VERSIONS = frozenset({"v1", "v2"})
REMOVED_IN = {"v1beta1": "2.7", "v2beta1": "2.7", "v1beta2": "2.8", "v2beta2": "2.8"}
"""Flux version that removed an API version."""
ALPHA = "alpha"
EMPTY_VALUES: tuple[Json, ...] = (None, "", [], {})
_DURATION = lazy_regex(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+")
_TYPE_NAMES = {
    str: "a string",
    bool: "true or false",
    dict: "a mapping",
    list: "a list",
    int: "a number",
}
_Value = TypeVar("_Value", str, bool, int, dict[str, Json], list[Json])


class FieldReader:
    """Reader of a mapping in an object, with the findings about the whole object."""

    def __init__(
        self, body: dict[str, Json], location: Location, path: FieldPath, findings: list[Finding]
    ) -> None:
        self.findings = findings
        self.body, self._location, self._path = body, location, path

    def location(self, name: str | int = "") -> Location:
        """Return the location of a field or an item, or of the mapping itself."""
        path = self._path if name == "" else (*self._path, name)
        return self._location.with_field(format_path(path))

    def report(
        self,
        code: str,
        name: str | int,
        problem: str,
        *,
        severity: Severity = Severity.ERROR,
        why: str = REJECTED,
        fix: str = "",
        cause: str = "",
    ) -> None:
        """Report a finding about a field; the message begins with the name of the field."""
        location = self.location(name)
        message = f"`{location.field}` {problem}"
        self.findings.append(
            Finding(
                code=code,
                severity=severity,
                message=message,
                location=location,
                reason=why,
                fix=fix,
                cause=cause,
            )
        )

    def value(self, name: str) -> Json:
        return self.body.get(name)

    def has(self, name: str) -> bool:
        return self.body.get(name) is not None

    def child(self, name: str) -> FieldReader:
        """Return the reader of a nested mapping; an empty one if there is none."""
        return self.reader_at(name, self._typed(name, dict) or {})

    def children(self, name: str) -> list[FieldReader]:
        """Return the readers of a list of mappings."""
        list_reader = self.reader_at(name, {})
        items = [
            list_reader.check(index, item, dict)
            for index, item in enumerate(self._typed(name, list) or ())
        ]
        return [
            list_reader.reader_at(index, item)
            for index, item in enumerate(items)
            if item is not None
        ]

    def text(
        self, name: str, *, default: str = "", choices: Collection[str] = (), required: bool = False
    ) -> str:
        """Read a string, one of `choices` if given; reports a missing one if `required`."""
        value = self._typed(name, str) or ""
        if required and self.value(name) in EMPTY_VALUES:
            self.report_missing(name)
        if value and choices and value not in choices:
            possible = ", ".join(f"`{choice}`" for choice in choices)
            self.report(
                "flux.choice", name, f"cannot be `{sanitize(value)}`", fix=f"use one of {possible}"
            )
            return default
        return value or default

    def flag(self, name: str, *, required: bool = False) -> bool:
        if required and not self.has(name):
            self.report_missing(name)
        return self._typed(name, bool) or False

    def number(self, name: str) -> int:
        return self._typed(name, int) or 0

    def string_list(self, name: str) -> tuple[str, ...]:
        """Read a list of strings."""
        list_reader = self.reader_at(name, {})
        items = (
            list_reader.check(index, item, str)
            for index, item in enumerate(self._typed(name, list) or ())
        )
        return tuple(item for item in items if item is not None)

    def string_map(self, name: str) -> dict[str, str]:
        """Read a mapping of strings."""
        reader = self.child(name)
        items = ((key, reader.check(key, value, str)) for key, value in reader.body.items())
        return {key: value for key, value in items if value is not None}

    def duration(self, name: str, *, required: bool = False) -> Ms | None:
        """Read a duration in Flux syntax; None if it is missing or invalid."""
        value = self.text(name, required=required)
        if not value:
            return None
        try:
            return parse_duration(value if _DURATION.fullmatch(value) else "")
        except ValueError as error:
            fix = "write a duration with the units ms, s, m or h, such as `1m30s`"
            self.report("flux.duration", name, f"is `{sanitize(value)}`: {error}", fix=fix)
            return None

    def tree_path(self, name: str) -> str:
        """Read a path like Flux: relative to the root of the tree, and never outside of it."""
        value = self.text(name)
        normalized = posixpath.normpath(f"/{value}").strip("/") or "."
        if posixpath.normpath(value or ".").split("/")[0] == "..":
            self.report(
                "flux.path",
                name,
                "is outside its source",
                severity=Severity.WARNING,
                why=f"Flux stops at the root and uses `{sanitize(normalized)}`",
                fix="write a path relative to the root of the source",
            )
        return normalized

    def report_unsupported(self, fields: Mapping[str, str], defaults: Mapping[str, Json]) -> None:
        """Report fields that have no effect here, each with the behavior instead."""
        for path, behavior in fields.items():
            *parents, name = path.split(".")
            reader = self
            for parent in parents:
                reader = reader.child(parent)
            value = reader.value(name)
            if value not in EMPTY_VALUES and value != defaults.get(path, False):
                reader.report_unsupported_field(name, behavior)

    def report_unsupported_field(
        self, name: str, behavior: str, severity: Severity = Severity.WARNING
    ) -> None:
        why = "Flux supports the field; a rollout or simulation by Tidegate does not"
        self.report(
            "flux.unsupported", name, f"is not supported: {behavior}", severity=severity, why=why
        )

    def report_ignored(
        self,
        names: Iterable[str],
        why: str,
        fix: str = "",
        severity: Severity = Severity.WARNING,
    ) -> None:
        """Report fields that Flux itself ignores."""
        for name in names:
            if self.value(name) not in EMPTY_VALUES:
                self.report(
                    "flux.ignored",
                    name,
                    "has no effect",
                    severity=severity,
                    why=why,
                    fix=fix,
                    cause=self.location(name).field,
                )

    def check(self, name: str | int, value: Json, expected: type[_Value]) -> _Value | None:
        """Return the value if it has the expected type; else report it and return None."""
        if value is None or type(value) is expected:
            return value
        type_name = _TYPE_NAMES[expected]
        self.report("flux.type", name, f"is not {type_name}", fix=f"write {type_name}")
        return None

    def reader_at(self, name: str | int, body: dict[str, Json]) -> FieldReader:
        return FieldReader(body, self._location, (*self._path, name), self.findings)

    def _typed(self, name: str, expected: type[_Value]) -> _Value | None:
        return self.check(name, self.body.get(name), expected)

    def report_missing(self, name: str) -> None:
        """Report a missing required field."""
        self.report("flux.required", name, "is missing", fix=f"add `{name}`")


class FluxResource(msgspec.Struct, frozen=True):
    """Flux resource: its kind, name, namespace, location and spec."""

    kind: Kind
    name: str
    namespace: str
    location: Location
    spec: FieldReader

    @property
    def is_old(self) -> bool:
        """Whether its API version is older than the first stable one."""
        return self.kind.version not in STABLE_VERSIONS

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Unique findings: some fields are read twice."""
        return tuple(dict.fromkeys(self.spec.findings))


def open_resource(
    document: Document, namespace: str, served: Collection[str] = STABLE_VERSIONS
) -> FluxResource:
    """Open the resource of a document; `namespace` is used if the resource has none.

    `served`: the API versions of its kind that Flux serves today.
    """
    body, location = document.body, document.location
    kind = object_kind(body)
    root = FieldReader(body, location, (), [])
    name = root.child("metadata").text("name", required=True)
    if kind.version not in served and (kind.version in REMOVED_IN or ALPHA in kind.version):
        since = f"since {REMOVED_IN[kind.version]}" if kind.version in REMOVED_IN else "any more"
        root.report(
            "flux.version",
            "apiVersion",
            f"is `{sanitize(kind.api_version)}`, which Flux does not serve {since}",
            severity=Severity.WARNING,
            why="a cluster with a current Flux does not serve this version",
            fix="use v2 for a HelmRelease and v1 for other kinds, or run `flux migrate`",
            cause=REMOVED_IN.get(kind.version, ""),
        )
    resource_namespace = get_text(get_mapping(body, "metadata"), "namespace", default=namespace)
    return FluxResource(kind, name, resource_namespace, location, root.child("spec"))
