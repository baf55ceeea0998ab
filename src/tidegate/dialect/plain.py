"""A plain unit: a directory or a stream of manifests, with Argo CD's or Helm's annotations.

Documents in, a wanted unit out. Knows waves, hooks and options; knows no files and no cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from tidegate.dialect.hooks import End, Hook, read_hook
from tidegate.dialect.living import UNIT
from tidegate.dialect.options import CREATES_NAMESPACE, Body, read_handling
from tidegate.dialect.waves import wave_of
from tidegate.documents import Document
from tidegate.errors import DialectError, Place
from tidegate.model.manifest import Manifest, Phase, WantedUnit
from tidegate.model.objects import Json, Kind, Ref, identity
from tidegate.model.plan import Deed, PlannedUnit
from tidegate.model.reading import mapping, text

NAMESPACE = Kind("", "v1", "Namespace")
DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
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
    """Everything the documents ask for, marked as the unit's own.

    Raises a DialectError for what is wrong with one of them, or a group of these.
    """
    reading = _Reading(unit, namespace, is_namespaced, ignores_waves=ignores_waves)
    for document in documents:
        reading.take(document)
    reading.check()
    manifests = tuple(reading.manifests)
    if CREATES_NAMESPACE in unit.options and namespace:
        manifests = _with_namespace(manifests, namespace)
    return WantedUnit(
        unit=unit,
        namespace=namespace,
        manifests=manifests,
        before_deletion=tuple(reading.ends[End.PRE_DELETE]),
        after_deletion=tuple(reading.ends[End.POST_DELETE]),
    )


class _Reading:
    """Documents on their way to becoming a unit."""

    def __init__(
        self, unit: PlannedUnit, namespace: str, is_namespaced: Scope, *, ignores_waves: bool
    ) -> None:
        self.manifests: list[Manifest] = []
        self.ends: dict[End, list[Manifest]] = {end: [] for end in End}
        self._unit = unit
        self._namespace = namespace
        self._is_namespaced = is_namespaced
        self._ignores_waves = ignores_waves
        self._seen: dict[tuple[str, str, str, str], Place] = {}
        self._errors: list[DialectError] = []

    def take(self, document: Document) -> None:
        hook = read_hook(document.body)
        if hook is not None and not hook.phases and not hook.ends:
            return
        try:
            made = self._manifest(document, hook)
        except DialectError as error:
            self._errors.append(error)
            return
        if hook is None:
            self.manifests.append(made)
            return
        self.manifests += [msgspec.structs.replace(made, phase=phase) for phase in hook.phases]
        for end in hook.ends:
            self.ends[end].append(made)

    def check(self) -> None:
        """Raise what was wrong: nothing, one thing, or all of it together."""
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            raise ExceptionGroup("several objects cannot be read", self._errors)

    def _manifest(self, document: Document, hook: Hook | None) -> Manifest:
        body = document.body
        ref = self._ref(document, hook)
        is_definition = (ref.kind.group, ref.kind.name) == DEFINITION
        owner = "" if is_definition else self._unit.name
        defines = (text(body, "spec", "group"), text(body, "spec", "names", "kind"))
        return Manifest(
            ref=ref,
            body=msgspec.json.encode(_marked(body, owner, ref.namespace)),
            origin=str(document.place),
            wave=0 if self._ignores_waves else wave_of(document),
            hook=hook.policies if hook else None,
            handling=read_handling(body, self._unit.options),
            defines=defines if is_definition else ("", ""),
        )

    def _ref(self, document: Document, hook: Hook | None) -> Ref:
        """Which object it is; a hook may have only the beginning of a name."""
        body, place = document.body, document.place
        kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
        name = text(body, "metadata", "name")
        start = text(body, "metadata", "generateName")
        if not kind.name or not kind.version or not (name or start):
            problem = "this is not an object: it needs apiVersion, kind and metadata.name"
            raise DialectError("dialect.incomplete", problem, where=place)
        if not name and hook is None:
            problem = f"{kind.name} `{start}` has only the beginning of a name"
            hint = "write metadata.name; only hooks may have generateName alone"
            raise DialectError("dialect.nameless", problem, where=place, hint=hint)
        inside = text(body, "metadata", "namespace") or self._namespace
        ref = Ref(kind, inside if self._is_namespaced(kind) else "", name or start)
        if name:
            self._meet(ref, place)
        return ref

    def _meet(self, ref: Ref, place: Place) -> None:
        """Refuse an object that was there already, in whichever version of its kind."""
        first = self._seen.get(identity(ref))
        if first is not None:
            hint = f"the first one is at {first}; remove one of them, or give it another name"
            raise DialectError("dialect.twice", f"{ref} is there twice", where=place, hint=hint)
        self._seen[identity(ref)] = place


def _marked(body: Body, unit: str, namespace: str) -> Body:
    """The body with its namespace, and with the name of its unit if it has one.

    Definitions have none, as with Argo CD: they are never pruned, and units may share them.
    """
    metadata = {key: part for key, part in mapping(body, "metadata").items() if key != "namespace"}
    if namespace:
        metadata["namespace"] = namespace
    if unit:
        notes: dict[str, Json] = {**mapping(metadata, "annotations"), UNIT: unit}
        metadata["annotations"] = notes
    return {**body, "metadata": metadata}


def _with_namespace(manifests: tuple[Manifest, ...], name: str) -> tuple[Manifest, ...]:
    """The manifests with a Namespace for them all, where none of them is that.

    It does not carry the name of the unit: it is nobody's, and stays when the unit goes.
    """
    ref = Ref(NAMESPACE, "", name)
    if any(one.hook is None and one.ref == ref for one in manifests):
        return manifests
    body: Body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    encoded = msgspec.json.encode(body)
    created = Manifest(ref=ref, body=encoded, phase=Phase.PRE_SYNC, deed=Deed.CREATE)
    return (created, *manifests)
