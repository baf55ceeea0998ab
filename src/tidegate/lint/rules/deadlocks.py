"""Rules about deadlocks and about objects that are applied before their dependencies."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.lint.context import LintContext
from tidegate.lint.dependencies import UnmetRequirement, dependency_index
from tidegate.lint.names import object_name, step_name, step_name_in_unit
from tidegate.lint.rule import Diagnostic, FieldRef, rule
from tidegate.lint.rules.flux_references import build_data_deadlocks, unit_waits_for
from tidegate.lint.unit_needs import find_unit_needs
from tidegate.model.finding import Severity
from tidegate.model.operators.rows import Effect, RequiredState
from tidegate.model.plans.graph import EdgeKind
from tidegate.model.plans.manifest import Phase
from tidegate.model.units.policy import Order

SECRET_STORE_KINDS = ("SecretStore", "ClusterSecretStore")


def _requirement_text(unmet: UnmetRequirement) -> str:
    """Return the required object as text."""
    edge = unmet.edge
    requirement = unmet.requirement
    if edge.kind is EdgeKind.OPERATOR:
        return f"the operator {requirement}"
    return requirement


def _rule_for(unmet: UnmetRequirement) -> str:
    """Return the code of the rule for a deadlock."""
    obj, provider = unmet.dependent, unmet.provider
    if obj.is_kind("external-secrets.io", *SECRET_STORE_KINDS):
        return "ORD042"
    if unmet.edge.kind in {EdgeKind.DEFINITION, EdgeKind.OPERATOR}:
        return "ORD008"
    is_same_unit = provider is not None and provider.unit.id == obj.unit.id
    if is_same_unit and provider is not None and provider.manifest.phase is Phase.POST_SYNC:
        return "ORD005"
    if (
        is_same_unit
        and obj.manifest.hook_policies is not None
        and obj.manifest.phase is Phase.PRE_SYNC
    ):
        return "ORD004"
    return "ORD006"


def deadlocks(context: LintContext, code: str) -> Iterator[Diagnostic]:
    for unmet in dependency_index(context).deadlocks:
        if _rule_for(unmet) == code and not _involves_implicit_unit(context, unmet):
            yield _deadlock_diagnostic(context, unmet)


def _involves_implicit_unit(context: LintContext, unmet: UnmetRequirement) -> bool:
    """Return whether a parent that no file defines is part of the deadlock."""
    objects = (unmet.dependent, unmet.provider)
    if any(lint_object is not None and lint_object.unit.is_implicit for lint_object in objects):
        return unmet.provider is None or unmet.provider.unit.id != unmet.dependent.unit.id
    implicit = [f"`{unit.id}`" for unit in context.units.values() if unit.is_implicit]
    return any(name in link for name in implicit for link in unmet.chain)


def _deadlock_diagnostic(context: LintContext, unmet: UnmetRequirement) -> Diagnostic:
    obj, provider = unmet.dependent, unmet.provider
    step = context.step_for(obj)
    provider_step = context.step_for(provider) if provider else None
    origin = (
        step_name_in_unit(provider, provider_step, relative_to=obj) if provider else "a later step"
    )
    producer = (
        ""
        if unmet.edge.required_object is None or provider is None
        else f", which {object_name(provider.ref)} creates"
    )
    title = "possible deadlock" if unmet.depends_on_timing else "deadlock"
    return Diagnostic(
        message=(
            f"{title}: {object_name(obj.ref)} in {step_name(step)} waits for"
            f" {_requirement_text(unmet)}{producer} in {origin}"
        ),
        at=FieldRef(obj.document, unmet.edge.field),
        related=(FieldRef(provider.document),) if provider else (),
        sequence=tuple(_sequence(context, unmet)),
        severity=Severity.WARNING if unmet.depends_on_timing else Severity.ERROR,
        fix=_suggest_fix(unmet, step_text=step_name(step)),
        semantics=(obj.unit.policy.semantics.name,),
        cause=_late_provider(unmet),
    )


def _late_provider(unmet: UnmetRequirement) -> str:
    """Return what is deployed too late, which may be the cause of several diagnostics."""
    provider = unmet.provider
    return f"{provider.unit.id} {provider.ref}" if provider is not None else ""


def _sequence(context: LintContext, unmet: UnmetRequirement) -> Iterator[str]:
    obj, provider = unmet.dependent, unmet.provider
    step, name = context.step_for(obj), object_name(obj.ref)
    yield f"{step_name_in_unit(obj, step)} applies {name}"
    yield _effect(unmet)
    if provider is not None:
        producer = f"{object_name(provider.ref)}"
        if unmet.edge.required_object is not None:
            producer += f", which creates {_requirement_text(unmet)},"
        yield (
            f"{producer} is applied in"
            f" {step_name_in_unit(provider, context.step_for(provider), relative_to=obj)}"
        )
    *links, last_link = unmet.chain
    yield from links
    consequence = (
        f"the API server never accepts {name}"
        if unmet.edge.effect is Effect.REJECTED
        else f"{name} waits forever"
    )
    if unmet.depends_on_timing:
        consequence += ", unless the gate opens before the operator writes a status"
    yield f"{last_link}, so {consequence}"


def _effect(unmet: UnmetRequirement) -> str:
    """Return what happens to the dependent while the requirement is not met."""
    obj, requirement = unmet.dependent, _requirement_text(unmet)
    name = object_name(obj.ref)
    if unmet.edge.effect is Effect.REJECTED:
        if unmet.edge.kind is EdgeKind.DEFINITION:
            return (
                f"the API server rejects {name} because the CRD of {obj.ref.kind.name} does not"
                " exist yet"
            )
        return f"the API server rejects {name} until {requirement} exists"
    if unmet.edge.effect is Effect.FAILS:
        return f"{name} calls {requirement}, gets no response, and fails after its last retry"
    if unmet.edge.required_state is RequiredState.EXISTS:
        return (
            f"the pods of {name} cannot start without {requirement}"
            if obj.ref.kind.name in _POD_KINDS
            else f"{name} cannot become ready without {requirement}"
        )
    return f"{name} becomes ready only after {requirement} is ready"


_POD_KINDS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Job", "Pod", "ReplicaSet"})


def _suggest_fix(unmet: UnmetRequirement, *, step_text: str) -> str:
    obj, provider = unmet.dependent, unmet.provider
    if provider is None:
        return ""
    if provider.unit.id != obj.unit.id:
        return (
            f"order `{provider.unit.id}` before `{obj.unit.id}`, or deploy both objects in one unit"
        )
    if obj.manifest.hook_policies is not None and obj.manifest.phase is Phase.PRE_SYNC:
        return (
            f"make {object_name(obj.ref)} a Sync hook in a wave after {object_name(provider.ref)},"
            f" or make {object_name(provider.ref)} a PreSync hook with a lower wave"
        )
    if provider.manifest.phase is Phase.POST_SYNC:
        return (
            f"make {object_name(provider.ref)} a Sync hook in a wave before {object_name(obj.ref)}"
        )
    if obj.unit.policy.order is Order.STAGES:
        return f"move {object_name(provider.ref)} to a unit that `{obj.unit.id}` depends on"
    return (
        f"move {object_name(provider.ref)} to a wave before {step_text}, or move"
        f" {object_name(obj.ref)} to a later wave"
    )


@rule(
    "ORD004",
    "Hook runs before its dependency exists",
    Severity.ERROR,
    why=(
        "Argo CD starts the first wave only after all PreSync hooks succeed, so the objects of the"
        " waves do not exist yet"
    ),
    fix="make the hook a Sync hook in a wave after its dependency",
)
def hook_before_producer(context: LintContext) -> Iterator[Diagnostic]:
    return deadlocks(context, "ORD004")


@rule(
    "ORD005",
    "Pods wait for a PostSync hook that runs later",
    Severity.ERROR,
    why=(
        "Argo CD runs PostSync hooks only after all waves are healthy, and the pods become healthy"
        " only after the hook"
    ),
    fix="make the hook a Sync hook in a wave before the pods",
)
def pods_wait_for_later_hook(context: LintContext) -> Iterator[Diagnostic]:
    return deadlocks(context, "ORD005")


@rule(
    "ORD006",
    "Deadlock: an object waits for an object of a later step",
    Severity.ERROR,
    why=(
        "the later step starts only after the object is ready, and the object becomes ready only"
        " after the later step"
    ),
    fix="move the dependency to the same step or to an earlier step",
)
def deadlock(context: LintContext) -> Iterator[Diagnostic]:
    yield from deadlocks(context, "ORD006")
    yield from build_data_deadlocks(context)


@rule(
    "ORD042",
    "Secret store is applied before its provider",
    Severity.ERROR,
    why="a secret store becomes Ready only when its provider responds",
    fix="apply the secret store after its provider",
)
def store_before_provider(context: LintContext) -> Iterator[Diagnostic]:
    yield from deadlocks(context, "ORD042")
    for unmet in dependency_index(context).inversions:
        is_one_unit = unmet.provider is None or unmet.provider.unit.id == unmet.dependent.unit.id
        if is_one_unit and unmet.dependent.is_kind("external-secrets.io", *SECRET_STORE_KINDS):
            yield _inversion_diagnostic(context, unmet, Severity.WARNING)


@rule(
    "ORD003",
    "Object is applied before its dependency",
    Severity.NOTE,
    why="the object waits, and recovers as soon as its dependency exists",
    fix="move the dependency to the same wave or to an earlier wave",
)
def consumer_before_producer(context: LintContext) -> Iterator[Diagnostic]:
    targets = [
        *(
            diagnostic.at
            for diagnostic in build_data_deadlocks(context)
            if isinstance(diagnostic.at, FieldRef)
        ),
        *(need.at for needs in find_unit_needs(context).values() for need in needs),
    ]
    reported = {(target.document.location, target.path) for target in targets}
    for unmet in dependency_index(context).inversions:
        is_reported = (unmet.dependent.document.location, unmet.edge.field) in reported
        is_reported = is_reported or unit_waits_for(context, unmet.dependent, unmet.provider)
        if not is_reported and not unmet.dependent.is_kind(
            "external-secrets.io", *SECRET_STORE_KINDS
        ):
            yield _inversion_diagnostic(context, unmet, Severity.NOTE)


def _inversion_diagnostic(
    context: LintContext, unmet: UnmetRequirement, severity: Severity
) -> Diagnostic:
    obj, provider = unmet.dependent, unmet.provider
    step = context.step_for(obj)
    origin = (
        step_name_in_unit(provider, context.step_for(provider), relative_to=obj)
        if provider
        else "a later step"
    )
    name = object_name(obj.ref)
    effect = (
        f"{name} becomes healthy, but has no effect yet"
        if unmet.edge.effect is Effect.NONE
        else _effect(unmet)
    )
    start = step_name_in_unit(obj, step) if step else f"`{obj.unit.id}`"
    sequence = (
        f"{start} applies {name}",
        effect,
        (
            f"no gate waits for {name}, so {origin} starts anyway and creates"
            f" {_requirement_text(unmet)}"
        ),
        f"from then on, {name} works",
    )
    return Diagnostic(
        message=(
            f"{name}{f' in {step_name(step)}' if step else ''} needs"
            f" {_requirement_text(unmet)}, which is applied later, in {origin}"
        ),
        at=FieldRef(obj.document, unmet.edge.field),
        related=(FieldRef(provider.document),) if provider else (),
        sequence=sequence,
        severity=severity,
        semantics=(obj.unit.policy.semantics.name,),
        cause=_late_provider(unmet),
    )
