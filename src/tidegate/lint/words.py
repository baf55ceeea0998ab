"""How rules call things: objects, steps, and when something has its turn."""

from __future__ import annotations

from tidegate.lint.scene import Actor
from tidegate.model.objects import Ref
from tidegate.model.plan import Step

PHASES = {"sync": "", "presync": "PreSync", "postsync": "PostSync", "syncfail": "SyncFail"}


def name(ref: Ref) -> str:
    """`Secret shop/db`, as people write it; a kind that calls itself the cluster's is in none."""
    is_wide = ref.kind.name.startswith("Cluster") and ref.kind.name != "Cluster"
    inside = "" if is_wide or not ref.namespace else f"{ref.namespace}/"
    return f"{ref.kind.name} `{inside}{ref.name}`"


def turn(step: Step | None) -> str:
    """When a step has its turn in its unit: `PreSync`, `wave 2`, `stage definitions`."""
    if step is None:
        return "no step"
    if step.stage:
        return f"stage {step.stage}"
    phase = PHASES.get(step.phase, step.phase)
    wave = f"wave {step.wave}"
    return wave if not phase else f"{phase} {wave}" if step.wave else phase


def when(actor: Actor, step: Step | None, *, beside: Actor | None = None) -> str:
    """The same with the unit, unless that is the other's too."""
    told = turn(step)
    if beside is not None and beside.unit.id == actor.unit.id:
        return told
    return f"{told} of `{actor.unit.id}`"


def some(names: list[str], most: int = 3) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
