"""The tree of a unit's source: fetched, or put together of others where its object says so."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.errors import Place, SourceError, foreign
from tidegate.flows.rendering.workshop import Workshop
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, text
from tidegate.model.rendering import FluxDetails
from tidegate.model.source import (
    BucketSource,
    ChartSource,
    DeclaredSource,
    GitSource,
    LocalSource,
    OciSource,
    Portion,
    Revision,
    Snapshot,
    SourceObject,
    SourceRef,
)
from tidegate.model.unit import UnitSource
from tidegate.render.sops.objects import PLACEHOLDER
from tidegate.source import keyring_of_secret
from tidegate.source.discovering import fill_portion, find_directory
from tidegate.source.urls import read_git_url
from tidegate.source.web import origin_of

Data: TypeAlias = Mapping[str, bytes]
FindData: TypeAlias = Callable[[str, str, str], Data | None]
"""The entries of a ConfigMap or Secret, by kind, namespace and name; None where nobody knows it.

Of what no key opens the names are known; placeholders stand for the values.
"""


def data_of(body: dict[str, Json]) -> dict[str, bytes]:
    """The entries of a ConfigMap or Secret, decoded."""
    found = {name: str(one).encode() for name, one in mapping(body, "stringData").items()}
    entries = mapping(body, "data")
    if text(body, "kind") != "Secret":
        return {name: str(one).encode() for name, one in entries.items()}
    for name, one in entries.items():
        try:
            found.setdefault(name, base64.b64decode(str(one), validate=True))
        except ValueError:
            continue  # the server would refuse it
    return found


def opened(entries: Data | None) -> Data | None:
    """Nothing where no key opened what it holds."""
    stands_in = PLACEHOLDER.encode()
    is_locked = entries is not None and any(stands_in in one for one in entries.values())
    return None if is_locked else entries


async def fetch_tree(wanted: UnitSource, workshop: Workshop, find_data: FindData) -> Snapshot:
    """The tree of one source of a unit."""
    details, source = wanted.details, wanted.source
    declared = details.declared if isinstance(details, FluxDetails) else None
    if isinstance(source, LocalSource):
        return Snapshot(source, Revision(), Path(source.path), ())
    if declared is not None:
        return await _of_object(declared, workshop, find_data)
    if isinstance(source, SourceObject):
        raise _nowhere(f"nothing here declares `{source}`", None)
    return await workshop.fetch(source)


async def _of_object(declared: DeclaredSource, workshop: Workshop, find_data: FindData) -> Snapshot:
    """What an object stands for; of trees that are put together, each part is had first."""
    source = declared.source
    if declared.near:
        problem, hint = f"nothing here declares `{declared.id}`", f"did you mean `{declared.near}`?"
        raise SourceError("source.undeclared", problem, hint=hint)
    if declared.problem or isinstance(source, SourceObject):
        raise _nowhere(declared.problem, declared.where)
    if declared.discovery is not None:
        declared = await _discovered(declared, workshop, find_data)
    parts = [(one, await _of_part(one, workshop, find_data)) for one in declared.portions]
    if source is None:
        return _named_after(declared, await workshop.put_together(None, parts), parts)
    home, secret = declared.id.namespace, declared.secret
    entries = opened(find_data("Secret", home, secret)) if secret else None
    name = f"Secret {home}/{secret}"
    keyring = keyring_of_secret(entries, _origin_of(source), name=name) if entries else None
    if isinstance(source, BucketSource):
        return await workshop.fetch(source, None, keyring)  # it knows itself what is left out
    if not parts and not declared.sparse:
        return await workshop.fetch(source, declared.ignore, keyring)
    own = await workshop.fetch(source, None, keyring)
    if declared.sparse:
        own = await workshop.keep_directories(own, declared.sparse, declared.where)
    whole = await workshop.put_together(own, parts) if parts else own
    return await workshop.leave_out(whole, declared.ignore)


async def _of_part(portion: Portion, workshop: Workshop, find_data: FindData) -> Snapshot:
    if portion.declared is None:
        raise _nowhere(f"nothing here declares `{portion.source}`", portion.where)
    return await _of_object(portion.declared, workshop, find_data)


async def _discovered(
    declared: DeclaredSource, workshop: Workshop, find_data: FindData
) -> DeclaredSource:
    """The artifact of the one directory that is meant by its name."""
    for one in (declared, *declared.others):
        if (discovery := one.discovery) is None:
            continue
        if discovery.declared is None:
            raise _nowhere(f"nothing here declares `{discovery.source}`", discovery.where)
        tree = await _of_object(discovery.declared, workshop, find_data)
        values = find_directory(discovery, tree.files, declared.id.name)
        if values is not None:
            portions = tuple(fill_portion(each, values) for each in one.portions)
            return msgspec.structs.replace(one, portions=portions, discovery=None, others=())
    pattern = declared.discovery.pattern if declared.discovery else ""
    problem = f"no directory that fits `{foreign(pattern)}` makes `{declared.id.name}`"
    raise _nowhere(problem, declared.where)


def _named_after(
    declared: DeclaredSource, made: Snapshot, parts: list[tuple[Portion, Snapshot]]
) -> Snapshot:
    """With the revision of the source that it goes by, where it does."""
    named = (tree for one, tree in parts if one.source == declared.named_after)
    first = next(named, None)
    return msgspec.structs.replace(made, revision=first.revision) if first else made


def _nowhere(problem: str, where: Place | None) -> SourceError:
    hint = "add that object to the repository, or map its address to a directory"
    return SourceError("source.object", problem, where=where, hint=hint)


def _origin_of(source: SourceRef) -> str:
    """Who is asked for a source: scheme, host, and port where it is not the usual one."""
    match source:
        case GitSource(url):
            return read_git_url(url).origin
        case ChartSource(repository=address) | OciSource(url=address):
            return origin_of(address.replace("oci://", "http://" if source.plain else "https://"))
        case BucketSource(url=address):
            return origin_of(address)
        case LocalSource():
            return ""
