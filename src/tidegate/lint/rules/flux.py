"""Flux: dependencies that wait for nothing, checks that pass too early, keys and pruning."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidegate.documents import Document
from tidegate.lint.pods import LASTING, containers, ready_window
from tidegate.lint.rule import Mark, RuleRemark, rule
from tidegate.lint.scene import Actor, LintScene
from tidegate.lint.words import name, some
from tidegate.model.finding import Severity
from tidegate.model.moment import SECOND, Ms, format_duration, parse_duration
from tidegate.model.policy import Gates, Tracking
from tidegate.model.reading import listed, mapping, mappings, part, text
from tidegate.model.rendering import ArgoPlugin
from tidegate.model.unit import Unit

KUSTOMIZATION, RELEASE = "Kustomization", "HelmRelease"
KEEPS = "kustomize.toolkit.fluxcd.io/prune"
LASTING_KINDS = frozenset({*LASTING, "Job", "Pod", "HelmRelease", "Kustomization"})
WAITS = ("install", "upgrade")
LEAST = Ms(30 * SECOND)
"""How long a Kustomization waits at least, whatever it says."""


def _takes_time(actor: Actor, scene: LintScene) -> bool:
    """Whether an object is not ready as soon as it is applied."""
    row = scene.known.row_of(actor.ref.kind)
    return actor.ref.kind.name in LASTING_KINDS or bool(row and row.ready_when)


@rule(
    "ORD016",
    "A dependency is ready as soon as it is applied",
    Severity.WARNING,
    why="a Kustomization with neither `wait` nor `healthChecks` is Ready when its objects are"
    " applied, and not when they run",
    fix="add `wait: true` to the Kustomization that is depended on, or list `healthChecks`",
)
def unwaited_dependency(scene: LintScene) -> Iterator[RuleRemark]:
    for unit in scene.units.values():
        own = scene.unit_objects.get(unit.id)
        for at, one in enumerate(unit.dependencies):
            before = scene.units.get(one.unit) if one.unit else None
            if before is None or one.ready_when or unit.policy.tracking is not Tracking.FLUX:
                continue
            yield from _unwaited(scene, unit, own, at, before)


def _unwaited(
    scene: LintScene, unit: Unit, own: Document | None, at: int, before: Unit
) -> Iterator[RuleRemark]:
    slow = [one for one in scene.by_unit.get(before.id, ()) if _takes_time(one, scene)]
    if before.id.kind == KUSTOMIZATION and before.policy.gates is Gates.NONE:
        how, fix = "has neither `wait` nor `healthChecks`", ""
    elif before.id.kind == RELEASE and before.policy.gates is Gates.NONE:
        how, fix = "has `disableWait`", "remove `disableWait` from the HelmRelease"
    else:
        return
    if not slow:
        return
    target = scene.unit_objects.get(before.id)
    yield RuleRemark(
        sentence=f"`{unit.id}` depends on `{before.id}`, which {how}",
        at=Mark(own, ("spec", "dependsOn", at)) if own else unit.where,
        also=(Mark(target),) if target else (),
        story=(
            f"`{before.id}` applies {some([name(one.ref) for one in slow])}",
            "it says Ready at once: nobody waits until that runs",
            f"at its next look, at most 30 s later, `{unit.id}` is applied",
        ),
        fix=fix,
        semantics=("flux",),
    )


@rule(
    "ORD017",
    "An expression of health passes too early",
    Severity.WARNING,
    why="it holds before the object has anything to say",
    fix="ask for the field first, and for `status.observedGeneration == metadata.generation`",
)
def early_expression(scene: LintScene) -> Iterator[RuleRemark]:
    for unit, own in scene.unit_objects.items():
        if unit.kind not in {KUSTOMIZATION, RELEASE}:
            continue
        for at, one in enumerate(mappings(own.body, "spec", "healthCheckExprs")):
            said = text(one, "current")
            if ".all(" in said and "size(" not in said and "exists(" not in said:
                yield RuleRemark(
                    sentence=f"`current` of `{unit}` holds for an empty list: `all` asks nobody",
                    at=Mark(own, ("spec", "healthCheckExprs", at, "current")),
                    fix="ask for `size(…) > 0` as well, or use `exists`",
                    semantics=("flux",),
                )
        for at, one in enumerate(mappings(own.body, "spec", "dependsOn")):
            said = text(one, "readyExpr")
            if (
                said
                and "eneration" not in said
                and "AdditiveCELDependencyCheck" not in str(scene.settings)
            ):
                yield RuleRemark(
                    sentence=f"`readyExpr` of `{unit}` takes the place of the usual check,"
                    " and asks for no generation",
                    at=Mark(own, ("spec", "dependsOn", at, "readyExpr")),
                    severity=Severity.NOTE,
                    why="with an expression Flux does not look at Ready: what the unit before"
                    " said of its last revision counts",
                    semantics=("flux",),
                )


@rule(
    "ORD018",
    "A timeout is shorter than what it waits for",
    Severity.WARNING,
    why="when the time is over the unit counts as failed, though its objects would get ready",
    fix="raise `timeout` above what the objects ask for",
)
def short_timeout(scene: LintScene) -> Iterator[RuleRemark]:
    for unit, own in scene.unit_objects.items():
        if unit.kind not in {KUSTOMIZATION, RELEASE} or unit not in scene.order.units:
            continue
        said = _span(text(own.body, "spec", "timeout"))
        if said is None or scene.units[unit].policy.gates is Gates.NONE:
            continue
        said = max(said, LEAST) if unit.kind == KUSTOMIZATION else said
        windows = {
            Ms(ready_window(one) * SECOND): actor
            for actor in scene.by_unit.get(unit, ())
            for _, one in containers(actor, "containers")
        }
        longest = max(windows, default=Ms(0))
        if longest > said:
            yield RuleRemark(
                sentence=f"`{unit}` waits {format_duration(said)}, and a container of"
                f" {name(windows[longest].ref)} may take {format_duration(longest)} to get ready",
                at=Mark(own, ("spec", "timeout")),
                semantics=("flux",),
            )


def _span(said: str) -> Ms | None:
    try:
        return parse_duration(said) if said else None
    except ValueError:
        return None


@rule(
    "ORD022",
    "Pruning would take data along",
    Severity.NOTE,
    why="when a definition leaves Git all of its objects go with it, and with a claim its data",
    fix="annotate them `kustomize.toolkit.fluxcd.io/prune: disabled`",
)
def prunes_data(scene: LintScene) -> Iterator[RuleRemark]:
    for unit, actors in scene.by_unit.items():
        policy = scene.units[unit].policy
        if policy.tracking is not Tracking.FLUX or not policy.prunes or unit.kind != KUSTOMIZATION:
            continue
        risky = [one for one in actors if _holds_data(one)]
        if risky:
            own = scene.unit_objects.get(unit)
            yield RuleRemark(
                sentence=f"`{unit}` prunes, and has {some([name(one.ref) for one in risky])}",
                at=Mark(own, ("spec", "prune")) if own else scene.units[unit].where,
                also=(Mark(risky[0].document),),
                semantics=("flux",),
            )


def _holds_data(actor: Actor) -> bool:
    labels = {
        **mapping(actor.body, "metadata", "labels"),
        **mapping(actor.body, "metadata", "annotations"),
    }
    is_data = actor.is_a("", "PersistentVolumeClaim") or actor.is_a(
        "apiextensions.k8s.io", "CustomResourceDefinition"
    )
    return is_data and labels.get(KEEPS) != "disabled"


@rule(
    "ORD045",
    "An encrypted file is applied as it is",
    Severity.ERROR,
    why="nobody decrypts it: what reaches the cluster is the encrypted text, and a field `sops`"
    " that no kind has",
    fix="add `decryption: {provider: sops}` with the key to the Kustomization",
)
def undecrypted(scene: LintScene) -> Iterator[RuleRemark]:
    sealed = {one.name: one for one in scene.sealed}
    for actor in scene.actors if sealed else ():
        unit, file = actor.unit, sealed.get(actor.document.place.name)
        own = scene.unit_objects.get(unit.id)
        if file is None or own is None or mapping(own.body, "spec", "decryption"):
            continue
        if any(isinstance(one.request, ArgoPlugin) for one in unit.sources):
            continue
        argo = "Argo CD decrypts nothing by itself: use a plugin, or an operator for secrets"
        for document in file.documents:
            if text(document.body, "sops", "mac"):
                yield RuleRemark(
                    sentence=f"{name(actor.ref)} is encrypted, and `{unit.id}` does not decrypt it",
                    at=Mark(document, ("sops",)),
                    also=(Mark(own),),
                    fix="" if unit.id.kind == KUSTOMIZATION else argo,
                )


@rule(
    "ORD046",
    "A file is encrypted for others than the rules say",
    Severity.WARNING,
    why="who is in `.sops.yaml` and not in the file cannot open it; who has left can still",
    fix="run `sops updatekeys` on the file",
)
def other_recipients(scene: LintScene) -> Iterator[RuleRemark]:
    for rules in scene.sealings:
        folder = rules.name.rpartition("/")[0]
        for file in scene.sealed:
            if folder and not file.name.startswith(f"{folder}/"):
                continue
            inside = file.name.removeprefix(f"{folder}/") if folder else file.name
            wanted = _recipients(rules.documents, inside)
            for document in file.documents:
                has = {text(one, "recipient") for one in mappings(document.body, "sops", "age")}
                if wanted and has and wanted != has:
                    lacks, more = sorted(wanted - has), sorted(has - wanted)
                    told = [f"lacks {some(lacks, 2)}"] if lacks else []
                    told += [f"has {some(more, 2)} besides"] if more else []
                    yield RuleRemark(
                        sentence=f"`{file.name}` {' and '.join(told)}, by `{rules.name}`",
                        at=Mark(document, ("sops", "age")),
                    )


def _recipients(documents: tuple[Document, ...], path: str) -> set[str]:
    """Whom the first rule names that fits a path."""
    for document in documents:
        for one in mappings(document.body, "creation_rules"):
            pattern = text(one, "path_regex")
            try:
                fits = not pattern or re.search(pattern, path) is not None
            except re.error:
                return set()
            if fits:
                said = part(one, "age")
                words = said if isinstance(said, list) else str(said or "").split(",")
                groups = listed(one, "key_groups")
                return {str(word).strip() for word in words if word} if not groups else set()
    return set()
