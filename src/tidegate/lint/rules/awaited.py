"""Health checks of Kustomizations that name what nobody brings."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.lint.rule import Mark, RuleRemark
from tidegate.lint.scene import LintScene
from tidegate.lint.words import name
from tidegate.model.finding import Severity
from tidegate.model.objects import Kind, Ref
from tidegate.model.policy import Gates
from tidegate.model.reading import mappings, text
from tidegate.model.spelling import meant

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


def _is_it(ref: Ref, wanted: Ref) -> bool:
    return ref.name == wanted.name and ref.namespace in {"", wanted.namespace}


def _guess(wanted: Ref, known: list[Ref]) -> Ref | None:
    """What was meant: another name in the same namespace, or the same name in another one."""
    near = {one.name: one for one in known if one.namespace in {"", wanted.namespace}}
    namesakes = [one for one in known if one.name == wanted.name]
    return near.get(meant(wanted.name, near)) or (namesakes[0] if len(namesakes) == 1 else None)
