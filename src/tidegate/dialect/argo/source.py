"""One source of an Application: its tree, what is rendered of it, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import normpath

import msgspec

from tidegate.dialect.argo.requests import (
    BLOCKS,
    Body,
    is_set,
    read_details,
    read_request,
    said_tools,
    tell_unplayed,
)
from tidegate.dialect.argo.telling import Telling
from tidegate.documents.document import FieldPath
from tidegate.errors import Place
from tidegate.model.finding import Finding
from tidegate.model.objects import Json, Kind
from tidegate.model.patterns import late
from tidegate.model.reading import text
from tidegate.model.rendering import ArgoBuild
from tidegate.model.source import ChartSource, GitRef, GitSource, OciSource, RefKind, SourceRef
from tidegate.model.unit import UnitSource
from tidegate.schema.dialects import shape_of
from tidegate.schema.shape import Shape, child

APPLICATION = Kind("argoproj.io", "v1alpha1", "Application")
REGISTRY = "oci://"
HEAD = frozenset({"", "HEAD"})
RANGE = late(r".*[*^~<>=|, ].*|(.*\.)?[xX](\..*)?", re.DOTALL)
"""A tag of a registry has none of these signs."""
KEPT = ("chart", "name", "path", "ref", "repoURL", "tagPrefix", "targetRevision")
"""What files in the tree cannot change."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """What a source is told of its Application, and where in it the source stands.

    `namespace` is that of the destination.
    """

    name: str
    where: Place
    namespace: str = ""
    project: str = "default"
    path: FieldPath = ("spec", "source")

    @property
    def has_many(self) -> bool:
        """Whether it stands among others, which may use its files."""
        return "sources" in self.path


def read_source(body: Body, owner: Owner) -> tuple[UnitSource | None, tuple[Finding, ...]]:
    """The source, or None where nothing can be had of it; and what there is to say."""
    telling = Telling(owner.where)
    tell_unplayed(body, owner.path, telling)
    source = _read(body, owner) if _is_whole(body, owner, telling) else None
    return source, telling.findings


def override_source(written: bytes, overrides: Sequence[Body]) -> Body:
    """A source with what `.argocd-source.yaml` and its like say of it, one after another.

    Argo CD patches the JSON and reads it over what was there: so null takes nothing away, except
    among values, and entries of lists keep what a new one at their place does not say.
    """
    source: Body = msgspec.json.decode(written)
    merged: Json = source
    shape = shape_of(APPLICATION, "spec", "source")
    for override in overrides:
        merged = _read_over(merged, _spelled(override, shape), shape)
    found = merged if isinstance(merged, dict) else {}
    kept = {key: source[key] for key in KEPT if key in source}
    return {**{key: one for key, one in found.items() if key not in KEPT}, **kept}


def _spelled(value: Json, shape: Shape | None) -> Json:
    """The value with its keys in their own case: JSON is read by Go, which takes any."""
    if shape is None:
        return value
    if isinstance(value, list) and shape.items is not None:
        return [_spelled(one, shape.items()) for one in value]
    if not isinstance(value, dict) or shape.values is not None:
        return value
    known = {name.lower(): name for name in shape.fields}
    names = {key: known.get(key.lower(), key) for key in value}
    return {names[key]: _spelled(one, child(shape, names[key])) for key, one in value.items()}


def _read_over(old: Json, new: Json, shape: Shape | None) -> Json:
    if shape is not None and shape.is_open:
        return _patched(old, new)
    if new is None:
        return old
    if isinstance(new, list) and isinstance(old, list) and shape and shape.items:
        there = [*old[: len(new)], *[None] * (len(new) - len(old))]
        item = shape.items()
        return [_read_over(was, one, item) for was, one in zip(there, new, strict=True)]
    if isinstance(new, dict) and shape is not None:
        was = old if isinstance(old, dict) else {}
        made = {key: _read_over(was.get(key), one, child(shape, key)) for key, one in new.items()}
        return {**was, **{key: one for key, one in made.items() if one is not None}}
    return new


def _patched(old: Json, new: Json) -> Json:
    """A JSON merge patch."""
    if not isinstance(new, dict):
        return new
    made = dict(old) if isinstance(old, dict) else {}
    for key, one in new.items():
        made.pop(key, None) if one is None else made.update({key: _patched(made.get(key), one)})
    return made


def _read(body: Body, owner: Owner) -> UnitSource:
    path, chart = text(body, "path"), text(body, "chart")
    build = ArgoBuild(
        name=owner.name,
        namespace=owner.namespace,
        project=owner.project,
        repository=text(body, "repoURL"),
        path=path,
        target_revision=text(body, "targetRevision"),
    )
    inside = "." if chart else normpath(path or ".")
    makes = bool(path or chart)
    return UnitSource(
        source=_tree(body, chart),
        request=read_request(body, said_tools(body), build, inside) if makes else None,
        details=read_details(body, build, msgspec.json.encode(body)),
    )


def _tree(body: Body, chart: str) -> SourceRef:
    """An address without a scheme is that of a registry, where a chart is meant.

    Git repositories are taken with their submodules, as Argo CD takes them.
    """
    url, revision = text(body, "repoURL"), text(body, "targetRevision")
    if chart:
        address = url if "://" in url else f"{REGISTRY}{url}"
        shares = is_set(body, "helm", "passCredentials")
        return ChartSource(address.rstrip("/"), chart, revision, shares_credentials=shares)
    if url.startswith(REGISTRY):
        if revision.startswith("sha256:"):
            return OciSource(url, digest=revision)
        is_range = RANGE.fullmatch(revision) is not None
        return OciSource(url, range=revision) if is_range else OciSource(url, tag=revision)
    if revision in HEAD:
        return GitSource(url, submodules=True)
    at = GitRef(RefKind.ANY, revision, text(body, "tagPrefix"))
    return GitSource(url, at, submodules=True)


def _is_whole(body: Body, owner: Owner, telling: Telling) -> bool:
    """Whether something can be fetched and rendered; tells what Argo CD would refuse."""
    if any(not isinstance(body.get(key), str | None) for key in KEPT):
        return False
    path, wanted = text(body, "path"), ("path", "chart", *(["ref"] if owner.has_many else []))
    if not text(body, "repoURL"):
        _tell_lack("`repoURL`", "repoURL", owner, telling)
        return False
    if not any(text(body, key) for key in wanted):
        _tell_lack(" or ".join(f"`{key}`" for key in wanted), "path", owner, telling)
        return False
    if text(body, "chart"):
        _tell_registry(body, owner, telling)
        if not text(body, "targetRevision"):
            _tell_lack("`targetRevision`: it is a chart", "targetRevision", owner, telling)
    elif path.startswith("/") or normpath(path or ".").split("/")[0] == "..":
        said, fix = "`path` leads out of the repository", "write it from the repository's root on"
        telling.error("argo.path", (*owner.path, "path"), said, "Argo CD refuses it", fix)
        return False
    if len(said_tools(body)) > 1:
        blocks = [name for name in BLOCKS if body.get(name) is not None]
        said = f"the source has more than one tool: {' and '.join(f'`{one}`' for one in blocks)}"
        telling.error(
            "argo.tools", owner.path, said, "Argo CD refuses it", "keep one of the blocks"
        )
        return False
    return True


def _tell_lack(lack: str, field: str, owner: Owner, telling: Telling) -> None:
    why = "Argo CD marks the Application as invalid and does not sync it"
    said = f"a source of `{owner.name}` needs {lack}"
    telling.error("argo.source", (*owner.path, field), said, why, f"write `{field}`")


def _tell_registry(body: Body, owner: Owner, telling: Telling) -> None:
    if text(body, "repoURL").startswith(REGISTRY):
        said, fix = f"a registry of charts is written without `{REGISTRY}`", "leave it out"
        why = "Argo CD puts it before the address itself, and finds no chart then"
        telling.warn("argo.registry", (*owner.path, "repoURL"), said, why, fix)
