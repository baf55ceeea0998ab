"""Rules about deadlocks and about consumers applied before their producers."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.lint.context import LintContext
from tidegate.lint.dependencies import UnmetRequirement, dependency_index
from tidegate.lint.names import object_name, step_name, step_name_in_unit
from tidegate.lint.rule import Diagnostic, FieldRef, rule
from tidegate.lint.rules.flux_references import build_data_deadlocks, unit_waits_for
from tidegate.model.finding import Severity
from tidegate.model.operators.rows import Effect, RequiredState
from tidegate.model.plans.graph import EdgeKind
from tidegate.model.plans.manifest import Phase

SECRET_STORE_KINDS = ("SecretStore", "ClusterSecretStore")
DEADLOCK = "a gate waits for what only a later step brings"


def _requirement_text(unmet: UnmetRequirement) -> str:
    """Return the required object as text."""
    edge = unmet.edge
    requirement = unmet.requirement
    if edge.kind is EdgeKind.OPERATOR:
        return f"its operator, {requirement}"
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
        if _rule_for(unmet) == code:
            yield _deadlock_diagnostic(context, unmet)


def _deadlock_diagnostic(context: LintContext, unmet: UnmetRequirement) -> Diagnostic:
    obj, provider = unmet.dependent, unmet.provider
    step = context.step_for(obj)
    provider_step = context.step_for(provider) if provider else None
    origin = step_name_in_unit(provider, provider_step, relative_to=obj) if provider else "later"
    producer = (
        ""
        if unmet.edge.required_object is None or provider is None
        else f", which {object_name(provider.ref)} makes"
    )
    title = "deadlock, unless luck helps" if unmet.depends_on_timing else "deadlock"
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
    )


def _sequence(context: LintContext, unmet: UnmetRequirement) -> Iterator[str]:
    obj, provider = unmet.dependent, unmet.provider
    step, engine = context.step_for(obj), obj.unit.policy.semantics.name
    yield f"{step_name_in_unit(obj, step)} applies {object_name(obj.ref)}"
    yield _effect(unmet)
    if provider is not None:
        producer = f"{object_name(provider.ref)}"
        if unmet.edge.required_object is not None:
            producer += f", which makes {_requirement_text(unmet)},"
        yield (
            f"{producer} is applied in"
            f" {step_name_in_unit(provider, context.step_for(provider), relative_to=obj)}"
        )
    for link in unmet.chain:
        yield f"before that, {link}"
    consequence = (
        "this never opens" if unmet.edge.effect is not Effect.REJECTED else "this never happens"
    )
    condition = f"that comes only when {step_name(step)} of `{obj.unit.id}` is done: under {engine}"
    if unmet.depends_on_timing:
        yield (
            f"{condition} it is, if the gate looks before an operator has written a status; else"
            " never"
        )
    else:
        yield f"{condition} {consequence}"


def _effect(unmet: UnmetRequirement) -> str:
    obj, requirement = unmet.dependent, _requirement_text(unmet)
    if unmet.edge.effect is Effect.REJECTED:
        if unmet.edge.kind is EdgeKind.DEFINITION:
            return "the API server does not know its kind yet, and refuses it"
        return f"it is refused as long as {requirement} is not there"
    if unmet.edge.effect is Effect.FAILS:
        return (
            f"it calls {requirement}, which does not answer, and fails when its attempts are"
            " used up"
        )
    if unmet.edge.required_state is RequiredState.EXISTS:
        return (
            f"its pods cannot start without {requirement}"
            if obj.ref.kind.name in _POD_KINDS
            else (f"it cannot get ready without {requirement}")
        )
    return f"it is not ready before {requirement} is"


_POD_KINDS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Job", "Pod", "ReplicaSet"})


def _suggest_fix(unmet: UnmetRequirement, *, step_text: str) -> str:
    obj, provider = unmet.dependent, unmet.provider
    if provider is None:
        return ""
    if provider.unit.id != obj.unit.id:
        return f"let `{provider.unit.id}` come before `{obj.unit.id}`, or bring both in one unit"
    if obj.manifest.hook_policies is not None and obj.manifest.phase is Phase.PRE_SYNC:
        return (
            f"make {object_name(obj.ref)} a Sync hook in a wave behind {object_name(provider.ref)},"
            f" or bring {object_name(provider.ref)} in PreSync with a lower wave"
        )
    if provider.manifest.phase is Phase.POST_SYNC:
        return (
            f"make {object_name(provider.ref)} a Sync hook in a wave before {object_name(obj.ref)}"
        )
    return (
        f"give {object_name(provider.ref)} a wave before {step_text}, or {object_name(obj.ref)} a"
        " later one"
    )


@rule(
    "ORD004",
    "A hook runs before what it needs",
    Severity.ERROR,
    why="PreSync is over before the first wave begins: what the waves bring is not there yet",
    fix="make it a Sync hook behind what it needs",
)
def hook_before_producer(context: LintContext) -> Iterator[Diagnostic]:
    return deadlocks(context, "ORD004")


@rule(
    "ORD005",
    "Pods wait for what a later hook does",
    Severity.ERROR,
    why="PostSync begins when all before it is healthy, and the pods are not before PostSync",
    fix="make the hook a Sync hook in an earlier wave",
)
def pods_wait_for_later_hook(context: LintContext) -> Iterator[Diagnostic]:
    return deadlocks(context, "ORD005")


@rule(
    "ORD006",
    "Deadlock: a gate waits for what only a later step brings",
    Severity.ERROR,
    why="the gate opens when the object is ready, and that is not before the later step",
    fix="bring first what is needed first",
)
def deadlock(context: LintContext) -> Iterator[Diagnostic]:
    yield from deadlocks(context, "ORD006")
    yield from build_data_deadlocks(context)


@rule(
    "ORD042",
    "A secret store comes before its provider",
    Severity.ERROR,
    why="a store is ready when its provider answers",
    fix="bring the store behind the provider",
)
def store_before_provider(context: LintContext) -> Iterator[Diagnostic]:
    yield from deadlocks(context, "ORD042")
    for unmet in dependency_index(context).inversions:
        if unmet.dependent.is_kind("external-secrets.io", *SECRET_STORE_KINDS):
            yield _inversion_diagnostic(context, unmet, Severity.WARNING)


@rule(
    "ORD003",
    "A consumer is applied before its producer",
    Severity.NOTE,
    why="it waits, and recovers when what it needs is there",
    fix="bring the producer in the same wave, or in an earlier one",
)
def consumer_before_producer(context: LintContext) -> Iterator[Diagnostic]:
    targets = [
        diagnostic.at
        for diagnostic in build_data_deadlocks(context)
        if isinstance(diagnostic.at, FieldRef)
    ]
    reported = [(target.document.location, target.path) for target in targets]
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
    no_effect = "it is well without, and does nothing yet"
    effect = no_effect if unmet.edge.effect is Effect.NONE else _effect(unmet)
    start = f"{step_name_in_unit(obj, step)} applies" if step else f"`{obj.unit.id}` brings"
    sequence = (
        f"{start} {object_name(obj.ref)}: {effect}",
        (
            f"nothing waits for it, so that {origin} begins all the same and brings"
            f" {_requirement_text(unmet)}"
        ),
        "then it works",
    )
    return Diagnostic(
        message=(
            f"{object_name(obj.ref)}{f' in {step_name(step)}' if step else ''} needs"
            f" {_requirement_text(unmet)}, which comes in {origin}"
        ),
        at=FieldRef(obj.document, unmet.edge.field),
        related=(FieldRef(provider.document),) if provider else (),
        sequence=sequence,
        severity=severity,
        semantics=(obj.unit.policy.semantics.name,),
    )
