"""A plain unit: a directory or a stream of manifests, with Argo CD's or Helm's annotations.

Documents in, a wanted unit out. Knows waves, hooks and options; knows no files and no cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from tidegate.dialect.hooks import Hook, HookType, read_hook
from tidegate.dialect.options import Body, notes_of, read_handling
from tidegate.documents import Document
from tidegate.errors import DialectError, Place
from tidegate.model.manifest import Manifest, Phase, WantedUnit
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.plan import PlannedUnit
from tidegate.model.reading import mapping, text

WAVE = "argocd.argoproj.io/sync-wave"
WEIGHT = "helm.sh/hook-weight"
UNIT = "tidegate.dev/unit"
WHOLE = re.compile(r"[+-]?[0-9]+")
PHASES = {
    HookType.PRE_SYNC: Phase.PRE_SYNC,
    HookType.SYNC: Phase.SYNC,
    HookType.POST_SYNC: Phase.POST_SYNC,
    HookType.SYNC_FAIL: Phase.SYNC_FAIL,
}
Scope = Callable[[Kind], bool]
"""Whether a kind has namespaces."""


def read_unit(
    documents: Iterable[Document],
    unit: PlannedUnit,
    *,
    namespace: str,
    is_namespaced: Scope,
    ignores_waves: bool = False,
) -> WantedUnit:
    """Everything the documents ask for, marked as the unit's own."""
    synced: list[Manifest] = []
    ends: dict[HookType, list[Manifest]] = {HookType.PRE_DELETE: [], HookType.POST_DELETE: []}
    for document in documents:
        body = document.body
        hook = read_hook(body)
        if hook is not None and hook.is_skipped:
            continue
        wave = 0 if ignores_waves else wave_of(document)
        made = _manifest(document, unit, wave, namespace=namespace, is_namespaced=is_namespaced)
        if hook is None:
            synced.append(made)
            continue
        for kind in hook.types:
            if kind in ends:
                ends[kind].append(_as_hook(made, hook))
            elif kind in PHASES:
                phase = PHASES[kind]
                synced.append(msgspec.structs.replace(_as_hook(made, hook), phase=phase))
    return WantedUnit(
        unit=unit,
        manifests=tuple(synced),
        before_deletion=tuple(ends[HookType.PRE_DELETE]),
        after_deletion=tuple(ends[HookType.POST_DELETE]),
    )


def wave_of(document: Document) -> int:
    """The wave an object asks for; Helm's weight counts where Argo CD's annotation is absent."""
    notes = notes_of(document.body)
    for name in (WAVE, WEIGHT):
        said = notes.get(name)
        if said is None:
            continue
        if not WHOLE.fullmatch(said):
            problem = f"`{name}` is `{said}`, which is not a whole number"
            where = Place(document.place.name, document.place.line, field="metadata.annotations")
            hint = 'write a number in quotes, such as "-1"'
            raise DialectError("dialect.wave", problem, where=where, hint=hint)
        return int(said)
    return 0


def _manifest(
    document: Document, unit: PlannedUnit, wave: int, *, namespace: str, is_namespaced: Scope
) -> Manifest:
    body = document.body
    kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
    name = text(body, "metadata", "name") or text(body, "metadata", "generateName")
    if not kind.name or not kind.version or not name:
        problem = "this is not an object: it needs apiVersion, kind and metadata.name"
        raise DialectError("dialect.incomplete", problem, where=document.place)
    inside = text(body, "metadata", "namespace") or namespace if is_namespaced(kind) else ""
    is_definition = kind.name == "CustomResourceDefinition"
    defines = (text(body, "spec", "group"), text(body, "spec", "names", "kind"))
    return Manifest(
        ref=Ref(kind, inside, name),
        body=msgspec.json.encode(_marked(body, unit.name, inside)),
        origin=str(document.place),
        wave=wave,
        handling=read_handling(body),
        defines=defines if is_definition else ("", ""),
    )


def _marked(body: Body, unit: str, namespace: str) -> Body:
    """The body with its namespace, and with the name of its unit."""
    metadata = {key: part for key, part in mapping(body, "metadata").items() if key != "namespace"}
    notes: dict[str, Json] = {**mapping(metadata, "annotations"), UNIT: unit}
    if namespace:
        metadata["namespace"] = namespace
    return {**body, "metadata": {**metadata, "annotations": notes}}


def _as_hook(manifest: Manifest, hook: Hook) -> Manifest:
    return msgspec.structs.replace(manifest, hook=hook.policies)
