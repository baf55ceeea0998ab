"""Rules about ordering annotations that are misspelled, misplaced or ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidegate.documents import Document
from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.names import object_name
from tidegate.lint.pods import template_path
from tidegate.lint.rule import Diagnostic, FieldRef, rule
from tidegate.lint.unit_positions import WAVE
from tidegate.model.display import join_limited
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Ref
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.policy import Order

_WAVE_TYPO = lazy_regex(r"(?:[a-z-]+\.)*argoproj\.io/(?:hook-)?(?:sync-?)?waves?", re.IGNORECASE)
KAPP = ("kapp.k14s.io/change-group", "kapp.k14s.io/change-rule")
CLI_UTILS = "config.kubernetes.io/depends-on"
HELM_HOOK = "helm.sh/hook"
MAPPED_HOOKS = {"pre-install", "pre-upgrade", "post-install", "post-upgrade", "crd-install"}
ENGINE_NAMES = {"argocd": "Argo CD", "flux": "Flux"}
OTHER_HOOKS = {"pre-delete", "post-delete", "test", "test-success", "test-failure"}
"""Helm hooks that a sync does not run.

The mapping is that of Argo CD v3.5.1, gitops-engine/pkg/sync/hook/helm/type.go.
"""


@rule(
    "ORD013",
    "Sync wave is misspelled, misplaced or invalid",
    Severity.WARNING,
    why=(
        "Argo CD reads only the annotation `argocd.argoproj.io/sync-wave` of the object itself, and"
        " its value must be an integer in quotes"
    ),
    fix='add `argocd.argoproj.io/sync-wave: "1"` to `metadata.annotations` of the object',
)
def misplaced_wave(context: LintContext) -> Iterator[Diagnostic]:
    for obj in context.objects:
        if obj.unit.policy.order is Order.WAVES:
            yield from _misspelled_waves(obj)
            yield from _waves_on_pods(obj)


def _misspelled_waves(obj: LintObject) -> Iterator[Diagnostic]:
    object_annotations = get_mapping(obj.body, "metadata", "annotations")
    for key in object_annotations:
        if key != WAVE and _WAVE_TYPO.fullmatch(key):
            yield Diagnostic(
                message=f"`{key}` on {object_name(obj.ref)} is not a sync-wave annotation",
                at=FieldRef(obj.document, ("metadata", "annotations", key)),
            )
    if WAVE in get_mapping(obj.body, "metadata", "labels"):
        yield Diagnostic(
            message=f"sync-wave of {object_name(obj.ref)} is a label, which Argo CD ignores",
            at=FieldRef(obj.document, ("metadata", "labels", WAVE)),
        )


def _waves_on_pods(obj: LintObject) -> Iterator[Diagnostic]:
    path = template_path(obj)
    annotation_path = (*(path or ()), "metadata", "annotations")
    object_annotations = get_mapping(obj.body, "metadata", "annotations")
    if (
        path
        and WAVE in get_mapping(obj.body, *map(str, annotation_path))
        and WAVE not in object_annotations
    ):
        yield Diagnostic(
            message=(
                f"sync-wave of {object_name(obj.ref)} is set on the pod template, where Argo CD"
                " ignores it"
            ),
            at=FieldRef(obj.document, (*annotation_path, WAVE)),
        )


@rule(
    "ORD052",
    "Ordering annotation is ignored",
    Severity.WARNING,
    why="the tool that deploys these objects does not support the annotation",
    fix="use the ordering features of the tool that deploys the objects, or remove the annotation",
)
def ignored_annotation(context: LintContext) -> Iterator[Diagnostic]:
    for objects in context.by_unit.values():
        order = objects[0].unit.policy.order
        semantics = objects[0].unit.policy.semantics.name
        if order is Order.STAGES:
            yield from _waves_in_flux(objects)
        if semantics != "tidegate":
            yield from _unsupported_annotations(objects, KAPP, "kapp change rules")
            yield from _unsupported_annotations(objects, (CLI_UTILS,), f"`{CLI_UTILS}`")
    for appset in (*context.objects_of_kind("argoproj.io", "ApplicationSet"),):
        yield from _wave_on_template(appset.document, appset.ref)


def _waves_in_flux(objects: list[LintObject]) -> Iterator[Diagnostic]:
    """Yield one diagnostic per unit with different waves, because its author relies on them."""
    with_wave = [lint_object for lint_object in objects if WAVE in _annotations(lint_object)]
    if len({str(_annotations(lint_object)[WAVE]) for lint_object in with_wave}) > 1 or (
        with_wave and len(with_wave) < len(objects)
    ):
        first = with_wave[0]
        yield Diagnostic(
            message=(
                f"Flux ignores the sync waves in `{first.unit.id}`"
                f" ({join_limited([object_name(lint_object.ref) for lint_object in with_wave])})"
            ),
            at=FieldRef(first.document, ("metadata", "annotations", WAVE)),
            why="Flux applies CRDs, namespaces and cluster roles, then classes, then the other"
            " objects",
            fix=(
                "move the objects that must be first to a separate Kustomization with"
                " `wait: true`, and add `dependsOn` to the other Kustomization"
            ),
            semantics=("flux",),
            cause="waves in Flux",
        )


def _unsupported_annotations(
    objects: list[LintObject], keys: tuple[str, ...], origin: str
) -> Iterator[Diagnostic]:
    for obj in objects:
        matches = [annotation for annotation in _annotations(obj) if annotation.startswith(keys)]
        if matches:
            engine = obj.unit.policy.semantics.name
            yield Diagnostic(
                message=f"{ENGINE_NAMES.get(engine, engine)} ignores {origin} in `{obj.unit.id}`",
                at=FieldRef(obj.document, ("metadata", "annotations", matches[0])),
                semantics=(engine,),
                cause=f"{engine} {origin}",
            )
            return


def _wave_on_template(document: Document, ref: Ref) -> Iterator[Diagnostic]:
    annotation_path = ("spec", "template", "metadata", "annotations")
    if WAVE in get_mapping(document.body, *annotation_path):
        yield Diagnostic(
            message=f"sync-wave in the template of {object_name(ref)} has no effect",
            at=FieldRef(document, (*annotation_path, WAVE)),
            why="the ApplicationSet controller creates the Applications; no sync applies them in"
            " waves",
            fix="use `strategy: {type: RollingSync}` and labels to order the Applications",
            semantics=("argocd",),
            cause="wave in a template",
        )


def _annotations(obj: LintObject) -> dict[str, object]:
    return {**get_mapping(obj.body, "metadata", "annotations")}


@rule(
    "ORD025",
    "Helm hook never runs",
    Severity.NOTE,
    why="Argo CD does not support this Helm hook and ignores the object",
    fix="add `argocd.argoproj.io/hook` with the phase in which the hook must run",
)
def unmapped_hook(context: LintContext) -> Iterator[Diagnostic]:
    for unit, documents in context.documents.items():
        if context.units[unit].policy.order is not Order.WAVES:
            continue
        for document in documents:
            object_annotations = get_mapping(document.body, "metadata", "annotations")
            hook_value = str(object_annotations.get(HELM_HOOK, ""))
            hooks = {hook.strip() for hook in hook_value.split(",") if hook.strip()}
            if (
                hooks
                and "argocd.argoproj.io/hook" not in object_annotations
                and not hooks & (MAPPED_HOOKS | OTHER_HOOKS)
            ):
                kind, resource_name = (
                    get_text(document.body, "kind"),
                    get_text(document.body, "metadata", "name"),
                )
                yield Diagnostic(
                    message=(
                        f"{kind} `{resource_name}` has `{HELM_HOOK}: {hook_value}`, which Argo CD"
                        " never runs"
                    ),
                    at=FieldRef(document, ("metadata", "annotations", HELM_HOOK)),
                    semantics=("argocd",),
                )
