"""Rules about Jobs: replacement, deletion, parallel migrations and deadlines."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.names import object_name, step_name
from tidegate.lint.pods import (
    LONG_RUNNING_KINDS,
    containers,
    images_in,
    is_migration,
    pod_template,
    start_window,
)
from tidegate.lint.rule import Diagnostic, FieldRef, rule
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_value
from tidegate.model.plans.plan import HookPolicy
from tidegate.model.units.policy import Order

OPTIONS = "argocd.argoproj.io/sync-options"
MIN_TTL = 30
PROGRESS_DEADLINE = 600


@rule(
    "ORD019",
    "A Job cannot be run again, or its end is not seen",
    Severity.WARNING,
    why="a Job cannot be changed once it is there, and one that is gone says nothing",
    fix="keep the delete policy `BeforeHookCreation`, or let the Job be replaced by force",
)
def fragile_job(context: LintContext) -> Iterator[Diagnostic]:
    for obj in context.objects_of_kind("batch", "Job"):
        if obj.unit.policy.order is Order.WAVES:
            yield from _replaced_without_force(obj)
            yield from _failed_hook_remains(obj)
        yield from _short_ttl(obj)
        yield from _with_injected_sidecar(obj, context)


def _replaced_without_force(obj: LintObject) -> Iterator[Diagnostic]:
    object_options = obj.manifest.options
    if object_options.replace and not object_options.force and obj.manifest.hook_policies is None:
        has_annotation = OPTIONS in get_mapping(obj.body, "metadata", "annotations")
        yield Diagnostic(
            message=(
                f"{object_name(obj.ref)} is replaced and not forced: its next change is refused"
            ),
            at=FieldRef(
                obj.document, ("metadata", "annotations", OPTIONS) if has_annotation else ()
            ),
            why="`Replace=true` sends the whole Job, and its template is immutable",
            fix="write `Replace=true,Force=true`, or make it a hook",
        )


def _failed_hook_remains(obj: LintObject) -> Iterator[Diagnostic]:
    hook = obj.manifest.hook_policies
    if hook == (HookPolicy.SUCCEEDED,) and obj.manifest.ref.name == str(
        get_value(obj.body, "metadata", "name")
    ):
        argo_key = "argocd.argoproj.io/hook-delete-policy"
        helm_key = "helm.sh/hook-delete-policy"
        object_annotations = get_mapping(obj.body, "metadata", "annotations")
        yield Diagnostic(
            message=f"{object_name(obj.ref)} stays when it fails, and the next sync meets it",
            at=FieldRef(
                obj.document,
                (
                    "metadata",
                    "annotations",
                    argo_key if argo_key in object_annotations else helm_key,
                ),
            ),
            severity=Severity.NOTE,
            why="with `HookSucceeded` alone a failed Job is not deleted, and has the same name",
            fix="add `BeforeHookCreation`",
        )


def _short_ttl(obj: LintObject) -> Iterator[Diagnostic]:
    ttl = get_value(obj.body, "spec", "ttlSecondsAfterFinished")
    if not isinstance(ttl, int) or isinstance(ttl, bool) or ttl > MIN_TTL:
        return
    if obj.manifest.hook_policies is None and obj.unit.policy.semantics.name == "argocd":
        yield Diagnostic(
            message=(
                f"{object_name(obj.ref)} removes itself {ttl} s after its end,"
                " and Argo CD makes it again"
            ),
            at=FieldRef(obj.document, ("spec", "ttlSecondsAfterFinished")),
            why="Git still has it, so that it is missing: a sync that heals runs it over and over",
            fix="make it a hook, which is not kept, or leave `ttlSecondsAfterFinished` out",
            semantics=("argocd",),
        )


def _with_injected_sidecar(obj: LintObject, context: LintContext) -> Iterator[Diagnostic]:
    namespace_identity = (obj.unit.destination.cluster, "", "Namespace", "", obj.ref.namespace)
    namespaces = context.by_identity.get(namespace_identity, ())
    is_injected = any(
        get_mapping(namespace.body, "metadata", "labels").get("istio-injection") == "enabled"
        for namespace in namespaces
    )
    pod = get_mapping(pod_template(obj), "metadata")
    pod_settings = {**get_mapping(pod, "annotations"), **get_mapping(pod, "labels")}
    if is_injected and pod_settings.get("sidecar.istio.io/inject") not in {"false", False}:
        yield Diagnostic(
            message=f"{object_name(obj.ref)} may never end: its pods get a sidecar that goes on",
            at=FieldRef(obj.document),
            severity=Severity.NOTE,
            why=(
                "the namespace has `istio-injection: enabled`; a sidecar that is no native one"
                " keeps the pod running when the work is done"
            ),
            fix='label its pods `sidecar.istio.io/inject: "false"`, or use native sidecars',
        )


@rule(
    "ORD020",
    "A migration runs beside what it prepares",
    Severity.WARNING,
    why="objects of one wave are applied together: new pods may start before the migration ends",
    fix="put the migration into an earlier wave, or make it a PreSync or Sync hook",
)
def migration_parallel_to_app(context: LintContext) -> Iterator[Diagnostic]:
    by_step: dict[str, list[LintObject]] = {}
    for obj in context.objects:
        step = context.step_for(obj)
        if step is not None and obj.is_kind("apps", *LONG_RUNNING_KINDS):
            by_step.setdefault(step.id, []).append(obj)  # init containers may wait for it
            yield from _replicas_migrate(obj)
    for job in context.objects_of_kind("batch", "Job"):
        step = context.step_for(job)
        if step is None or not any(is_migration(container) for _, container in containers(job)):
            continue
        images = images_in(job)
        parallel = [
            workload
            for workload in by_step.get(step.id, ())
            if images & images_in(workload) and not [*containers(workload, "initContainers")]
        ]
        if parallel:
            app = parallel[0]
            yield Diagnostic(
                message=(
                    f"{object_name(job.ref)} migrates beside {object_name(app.ref)}, both in"
                    f" {step_name(step)}"
                ),
                at=FieldRef(job.document),
                related=(FieldRef(app.document),),
                sequence=(
                    (
                        f"{step_name(step)} applies {object_name(app.ref)} and"
                        f" {object_name(job.ref)} together and waits for neither before the other"
                    ),
                    "new pods start with the old schema while the migration runs",
                ),
                fix=(
                    "put the migration into a Kustomization of its own with `wait: true`, and let"
                    " this one depend on it"
                    if job.unit.policy.semantics.name == "flux"
                    else ""
                ),
                semantics=(job.unit.policy.semantics.name,),
            )


def _replicas_migrate(obj: LintObject) -> Iterator[Diagnostic]:
    if get_int(obj.body, "spec", "replicas", default=1) < 2 or obj.ref.kind.name == "DaemonSet":  # noqa: PLR2004
        return
    for path, container in containers(obj, "initContainers"):
        if is_migration(container):
            count = get_int(obj.body, "spec", "replicas", default=1)
            yield Diagnostic(
                message=f"each of {count} pods of {object_name(obj.ref)} migrates when it starts",
                at=FieldRef(obj.document, path),
                severity=Severity.NOTE,
                why="they do it at the same time, unless the tool takes a lock",
                fix="migrate once, in a Job of an earlier wave",
            )
            return


@rule(
    "ORD051",
    "A start may take longer than its deadline",
    Severity.WARNING,
    why=(
        "a Deployment that makes no progress for `progressDeadlineSeconds` is taken for failed,"
        " also while its startup probe would still wait"
    ),
    fix="raise `progressDeadlineSeconds` above the window of the startup probe",
)
def window_beyond_deadline(context: LintContext) -> Iterator[Diagnostic]:
    for obj in context.objects_of_kind("apps", "Deployment"):
        limit = get_int(obj.body, "spec", "progressDeadlineSeconds", default=PROGRESS_DEADLINE)
        for path, container in containers(obj, "containers"):
            window = start_window(container)
            if window > limit:
                yield Diagnostic(
                    message=(
                        f"{object_name(obj.ref)} may take {window} s to start,"
                        f" and counts as failed after {limit} s"
                    ),
                    at=FieldRef(obj.document, (*path, "startupProbe")),
                    sequence=(
                        f"its startup probe gives the container {window} s",
                        (
                            f"after {limit} s without progress the Deployment says"
                            " ProgressDeadlineExceeded"
                        ),
                        "Argo CD calls that Degraded and fails the sync; Flux calls it failed",
                    ),
                )
