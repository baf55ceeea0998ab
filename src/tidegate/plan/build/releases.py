"""Order of a Helm release: CRDs, pre hooks, objects, post hooks, tests.

CRDs of the `crds` directory come first, and the rest depends on them. Hooks run one after another,
by weight and name. Objects are applied kind by kind, in Helm's install order. Objects that are no
longer in the chart are deleted after them, before the applied objects are awaited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tidegate.model.k8s.helm_order import install_rank
from tidegate.model.plans.manifest import Manifest, Phase
from tidegate.model.plans.plan import TEST_PHASE, HookPolicy
from tidegate.plan.build.waves import StepGroup

CRDS_STAGE = "crds"
OBJECTS_STAGE = "objects"
NAMESPACE_STAGE = "namespace"
HOOK_PREFIXES = {Phase.PRE_SYNC: "pre", Phase.POST_SYNC: "post"}


def group_by_release(manifests: tuple[Manifest, ...], action: str) -> list[StepGroup]:
    """Return the steps of a release in order, without those that have no objects."""
    no_hooks = [manifest for manifest in manifests if manifest.hook_policies is None]
    crds = [manifest for manifest in no_hooks if manifest.is_prerequisite]
    namespaces = [manifest for manifest in no_hooks if manifest.phase is Phase.PRE_SYNC]
    other_objects = [
        manifest
        for manifest in no_hooks
        if not manifest.is_prerequisite and manifest.phase is not Phase.PRE_SYNC
    ]
    hooks = [manifest for manifest in manifests if manifest.hook_policies is not None]
    before, after = (
        _hook_groups(hooks, phase, f"{prefix}-{action}") for phase, prefix in HOOK_PREFIXES.items()
    )
    tests = _hook_groups(hooks, Phase.TEST, TEST_PHASE)
    ordered = sorted(other_objects, key=lambda manifest: install_rank(manifest.ref.kind.name))
    stages = ((NAMESPACE_STAGE, namespaces), (CRDS_STAGE, crds))
    first_groups = [
        StepGroup(Phase.SYNC, 0, stage, members) for stage, members in stages if members
    ]
    objects = [StepGroup(Phase.SYNC, 0, OBJECTS_STAGE, ordered)] if ordered else []
    return [*first_groups, *before, *objects, *after, *tests]


def sort_by_weight(hooks: Iterable[Manifest]) -> list[Manifest]:
    """Sort hooks as Helm runs them: by weight, then by name. The kind decides the rest.

    Like `hookByWeight` in `pkg/action/hooks.go` of Helm 3.
    """
    return sorted(
        hooks,
        key=lambda hook: (hook.wave, hook.ref.name, install_rank(hook.ref.kind.name), hook.ref),
    )


def _recreated_hook(hook: Manifest) -> Manifest:
    """Return a hook that ran before the objects so that it is recreated after them.

    Helm deletes succeeded hooks after the hooks of each event. Here they are deleted at the end of
    the unit, or when they are recreated.
    """
    policies = hook.hook_policies or ()
    if HookPolicy.SUCCEEDED not in policies:
        return hook
    new_policies = dict.fromkeys((*policies, HookPolicy.BEFORE_CREATION))
    return msgspec.structs.replace(hook, hook_policies=tuple(new_policies))


def _hook_groups(hooks: Sequence[Manifest], phase: Phase, event: str) -> list[StepGroup]:
    """Return one step for each hook of a phase, because the next hook waits for it."""
    phases = [*Phase]
    already_run = {hook.ref for hook in hooks if phases.index(hook.phase) < phases.index(phase)}
    phase_hooks = sort_by_weight(hook for hook in hooks if hook.phase is phase)
    phase_hooks = [
        _recreated_hook(hook) if hook.ref in already_run else hook for hook in phase_hooks
    ]
    return [
        StepGroup(phase, hook.wave, f"{event}/{number}" if len(phase_hooks) > 1 else event, [hook])
        for number, hook in enumerate(phase_hooks, 1)
    ]
