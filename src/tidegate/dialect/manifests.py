"""What the documents of a unit ask for, by the words of its dialect.

Documents in, manifests out. Argo CD's and Helm's annotations count where waves order a unit, and
Helm's alone where Helm's order does; where stages do, they are notes like any other, as Flux reads
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, repeat
from posixpath import normpath

import msgspec

from tidegate.dialect.argo.hooks import End, Hook, as_helm_reads, read_hook
from tidegate.dialect.argo.options import Body, read_handling
from tidegate.dialect.argo.waves import wave_of
from tidegate.dialect.flux.notes import deed_of, read_notes
from tidegate.dialect.helm.hooks import narrowed
from tidegate.dialect.helm.marks import release_marks
from tidegate.dialect.tracking import marks_of
from tidegate.documents import Document, FieldPath
from tidegate.errors import DialectError, Place
from tidegate.model.helm_order import is_crd_path
from tidegate.model.ledger import CrdPolicy
from tidegate.model.manifest import Manifest, Manifests, Phase
from tidegate.model.objects import Kind, Ref, identity
from tidegate.model.plan import Deed
from tidegate.model.policy import Handling, Order, Policy
from tidegate.model.reading import mapping, text
from tidegate.model.unit import Unit

NAMESPACE = Kind("", "v1", "Namespace")
DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
JOB = ("batch", "Job")
RUN = frozenset({JOB, ("", "Pod")})
"""What has an end; of Helm's hooks nothing else is waited for."""
Scope = Callable[[Kind], bool | None]
"""Whether a kind has namespaces; None where nobody knows."""


def read_manifests(
    unit: Unit,
    documents: Iterable[Document],
    is_namespaced: Scope,
    hidden: Sequence[tuple[FieldPath, ...]] = (),
) -> Manifests:
    """Everything the documents ask for. Raises what is wrong with one of them, or with several."""
    found, errors = read_sound_manifests(unit, documents, is_namespaced, hidden)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("several objects cannot be read", errors)
    return found


def read_sound_manifests(
    unit: Unit,
    documents: Iterable[Document],
    is_namespaced: Scope,
    hidden: Sequence[tuple[FieldPath, ...]] = (),
) -> tuple[Manifests, list[DialectError]]:
    """Everything the documents ask for, marked as the unit's own, and what is wrong with others.

    `hidden`: for each document, the fields with values that must not be shown.
    """
    reading = _Reading(unit, is_namespaced)
    for document, fields in zip(documents, chain(hidden, repeat(())), strict=False):
        reading.take(document, fields)
    manifests, namespace = tuple(reading.manifests), unit.destination.namespace
    if unit.policy.creates_namespace and namespace:
        manifests = _with_namespace(manifests, namespace, unit.policy)
    found = Manifests(
        unit=unit,
        manifests=manifests,
        before_deletion=tuple(reading.ends[End.PRE_DELETE]),
        after_deletion=tuple(reading.ends[End.POST_DELETE]),
    )
    return found, reading.errors


class _Reading:
    """Documents on their way to becoming a unit."""

    def __init__(self, unit: Unit, is_namespaced: Scope) -> None:
        self.manifests: list[Manifest] = []
        self.ends: dict[End, list[Manifest]] = {end: [] for end in End}
        self._unit = unit
        self._policy = unit.policy
        self._is_namespaced = is_namespaced
        self._seen: dict[tuple[str, str, str, str], Place] = {}
        self.errors: list[DialectError] = []

    def take(self, document: Document, hidden: tuple[FieldPath, ...]) -> None:
        hook = self._hook(document)
        if hook is not None and not hook.phases and not hook.ends:
            return
        try:
            made = self._manifest(document, hook, hidden)
        except DialectError as error:
            self.errors.append(error)
            return
        if hook is None:
            self.manifests.append(made)
            return
        self.manifests += [msgspec.structs.replace(made, phase=phase) for phase in hook.phases]
        for end in hook.ends:
            self.ends[end].append(made)

    def _hook(self, document: Document) -> Hook | None:
        """When it is run; of a release, for what is about to be done to that."""
        if self._policy.order is Order.STAGES:
            return None
        hook, terms = read_hook(self._heard(document).body), self._policy.release
        return hook if hook is None or terms is None else narrowed(hook, document.body, terms)

    def _deed(self, document: Document, *, ground: bool) -> Deed:
        terms = self._policy.release
        if ground and terms is not None and terms.acting.crds is CrdPolicy.CREATE:
            return Deed.CREATE
        return deed_of(document.body) if self._policy.order is Order.STAGES else Deed.APPLY

    def _is_awaited(self, ref: Ref, hook: Hook | None) -> bool:
        """Helm waits for hooks that run, and may be told not to wait for Jobs."""
        terms, kind = self._policy.release, (ref.kind.group, ref.kind.name)
        if terms is None:
            return True
        if hook is not None:
            return kind in RUN
        return kind != JOB or terms.acting.waits_for_jobs

    def _manifest(
        self, document: Document, hook: Hook | None, hidden: tuple[FieldPath, ...]
    ) -> Manifest:
        body = document.body
        ref = self._ref(document, hook)
        is_definition = (ref.kind.group, ref.kind.name) == DEFINITION
        is_marked = not is_definition or self._policy.order is Order.STAGES
        defines = (text(body, "spec", "group"), text(body, "spec", "names", "kind"))
        ground = is_definition and self._policy.release is not None
        ground = ground and is_crd_path(self._inside_chart(document.place.name))
        return Manifest(
            ref=ref,
            body=msgspec.json.encode(self._marked(body, ref, hook, is_marked=is_marked)),
            origin=str(document.place),
            wave=self._wave(document, hook),
            hook=hook.policies if hook else None,
            handling=self._handling(document),
            defines=defines if is_definition else ("", ""),
            deed=self._deed(document, ground=ground),
            gates=self._is_awaited(ref, hook),
            ground=ground,
            hidden=hidden,
        )

    def _inside_chart(self, name: str) -> str:
        """A file of the unit's chart, without what leads to the chart."""
        inside = name.rpartition("//")[2]
        charts = (f"{normpath(one.path.lstrip('/'))}/" for one in self._unit.sources)
        return next((inside.removeprefix(one) for one in charts if inside.startswith(one)), inside)

    def _marked(self, body: Body, ref: Ref, hook: Hook | None, *, is_marked: bool) -> Body:
        """The body with what says whose it is; hooks of Helm's do not say of which release."""
        marked = _marked(body, self._unit if is_marked else None, ref)
        terms = self._policy.release
        if terms is None or hook is not None or not is_marked:
            return marked
        return with_marks(marked, *release_marks(terms))

    def _heard(self, document: Document) -> Document:
        """The document with the annotations that count for its unit."""
        if self._policy.order is not Order.HELM:
            return document
        return msgspec.structs.replace(document, body=as_helm_reads(document.body))

    def _wave(self, document: Document, hook: Hook | None) -> int:
        """Waves, or the weights of Helm's hooks."""
        counts = self._policy.order is Order.WAVES or (
            self._policy.order is Order.HELM and hook is not None
        )
        return wave_of(self._heard(document)) if counts else 0

    def _handling(self, document: Document) -> Handling:
        defaults = self._policy.handling
        if self._policy.order is Order.STAGES:
            return read_notes(document.body, defaults)
        return read_handling(self._heard(document).body, defaults)

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
        inside = text(body, "metadata", "namespace") or self._unit.destination.namespace
        is_namespaced = self._is_namespaced(kind)
        if is_namespaced and not inside:
            problem = (
                f"{kind.name} `{name or start}` has no namespace, nor does its unit give it one"
            )
            hint = "write metadata.namespace, or a namespace for all objects of the unit"
            raise DialectError("dialect.namespace", problem, where=place, hint=hint)
        ref = Ref(kind, "" if is_namespaced is False else inside, name or start)
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


def _marked(body: Body, unit: Unit | None, ref: Ref) -> Body:
    """The body with its namespace, and with the marks of its unit if it has one.

    Definitions have none, as with Argo CD: they are never pruned, and units may share them. Flux
    marks them like all else.
    """
    metadata = {key: part for key, part in mapping(body, "metadata").items() if key != "namespace"}
    if ref.namespace:
        metadata["namespace"] = ref.namespace
    marked = {**body, "metadata": metadata}
    if unit is None:
        return marked
    notes, labels = marks_of(unit.id, unit.policy, ref)
    return with_marks(marked, notes, labels)


def with_marks(body: Body, notes: Mapping[str, str], labels: Mapping[str, str]) -> Body:
    """The body with these annotations and labels."""
    metadata = {**mapping(body, "metadata")}
    for key, marks in (("annotations", notes), ("labels", labels)):
        if marks:
            metadata[key] = {**mapping(metadata, key), **marks}
    return {**body, "metadata": metadata}


def _with_namespace(
    manifests: tuple[Manifest, ...], name: str, policy: Policy
) -> tuple[Manifest, ...]:
    """The manifests with a Namespace for them all, where none of them is that.

    It does not carry the name of the unit: it is nobody's, and stays when the unit goes.
    """
    ref = Ref(NAMESPACE, "", name)
    if any(one.hook is None and one.ref == ref for one in manifests):
        return manifests
    metadata: Body = {"name": name}
    if policy.namespace_labels:
        metadata["labels"] = dict(policy.namespace_labels)
    if policy.namespace_notes:
        metadata["annotations"] = dict(policy.namespace_notes)
    body: Body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    encoded = msgspec.json.encode(body)
    created = Manifest(ref=ref, body=encoded, phase=Phase.PRE_SYNC, deed=Deed.CREATE)
    return (created, *manifests)
