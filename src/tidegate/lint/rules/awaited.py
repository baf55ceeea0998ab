"""What units of Flux's name and wait for: health checks, and data that they are built with."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.documents import Document, FieldPath
from tidegate.lint.rule import Mark, RuleRemark
from tidegate.lint.scene import Actor, LintScene
from tidegate.lint.words import name
from tidegate.model.finding import Severity
from tidegate.model.objects import Kind, Ref
from tidegate.model.policy import Gates
from tidegate.model.reading import mappings, text
from tidegate.model.spelling import meant
from tidegate.model.unit import UnitId

DATA = {
    "Kustomization": ("spec", "postBuild", "substituteFrom"),
    "HelmRelease": ("spec", "valuesFrom"),
}
"""Where units say which ConfigMaps and Secrets they are built with."""
IN_VAIN = "it is waited for until the time is over, and the unit fails each time"


def check_nowhere(scene: LintScene) -> Iterator[RuleRemark]:
    """Where an object of nearly that name is brought, that one is meant.

    Else it may be in the cluster, or come from what is not known here.
    """
    is_all_known = scene.units.keys() <= scene.whole
    for unit, own in scene.unit_objects.items():
        if unit not in scene.units or scene.units[unit].policy.gates is not Gates.LISTED:
            continue
        for at, entry in enumerate(mappings(own.body, "spec", "healthChecks")):
            kind = Kind.of(text(entry, "apiVersion", default="apps/v1"), text(entry, "kind"))
            wanted = Ref(kind, text(entry, "namespace"), text(entry, "name"))
            known = [one.ref for one in scene.of_kind(kind.group, kind.name)]
            if any(_is_it(one, wanted) for one in known) or not wanted.name:
                continue
            guess = _guess(wanted, known)
            if guess is None and not (is_all_known and known):
                continue
            yield RuleRemark(
                sentence=f"`{unit}` waits for {name(wanted)}, which nobody here brings",
                at=Mark(own, ("spec", "healthChecks", at)),
                severity=Severity.ERROR if guess else Severity.WARNING,
                why=IN_VAIN if guess else f"it may be in the cluster already; else {IN_VAIN}",
                fix=f"did you mean {name(guess)}?" if guess else "",
                semantics=("flux",),
            )


def account_nowhere(scene: LintScene) -> Iterator[RuleRemark]:
    """Accounts that units are applied with, where nearly that name is brought beside them."""
    known = [one.ref for one in scene.of_kind("", "ServiceAccount")]
    for unit, own in scene.unit_objects.items():
        account = text(own.body, "spec", "serviceAccountName")
        names = {one.name for one in known if one.namespace == unit.namespace}
        if unit.kind not in DATA or not account or account in names:
            continue
        if near := meant(account, names):
            yield RuleRemark(
                sentence=f"`{unit}` is applied as ServiceAccount `{unit.namespace}/{account}`,"
                " which nobody here brings",
                at=Mark(own, ("spec", "serviceAccountName")),
                why="it has no rights, and nothing of the unit is applied",
                fix=f"did you mean `{near}`?",
                semantics=("flux",),
            )


def data_behind(scene: LintScene) -> Iterator[RuleRemark]:
    """Variables and values that only the unit itself brings, or one that waits for it.

    Without them Flux does not build the unit, so that it never gets ready.
    """
    for unit, own in scene.unit_objects.items():
        if unit not in scene.units or unit not in scene.order.units:
            continue
        path = DATA.get(unit.kind, ())
        for at, entry in enumerate(mappings(own.body, *path)):
            kind, wanted = text(entry, "kind"), text(entry, "name")
            makers = [
                one
                for one in scene.of_kind("", kind)
                if (one.ref.namespace, one.ref.name) == (unit.namespace, wanted)
            ]
            if entry.get("optional") or not makers:
                continue
            if all(_is_behind(scene, one, unit) for one in makers):
                yield _deadlock(unit, own, (*path, at), makers[0])


def waits_itself(scene: LintScene, actor: Actor, maker: Actor | None) -> bool:
    """Whether the unit that an object stands for begins behind what the object names."""
    early = scene.step_of(maker) if maker else None
    late = [one for unit in actor.manifest.brings for one in scene.order.by_unit.get(unit, ())]
    return early is not None and any(scene.order.is_behind(one.id, early.id) for one in late)


def _is_behind(scene: LintScene, maker: Actor, unit: UnitId) -> bool:
    """Whether an object comes only when a unit has been at work."""
    step = scene.step_of(maker)
    if maker.unit.id == unit:
        return True
    early = scene.order.by_unit.get(unit, ())
    return step is not None and any(scene.order.is_behind(step.id, one.id) for one in early)


def _deadlock(unit: UnitId, own: Document, path: FieldPath, maker: Actor) -> RuleRemark:
    is_own = maker.unit.id == unit
    comes = "which it brings itself" if is_own else f"which comes with `{maker.unit.id}` behind it"
    return RuleRemark(
        sentence=f"deadlock: `{unit}` is built with {name(maker.ref)}, {comes}",
        at=Mark(own, path),
        also=(Mark(maker.document),),
        story=(
            f"Flux does not build `{unit}` while {name(maker.ref)} is not there",
            f"`{maker.unit.id}` brings it, and is not applied before",
        ),
        why="it never gets ready on an empty cluster, nor does what waits for it",
        fix=f"bring {name(maker.ref)} with a unit that `{unit}` depends on, or mark it `optional`",
        semantics=("flux",),
    )


def _is_it(ref: Ref, wanted: Ref) -> bool:
    return ref.name == wanted.name and ref.namespace in {"", wanted.namespace}


def _guess(wanted: Ref, known: list[Ref]) -> Ref | None:
    """What was meant: another name in the same namespace, or the same name in another one."""
    near = {one.name: one for one in known if one.namespace in {"", wanted.namespace}}
    namesakes = [one for one in known if one.name == wanted.name]
    return near.get(meant(wanted.name, near)) or (namesakes[0] if len(namesakes) == 1 else None)
