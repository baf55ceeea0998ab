"""Names of objects and steps in messages of lint rules."""

from __future__ import annotations

from tidegate.lint.context import LintObject
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.plan import Step
from tidegate.model.rollouts.names import wave_name

MAIN_STAGE = "rest"
"""The stage of most objects of a Flux unit."""


def object_name(ref: Ref) -> str:
    """Return the name of an object: `Secret shop/db`. Kinds named `Cluster…` have no namespace."""
    is_cluster_scoped = ref.kind.name.startswith("Cluster") and ref.kind.name != "Cluster"
    prefix = "" if is_cluster_scoped or not ref.namespace else f"{ref.namespace}/"
    return f"{ref.kind.name} `{prefix}{ref.name}`"


def step_name(step: Step | None) -> str:
    """Return the phase, wave or stage of a step: `PreSync`, `wave 2`, `stage definitions`.

    The main stage of a Flux unit is named after the unit.
    """
    if step is None:
        return "no step"
    if step.stage == MAIN_STAGE:
        return f"`{step.unit}`"
    if step.stage:
        return f"stage {step.stage}"
    return wave_name(step.phase, step.wave)


def step_name_in_unit(
    obj: LintObject, step: Step | None, *, relative_to: LintObject | None = None
) -> str:
    """Return the name of a step with its unit, unless `relative_to` has the same unit."""
    step_text = step_name(step)
    is_one_unit = relative_to is not None and relative_to.unit.id == obj.unit.id
    if is_one_unit or (step is not None and step.stage == MAIN_STAGE):
        return step_text
    return f"{step_text} of `{obj.unit.id}`"
