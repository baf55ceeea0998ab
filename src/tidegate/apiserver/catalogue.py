"""Which kinds are served, by path and by name, and discovery: how clients learn of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.apiserver.scaling import RESPONSE, SCALE, SCALED
from tidegate.documents import read
from tidegate.model.objects import Json, Kind, Served
from tidegate.model.reading import listed, mapping, mappings, text

Body = dict[str, Json]
FILE = Path(__file__).with_name("names.yaml")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
FORMS = ("v2", "v2beta1")
"""Of aggregated discovery, the newest first."""
SUBRESOURCE_VERBS = {"log": ("get",), "binding": ("create",), "eviction": ("create",)}
CHANGING = ("get", "patch", "update")


class KindNames(msgspec.Struct, frozen=True):
    """What a kind is called besides its name."""

    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    singular: str = ""


class Column(NamedTuple):
    """A column that a CRD asks for."""

    name: str
    type: str
    path: str
    priority: int = 0
    format: str = ""


NO_NAMES = KindNames()


@cache
def _known_names() -> Mapping[str, KindNames]:
    body = read(FILE.read_bytes(), FILE.name)[0].body
    return msgspec.convert(body, dict[str, KindNames])


@dataclass(frozen=True)
class Serving:
    """The kinds that a cluster serves now."""

    kinds: tuple[Served, ...]
    names: Mapping[str, KindNames] = field(default_factory=_known_names)
    columns: Mapping[Kind, tuple[Column, ...]] = field(default_factory=dict)
    """Those of custom kinds."""

    @classmethod
    def of(cls, kinds: tuple[Served, ...], definitions: Iterable[Body]) -> Serving:
        """`definitions`: the CRDs, which say what their kinds are called and how they are shown."""
        names, columns = dict(_known_names()), dict[Kind, tuple[Column, ...]]()
        for one in definitions:
            names[text(one, "metadata", "name")] = _names_in(one)
            columns |= _columns_in(one)
        return cls(kinds, names, columns)

    def find(self, group: str, version: str, plural: str) -> Served | None:
        for one in self.kinds:
            kind = one.kind
            if (kind.group, kind.version, one.plural) == (group, version, plural):
                return one
        return None

    def groups(self) -> dict[str, dict[str, list[Served]]]:
        """By group and version, in the server's own order."""
        found: dict[str, dict[str, list[Served]]] = {}
        for one in self.kinds:
            found.setdefault(one.kind.group, {}).setdefault(one.kind.version, []).append(one)
        return found

    def named(self, served: Served) -> KindNames:
        return self.names.get(f"{served.plural}.{served.kind.group}".rstrip("."), NO_NAMES)


def aggregated(serving: Serving, form: str, *, core: bool) -> Body:
    """Everything in one answer, as kubectl asks since 1.27."""
    items: list[Json] = []
    for group, versions in serving.groups().items():
        if core is not bool(group):
            shown: Json = [
                {
                    "version": version,
                    "resources": [_discovered(one, serving) for one in kinds],
                    "freshness": "Current",
                }
                for version, kinds in versions.items()
            ]
            items.append({"metadata": {"name": group} if group else {}, "versions": shown})
    api_version = f"apidiscovery.k8s.io/{form}"
    head: Body = {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}}
    return {**head, "items": items}


def _discovered(one: Served, serving: Serving) -> Json:
    names, kind = serving.named(one), _response_kind(one.kind)
    body: Body = {
        "resource": one.plural,
        "responseKind": kind,
        "scope": "Namespaced" if one.namespaced else "Cluster",
        "singularResource": names.singular or one.kind.name.lower(),
        "verbs": [*one.verbs],
    }
    if names.short:
        body["shortNames"] = [*names.short]
    if names.categories:
        body["categories"] = [*names.categories]
    subresources: list[Json] = [
        {"subresource": sub, "responseKind": kind, "verbs": [*_verbs_of(sub)]}
        for sub in one.subresources
    ]
    if one.kind in SCALED:
        scale = _response_kind(RESPONSE)
        subresources.append({"subresource": SCALE, "responseKind": scale, "verbs": [*CHANGING]})
    return {**body, "subresources": subresources} if subresources else body


def _response_kind(kind: Kind) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.name}


def _verbs_of(subresource: str) -> tuple[str, ...]:
    return SUBRESOURCE_VERBS.get(subresource, CHANGING)


def group_list(serving: Serving) -> Body:
    """The groups alone, as older clients ask."""
    found: list[Json] = [
        _group(group, [*versions]) for group, versions in serving.groups().items() if group
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def one_group(serving: Serving, group: str) -> Body | None:
    versions = serving.groups().get(group)
    head: Body = {"kind": "APIGroup", "apiVersion": "v1"}
    return {**head, **_group(group, [*versions])} if versions else None


def _group(group: str, versions: list[str]) -> Body:
    known: list[Json] = [{"groupVersion": f"{group}/{one}", "version": one} for one in versions]
    return {"name": group, "versions": known, "preferredVersion": known[0]}


def resource_list(serving: Serving, group: str, version: str) -> Body | None:
    """The kinds of one version of a group, as older clients ask."""
    kinds = serving.groups().get(group, {}).get(version)
    if kinds is None:
        return None
    found: list[Json] = []
    for one in kinds:
        names = serving.named(one)
        head: Body = {
            "name": one.plural,
            "singularName": names.singular or one.kind.name.lower(),
            "namespaced": one.namespaced,
            "kind": one.kind.name,
        }
        more: Body = {"shortNames": [*names.short], "categories": [*names.categories]}
        found.append({**head, "verbs": [*one.verbs], **{k: v for k, v in more.items() if v}})
        found += [
            {**head, "name": f"{one.plural}/{sub}", "singularName": "", "verbs": [*_verbs_of(sub)]}
            for sub in one.subresources
        ]
        if one.kind in SCALED:
            scale = {"group": RESPONSE.group, "version": RESPONSE.version, "kind": RESPONSE.name}
            name = f"{one.plural}/{SCALE}"
            found.append({**head, **scale, "name": name, "verbs": [*CHANGING]})
    api_version = f"{group}/{version}".lstrip("/")
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version,
        "resources": found,
    }


def _names_in(definition: Body) -> KindNames:
    names = mapping(definition, "spec", "names")
    return KindNames(
        short=tuple(map(str, listed(names, "shortNames"))),
        categories=tuple(map(str, listed(names, "categories"))),
        singular=text(names, "singular"),
    )


def _columns_in(definition: Body) -> dict[Kind, tuple[Column, ...]]:
    spec = mapping(definition, "spec")
    group, name = text(spec, "group"), text(spec, "names", "kind")
    return {
        Kind(group, text(version, "name"), name): tuple(
            Column(
                text(one, "name"),
                text(one, "type"),
                text(one, "jsonPath"),
                priority if isinstance(priority := one.get("priority"), int) else 0,
                text(one, "format"),
            )
            for one in mappings(version, "additionalPrinterColumns")
        )
        for version in mappings(spec, "versions")
    }
