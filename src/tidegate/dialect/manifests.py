"""Manifests of a unit: its documents, read by the rules of its dialect.

Argo CD's and Helm's annotations count in units ordered by waves, only Helm's in Helm's order, and
neither in stages, like in Flux.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, repeat
from posixpath import normpath

import msgspec

from tidegate.dialect.argo.hooks import DeletionPhase, Hook, read_hook, with_helm_annotations_only
from tidegate.dialect.argo.options import read_argo_options
from tidegate.dialect.argo.waves import manifest_wave
from tidegate.dialect.flux.metadata import item_action, read_flux_options
from tidegate.dialect.helm.hooks import narrow_hook
from tidegate.dialect.ownership.helm import release_metadata
from tidegate.dialect.ownership.tracking import tracking_metadata
from tidegate.documents import Document
from tidegate.errors import DialectError, Location
from tidegate.model.k8s.helm_order import is_crd_path
from tidegate.model.k8s.json_fields import get_mapping, get_text, object_kind
from tidegate.model.k8s.kinds import NAMESPACE
from tidegate.model.k8s.objects import FieldPath, JsonObject, Kind, Ref, versionless_key
from tidegate.model.plans.manifest import Manifest, Manifests, Phase
from tidegate.model.plans.plan import ItemAction
from tidegate.model.units.policy import ObjectOptions, Order, Policy
from tidegate.model.units.release_history import CrdPolicy
from tidegate.model.units.unit import Unit

CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")
JOB = ("batch", "Job")
KUSTOMIZATION_FILES = ("/kustomization.yaml", "/kustomization.yml", "/Kustomization")
KUSTOMIZATION_HINT = (
    "`directory.recurse` reads this file as a manifest: set `directory.exclude:"
    " '**/kustomization.yaml'`, or set `path` to the kustomization that is to be built"
)
RUN_TO_COMPLETION = frozenset({JOB, ("", "Pod")})
"""Kinds that run to completion; of Helm's hooks only these are waited for."""
ScopeLookup = Callable[[Kind], bool | None]
"""Lookup of whether a kind is namespaced; None if unknown."""


def parse_manifests(
    unit: Unit,
    documents: Iterable[Document],
    is_namespaced: ScopeLookup,
    hidden: Sequence[tuple[FieldPath, ...]] = (),
) -> tuple[Manifests, list[DialectError]]:
    """Parse the valid documents, with ownership metadata, and return the errors of the others.

    `hidden`: for each document, the fields whose values must not be shown.
    """
    parser = _ManifestParser(unit, is_namespaced)
    for document, fields in zip(documents, chain(hidden, repeat(())), strict=False):
        parser.add(document, fields)
    manifests, namespace = tuple(parser.manifests), unit.destination.namespace
    if unit.policy.create_namespace and namespace:
        manifests = _with_namespace(manifests, namespace, unit.policy)
    result = Manifests(
        unit=unit,
        manifests=manifests,
        before_deletion=tuple(parser.deletion_hooks[DeletionPhase.PRE_DELETE]),
        after_deletion=tuple(parser.deletion_hooks[DeletionPhase.POST_DELETE]),
    )
    return result, parser.errors


class _ManifestParser:
    """Parser of the documents of one unit."""

    def __init__(self, unit: Unit, is_namespaced: ScopeLookup) -> None:
        self.manifests: list[Manifest] = []
        self.deletion_hooks: dict[DeletionPhase, list[Manifest]] = {
            phase: [] for phase in DeletionPhase
        }
        self._unit = unit
        self._policy = unit.policy
        self._is_namespaced = is_namespaced
        self._seen: dict[tuple[str, str, str, str], Location] = {}
        self.errors: list[DialectError] = []

    def add(self, document: Document, hidden: tuple[FieldPath, ...]) -> None:
        hook = self._hook(document)
        if hook is not None and not hook.phases and not hook.deletion_phases:
            return
        try:
            manifest = self._manifest(document, hook, hidden)
        except DialectError as error:
            self.errors.append(error)
            return
        if hook is None:
            self.manifests.append(manifest)
            return
        self.manifests += [msgspec.structs.replace(manifest, phase=phase) for phase in hook.phases]
        for deletion_phase in hook.deletion_phases:
            self.deletion_hooks[deletion_phase].append(manifest)

    def _hook(self, document: Document) -> Hook | None:
        """Return the hook, or None; in a Helm release, narrowed to its next action."""
        if self._policy.order is Order.STAGES:
            return None
        hook, release_spec = (
            read_hook(self._effective_document(document).body),
            self._policy.release,
        )
        return (
            hook
            if hook is None or release_spec is None
            else narrow_hook(hook, document.body, release_spec)
        )

    def _action(self, document: Document, *, is_chart_crd: bool) -> ItemAction:
        release_spec = self._policy.release
        if (
            is_chart_crd
            and release_spec is not None
            and release_spec.action_spec.crds is CrdPolicy.CREATE
        ):
            return ItemAction.CREATE
        return (
            item_action(document.body) if self._policy.order is Order.STAGES else ItemAction.APPLY
        )

    def _is_awaited(self, ref: Ref, hook: Hook | None) -> bool:
        """Return whether a gate waits for an object.

        Helm waits for hooks that run to completion, and for Jobs unless that is disabled.
        """
        release_spec, kind = self._policy.release, (ref.kind.group, ref.kind.name)
        if release_spec is None:
            return True
        if hook is not None:
            return kind in RUN_TO_COMPLETION
        return kind != JOB or release_spec.action_spec.waits_for_jobs

    def _manifest(
        self, document: Document, hook: Hook | None, hidden: tuple[FieldPath, ...]
    ) -> Manifest:
        body = document.body
        ref = self._ref(document, hook)
        is_crd = (ref.kind.group, ref.kind.name) == CRD
        is_tracked = not is_crd or self._policy.order is Order.STAGES
        defines = (get_text(body, "spec", "group"), get_text(body, "spec", "names", "kind"))
        is_chart_crd = is_crd and self._policy.release is not None
        is_chart_crd = is_chart_crd and is_crd_path(self._path_in_chart(document.location.name))
        return Manifest(
            ref=ref,
            body=msgspec.json.encode(self._with_ownership(body, ref, hook, is_tracked=is_tracked)),
            origin=str(document.location),
            wave=self._wave(document, hook),
            hook_policies=hook.policies if hook else None,
            options=self._handling(document),
            defined_kind=defines if is_crd else ("", ""),
            action=self._action(document, is_chart_crd=is_chart_crd),
            is_gating=self._is_awaited(ref, hook),
            is_prerequisite=is_chart_crd,
            hidden_fields=hidden,
        )

    def _path_in_chart(self, name: str) -> str:
        """Return the path of a file in the chart of the unit."""
        path = name.rpartition("//")[2]
        charts = (f"{normpath(source.path.lstrip('/'))}/" for source in self._unit.sources)
        return next((path.removeprefix(chart) for chart in charts if path.startswith(chart)), path)

    def _with_ownership(
        self, body: JsonObject, ref: Ref, hook: Hook | None, *, is_tracked: bool
    ) -> JsonObject:
        """Return the body with ownership metadata; Helm hooks do not name their release."""
        tracked = _with_unit_metadata(body, self._unit if is_tracked else None, ref)
        release_spec = self._policy.release
        if release_spec is None or hook is not None or not is_tracked:
            return tracked
        return with_metadata(tracked, *release_metadata(release_spec))

    def _effective_document(self, document: Document) -> Document:
        """Return the document with the annotations that count in its unit."""
        if self._policy.order is not Order.HELM:
            return document
        return msgspec.structs.replace(document, body=with_helm_annotations_only(document.body))

    def _wave(self, document: Document, hook: Hook | None) -> int:
        """Return the wave, or the weight of a Helm hook."""
        counts = self._policy.order is Order.WAVES or (
            self._policy.order is Order.HELM and hook is not None
        )
        return manifest_wave(self._effective_document(document)) if counts else 0

    def _handling(self, document: Document) -> ObjectOptions:
        defaults = self._policy.object_options
        if self._policy.order is Order.STAGES:
            return read_flux_options(document.body, defaults)
        return read_argo_options(self._effective_document(document).body, defaults)

    def _ref(self, document: Document, hook: Hook | None) -> Ref:
        """Return the reference of an object; only hooks may have just `generateName`.

        Raises DialectError for an incomplete or duplicate object.
        """
        body, location = document.body, document.location
        kind = object_kind(body)
        name = get_text(body, "metadata", "name")
        name_prefix = get_text(body, "metadata", "generateName")
        if not kind.name or not kind.version or not (name or name_prefix):
            problem = "not a Kubernetes object: apiVersion, kind or metadata.name is missing"
            hint = KUSTOMIZATION_HINT if location.name.endswith(KUSTOMIZATION_FILES) else ""
            raise DialectError("dialect.incomplete", problem, location=location, hint=hint)
        if not name and hook is None:
            problem = f"{kind.name} `{name_prefix}` has only a `generateName`"
            hint = "set metadata.name; only hooks may use generateName alone"
            raise DialectError("dialect.nameless", problem, location=location, hint=hint)
        namespace = get_text(body, "metadata", "namespace") or self._unit.destination.namespace
        is_namespaced = self._is_namespaced(kind)
        if is_namespaced and not namespace:
            problem = (
                f"{kind.name} `{name or name_prefix}` has no namespace, and its unit sets none"
            )
            hint = "set metadata.namespace, or a namespace for all objects of the unit"
            raise DialectError("dialect.namespace", problem, location=location, hint=hint)
        ref = Ref(kind, "" if is_namespaced is False else namespace, name or name_prefix)
        if name:
            self._check_duplicate(ref, location)
        return ref

    def _check_duplicate(self, ref: Ref, location: Location) -> None:
        """Raise a DialectError if an object is defined twice, in any version of its kind."""
        first = self._seen.get(versionless_key(ref))
        if first is not None:
            hint = f"remove or rename one of the two; the first is at {first}"
            raise DialectError(
                "dialect.duplicate", f"{ref} is defined twice", location=location, hint=hint
            )
        self._seen[versionless_key(ref)] = location


def _with_unit_metadata(body: JsonObject, unit: Unit | None, ref: Ref) -> JsonObject:
    """Return the body with its namespace, and with tracking metadata if it has a unit.

    CRDs have none, like in Argo CD: they are never pruned, and units may share them. Flux
    tracks them like all other objects.
    """
    metadata = {
        key: value for key, value in get_mapping(body, "metadata").items() if key != "namespace"
    }
    if ref.namespace:
        metadata["namespace"] = ref.namespace
    tracked = {**body, "metadata": metadata}
    if unit is None:
        return tracked
    annotations, labels = tracking_metadata(unit.id, unit.policy, ref)
    return with_metadata(tracked, annotations, labels)


def with_metadata(
    body: JsonObject, annotations: Mapping[str, str], labels: Mapping[str, str]
) -> JsonObject:
    """Return the body with these annotations and labels."""
    metadata = {**get_mapping(body, "metadata")}
    for key, values in (("annotations", annotations), ("labels", labels)):
        if values:
            metadata[key] = {**get_mapping(metadata, key), **values}
    return {**body, "metadata": metadata}


def _with_namespace(
    manifests: tuple[Manifest, ...], name: str, policy: Policy
) -> tuple[Manifest, ...]:
    """Return the manifests with the Namespace of the unit, unless one of them already is.

    The Namespace has no owner: it is kept when the unit is deleted.
    """
    ref = Ref(NAMESPACE, "", name)
    if any(manifest.hook_policies is None and manifest.ref == ref for manifest in manifests):
        return manifests
    metadata: JsonObject = {"name": name}
    if policy.namespace_labels:
        metadata["labels"] = dict(policy.namespace_labels)
    if policy.namespace_annotations:
        metadata["annotations"] = dict(policy.namespace_annotations)
    body: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    encoded = msgspec.json.encode(body)
    created = Manifest(ref=ref, body=encoded, phase=Phase.PRE_SYNC, action=ItemAction.CREATE)
    return (created, *manifests)
