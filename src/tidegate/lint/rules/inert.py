"""Annotations that say when something comes: misspelt, in the wrong place, or read by nobody."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidegate.documents import Document
from tidegate.lint.pods import template_path
from tidegate.lint.rule import Mark, RuleRemark, rule
from tidegate.lint.scene import Actor, LintScene
from tidegate.lint.words import name, some
from tidegate.model.finding import Severity
from tidegate.model.objects import Ref
from tidegate.model.patterns import late
from tidegate.model.policy import Order
from tidegate.model.reading import mapping, text

WAVE = "argocd.argoproj.io/sync-wave"
_NEAR = late(r"(?:[a-z-]+\.)*argoproj\.io/(?:hook-)?(?:sync-?)?waves?", re.IGNORECASE)
KAPP = ("kapp.k14s.io/change-group", "kapp.k14s.io/change-rule")
CLI_UTILS = "config.kubernetes.io/depends-on"
HELM_HOOK = "helm.sh/hook"
MAPPED = {"pre-install", "pre-upgrade", "post-install", "post-upgrade", "crd-install"}
ENDS = {"pre-delete", "post-delete", "test", "test-success", "test-failure"}
"""Hooks that a sync has nothing to do with."""


@rule(
    "ORD013",
    "A wave does not count where it is written",
    Severity.WARNING,
    why="Argo CD reads the annotation `argocd.argoproj.io/sync-wave` of the object itself,"
    " as a whole number in quotes, and nothing else",
    fix='write `argocd.argoproj.io/sync-wave: "1"` among `metadata.annotations` of the object',
)
def misplaced_wave(scene: LintScene) -> Iterator[RuleRemark]:
    for actor in scene.actors:
        if actor.unit.policy.order is Order.WAVES:
            yield from _misspelt(actor)
            yield from _on_pods(actor)


def _misspelt(actor: Actor) -> Iterator[RuleRemark]:
    notes = mapping(actor.body, "metadata", "annotations")
    for key in notes:
        if key != WAVE and _NEAR.fullmatch(key):
            yield RuleRemark(
                sentence=f"`{key}` on {name(actor.ref)} is not the annotation of a wave",
                at=Mark(actor.document, ("metadata", "annotations", key)),
            )
    if WAVE in mapping(actor.body, "metadata", "labels"):
        yield RuleRemark(
            sentence=f"the wave of {name(actor.ref)} is a label, and labels are not read",
            at=Mark(actor.document, ("metadata", "labels", WAVE)),
        )


def _on_pods(actor: Actor) -> Iterator[RuleRemark]:
    path = template_path(actor)
    notes = (*(path or ()), "metadata", "annotations")
    own = mapping(actor.body, "metadata", "annotations")
    if path and WAVE in mapping(actor.body, *map(str, notes)) and WAVE not in own:
        yield RuleRemark(
            sentence=f"the wave of {name(actor.ref)} stands on its pods, where it has no effect",
            at=Mark(actor.document, (*notes, WAVE)),
        )


@rule(
    "ORD052",
    "An annotation asks for an order that nobody here keeps",
    Severity.WARNING,
    why="whoever deploys these objects does not read it",
    fix="say it in the words of the tool that deploys them, or remove the annotation",
)
def unread_annotation(scene: LintScene) -> Iterator[RuleRemark]:
    for actors in scene.by_unit.values():
        order = actors[0].unit.policy.order
        name_of = actors[0].unit.policy.semantics.name
        if order is Order.STAGES:
            yield from _waves_in_flux(actors)
        if name_of != "tidegate":
            yield from _others(actors, KAPP, "kapp's rules")
            yield from _others(actors, (CLI_UTILS,), "`depends-on` of cli-utils")
    for one in (*scene.of_kind("argoproj.io", "ApplicationSet"),):
        yield from _on_template(one.document, one.ref)


def _waves_in_flux(actors: list[Actor]) -> Iterator[RuleRemark]:
    """One remark for a unit: whoever wrote different waves relies on them."""
    told = [one for one in actors if WAVE in _notes(one)]
    if len({str(_notes(one)[WAVE]) for one in told}) > 1 or (told and len(told) < len(actors)):
        first = told[0]
        yield RuleRemark(
            sentence=f"waves in `{first.unit.id}` order nothing: Flux does not read them"
            f" ({some([str(one.ref) for one in told])})",
            at=Mark(first.document, ("metadata", "annotations", WAVE)),
            why="Flux applies definitions, then classes, then all else at once",
            fix="put what comes first into a Kustomization of its own, with `wait: true`,"
            " and let the other one depend on it",
            semantics=("flux",),
        )


def _others(actors: list[Actor], keys: tuple[str, ...], whose: str) -> Iterator[RuleRemark]:
    for actor in actors:
        found = [one for one in _notes(actor) if one.startswith(keys)]
        if found:
            engine = actor.unit.policy.semantics.name
            yield RuleRemark(
                sentence=f"{whose} in `{actor.unit.id}` order nothing under {engine}",
                at=Mark(actor.document, ("metadata", "annotations", found[0])),
                semantics=(engine,),
            )
            return


def _on_template(document: Document, ref: Ref) -> Iterator[RuleRemark]:
    notes = ("spec", "template", "metadata", "annotations")
    if WAVE in mapping(document.body, *notes):
        yield RuleRemark(
            sentence=f"the wave in the template of {name(ref)} orders nothing",
            at=Mark(document, (*notes, WAVE)),
            why="its Applications are made by the set's controller, and no sync applies them",
            fix="order them with `strategy: {type: RollingSync}` and labels",
            semantics=("argocd",),
        )


def _notes(actor: Actor) -> dict[str, object]:
    return {**mapping(actor.body, "metadata", "annotations")}


@rule(
    "ORD025",
    "A Helm hook is never run",
    Severity.NOTE,
    why="Argo CD maps Helm's hooks of installs and upgrades, and leaves out all others",
    fix="say with `argocd.argoproj.io/hook` when it shall run",
)
def unmapped_hook(scene: LintScene) -> Iterator[RuleRemark]:
    for unit, documents in scene.documents.items():
        if scene.units[unit].policy.order is not Order.WAVES:
            continue
        for document in documents:
            notes = mapping(document.body, "metadata", "annotations")
            said = str(notes.get(HELM_HOOK, ""))
            words = {word.strip() for word in said.split(",") if word.strip()}
            if words and "argocd.argoproj.io/hook" not in notes and not words & (MAPPED | ENDS):
                kind, called = text(document.body, "kind"), text(document.body, "metadata", "name")
                yield RuleRemark(
                    sentence=f"{kind} `{called}` is the Helm hook `{said}`, which is never run",
                    at=Mark(document, ("metadata", "annotations", HELM_HOOK)),
                    semantics=("argocd",),
                )
