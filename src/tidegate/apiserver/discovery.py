"""API discovery: the served kinds, by path and by name, and the discovery documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.apiserver.scale import SCALABLE_KINDS, SCALE, SCALE_KIND
from tidegate.documents import read_documents
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind, ServedKind

NAMES_FILE = Path(__file__).with_name("names.yaml")
AGGREGATED_CONTENT_TYPE = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
AGGREGATED_VERSIONS = ("v2", "v2beta1")
"""Versions of aggregated discovery, the newest first."""
SUBRESOURCE_VERBS = {"log": ("get",), "binding": ("create",), "eviction": ("create",)}
CHANGE_VERBS = ("get", "patch", "update")


class KindNames(msgspec.Struct, frozen=True):
    """Further names of a kind: short names, categories and the singular."""

    short: tuple[str, ...] = ()
    """Short names, such as `po`."""
    categories: tuple[str, ...] = ()
    """Categories, such as `all`."""
    singular: str = ""
    """The singular, such as `pod`."""


class PrinterColumn(NamedTuple):
    """An `additionalPrinterColumns` entry of a CRD."""

    name: str
    """The title of the column."""
    type: str
    """The OpenAPI type."""
    path: str
    """The JSONPath of the value."""
    priority: int = 0
    """0 for columns that are always shown."""
    format: str = ""
    """The OpenAPI format."""


NO_NAMES = KindNames()


@cache
def _builtin_names() -> Mapping[str, KindNames]:
    body = read_documents(NAMES_FILE.read_bytes(), NAMES_FILE.name)[0].body
    return msgspec.convert(body, dict[str, KindNames])


@dataclass(frozen=True)
class ServedKinds:
    """The kinds that a cluster serves now."""

    kinds: tuple[ServedKind, ...]
    """The kinds, in the order of the server."""
    names: Mapping[str, KindNames] = field(default_factory=_builtin_names)
    """Further names by kind."""
    columns: Mapping[Kind, tuple[PrinterColumn, ...]] = field(default_factory=dict)
    """Printer columns of custom kinds."""

    @classmethod
    def from_definitions(
        cls, kinds: tuple[ServedKind, ...], definitions: Iterable[JsonObject]
    ) -> ServedKinds:
        """Return the kinds, with the names and printer columns of the CRDs."""
        names, columns = dict(_builtin_names()), dict[Kind, tuple[PrinterColumn, ...]]()
        for definition in definitions:
            names[get_text(definition, "metadata", "name")] = _names_from_definition(definition)
            columns |= _columns_from_definition(definition)
        return cls(kinds, names, columns)

    def find(self, group: str, version: str, plural: str) -> ServedKind | None:
        """Return the kind of a group, version and plural. Returns None if it is not served."""
        for served in self.kinds:
            kind = served.kind
            if (kind.group, kind.version, served.plural) == (group, version, plural):
                return served
        return None

    def groups(self) -> dict[str, dict[str, list[ServedKind]]]:
        """Return the kinds by group and version, in the server's order."""
        groups: dict[str, dict[str, list[ServedKind]]] = {}
        for served in self.kinds:
            groups.setdefault(served.kind.group, {}).setdefault(served.kind.version, []).append(
                served
            )
        return groups

    def get_names(self, served: ServedKind) -> KindNames:
        """Return the further names of a kind."""
        return self.names.get(f"{served.plural}.{served.kind.group}".rstrip("."), NO_NAMES)


def build_aggregated_discovery(
    served_kinds: ServedKinds, api_version_name: str, *, core: bool
) -> JsonObject:
    """Return all kinds in one document (aggregated discovery), as kubectl requests since 1.27.

    Like `calculateAPIGroupsLocked` in `pkg/endpoints/discovery/aggregated/handler.go` of
    k8s.io/apiserver 0.36.4.
    """
    items: list[Json] = []
    for group, versions in served_kinds.groups().items():
        if core is not bool(group):
            group_versions: Json = [
                {
                    "version": version,
                    "resources": [_build_resource(served, served_kinds) for served in kinds],
                    "freshness": "Current",
                }
                for version, kinds in versions.items()
            ]
            items.append({"metadata": {"name": group} if group else {}, "versions": group_versions})
    api_version = f"apidiscovery.k8s.io/{api_version_name}"
    header: JsonObject = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": api_version,
        "metadata": {},
    }
    return {**header, "items": items}


def _build_resource(served: ServedKind, served_kinds: ServedKinds) -> Json:
    names, kind = served_kinds.get_names(served), _response_kind(served.kind)
    body: JsonObject = {
        "resource": served.plural,
        "responseKind": kind,
        "scope": "Namespaced" if served.namespaced else "Cluster",
        "singularResource": names.singular or served.kind.name.lower(),
        "verbs": [*served.verbs],
    }
    if names.short:
        body["shortNames"] = [*names.short]
    if names.categories:
        body["categories"] = [*names.categories]
    subresources: list[Json] = [
        {
            "subresource": subresource,
            "responseKind": kind,
            "verbs": [*_subresource_verbs(subresource)],
        }
        for subresource in served.subresources
    ]
    if served.kind in SCALABLE_KINDS:
        scale = _response_kind(SCALE_KIND)
        subresources.append({"subresource": SCALE, "responseKind": scale, "verbs": [*CHANGE_VERBS]})
    return {**body, "subresources": subresources} if subresources else body


def _response_kind(kind: Kind) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.name}


def _subresource_verbs(subresource: str) -> tuple[str, ...]:
    return SUBRESOURCE_VERBS.get(subresource, CHANGE_VERBS)


def build_group_list(served_kinds: ServedKinds) -> JsonObject:
    """Return the groups alone, as older clients request.

    Like `ServeHTTP` in `pkg/endpoints/discovery/root.go` of k8s.io/apiserver 0.36.4.
    """
    groups: list[Json] = [
        _build_group_fields(group, [*versions])
        for group, versions in served_kinds.groups().items()
        if group
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _build_group_fields(group: str, versions: list[str]) -> JsonObject:
    group_versions: list[Json] = [
        {"groupVersion": f"{group}/{version}", "version": version} for version in versions
    ]
    return {"name": group, "versions": group_versions, "preferredVersion": group_versions[0]}


def build_resource_list(served_kinds: ServedKinds, group: str, version: str) -> JsonObject | None:
    """Return the kinds of one group version, as older clients request.

    Returns None if it is not served.

    Like `ServeHTTP` in `pkg/endpoints/discovery/version.go` of k8s.io/apiserver 0.36.4.
    """
    kinds = served_kinds.groups().get(group, {}).get(version)
    if kinds is None:
        return None
    resources: list[Json] = []
    for served in kinds:
        names = served_kinds.get_names(served)
        header: JsonObject = {
            "name": served.plural,
            "singularName": names.singular or served.kind.name.lower(),
            "namespaced": served.namespaced,
            "kind": served.kind.name,
        }
        extra_names: JsonObject = {"shortNames": [*names.short], "categories": [*names.categories]}
        resources.append(
            {**header, "verbs": [*served.verbs], **{k: v for k, v in extra_names.items() if v}}
        )
        resources += [
            {
                **header,
                "name": f"{served.plural}/{subresource}",
                "singularName": "",
                "verbs": [*_subresource_verbs(subresource)],
            }
            for subresource in served.subresources
        ]
        if served.kind in SCALABLE_KINDS:
            scale = {
                "group": SCALE_KIND.group,
                "version": SCALE_KIND.version,
                "kind": SCALE_KIND.name,
            }
            name = f"{served.plural}/{SCALE}"
            resources.append({**header, **scale, "name": name, "verbs": [*CHANGE_VERBS]})
    api_version = f"{group}/{version}".lstrip("/")
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version,
        "resources": resources,
    }


def _names_from_definition(definition: JsonObject) -> KindNames:
    names = get_mapping(definition, "spec", "names")
    return KindNames(
        short=tuple(map(str, get_list(names, "shortNames"))),
        categories=tuple(map(str, get_list(names, "categories"))),
        singular=get_text(names, "singular"),
    )


def _columns_from_definition(definition: JsonObject) -> dict[Kind, tuple[PrinterColumn, ...]]:
    spec = get_mapping(definition, "spec")
    group, name = get_text(spec, "group"), get_text(spec, "names", "kind")
    return {
        Kind(group, get_text(version, "name"), name): tuple(
            PrinterColumn(
                get_text(column, "name"),
                get_text(column, "type"),
                get_text(column, "jsonPath"),
                priority if isinstance(priority := column.get("priority"), int) else 0,
                get_text(column, "format"),
            )
            for column in get_mappings(version, "additionalPrinterColumns")
        )
        for version in get_mappings(spec, "versions")
    }
