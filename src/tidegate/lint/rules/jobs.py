"""Rules about Jobs and deadlines: replacement, TTL, sidecars, migrations, startup probes."""

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
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_text, get_value
from tidegate.model.plans.plan import HookPolicy, Step
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.policy import Order, Tracking

OPTIONS = "argocd.argoproj.io/sync-options"
MIN_TTL = 30
PROGRESS_DEADLINE = 600


RERUN_FIXES = {
    "argocd": "make the Job a Sync hook with the delete policy `BeforeHookCreation`, or set the"
    " sync options `Replace=true,Force=true` on it",
    "flux": "set `force: true` on the Kustomization, or the annotation"
    " `kustomize.toolkit.fluxcd.io/force: Enabled` on the Job",
}
"""How an engine can be made to run a changed Job again."""

DATABASE_IMAGE = lazy_regex(
    r"(?:^|/)(?:postgres|postgresql|postgis|timescaledb|timescaledb-ha|pgvector|mysql|mysql-server"
    r"|mariadb|percona|mongo|mongodb|clickhouse|clickhouse-server|cassandra|scylla|cockroach|neo4j"
    r"|influxdb|elasticsearch|opensearch|redis|valkey|keydb)$"
)
"""Images of database servers, without tag."""


@rule(
    "ORD019",
    "Job cannot be rerun, is recreated, or never completes",
    Severity.WARNING,
    why="the pod template of a Job is immutable, and a deleted Job has no result",
    fix="use the delete policy `BeforeHookCreation`, or the sync options `Replace=true,Force=true`",
)
def fragile_job(context: LintContext) -> Iterator[Diagnostic]:
    for obj in context.objects_of_kind("batch", "Job"):
        if obj.unit.policy.order is Order.WAVES:
            yield from _replaced_without_force(obj)
            yield from _failed_hook_remains(obj)
        yield from _immutable_template(obj, context)
        yield from _short_ttl(obj)
        yield from _with_injected_sidecar(obj, context)


def _replaced_without_force(obj: LintObject) -> Iterator[Diagnostic]:
    object_options = obj.manifest.options
    if object_options.replace and not object_options.force and obj.manifest.hook_policies is None:
        has_annotation = OPTIONS in get_mapping(obj.body, "metadata", "annotations")
        yield Diagnostic(
            message=(
                f"{object_name(obj.ref)} has `Replace=true` without `Force=true`, so the API server"
                " rejects its next change"
            ),
            at=FieldRef(
                obj.document, ("metadata", "annotations", OPTIONS) if has_annotation else ()
            ),
            why="`Replace=true` sends the complete Job, but the pod template of a Job is immutable",
            fix="set `Replace=true,Force=true`, or make the Job a hook",
        )


def _immutable_template(obj: LintObject, context: LintContext) -> Iterator[Diagnostic]:
    """Yield a plain Job whose next image fails the sync: it is in Git and keeps its name.

    A Job of a chart from elsewhere is not reported: its name may contain the version.
    """
    options, name = obj.manifest.options, get_text(obj.body, "metadata", "name")
    is_recreated = obj.manifest.hook_policies is not None or options.replace or options.force
    has_ttl = get_value(obj.body, "spec", "ttlSecondsAfterFinished") is not None
    semantics = obj.unit.policy.semantics.name
    is_release = obj.unit.id.kind == "HelmRelease"  # its Jobs are usually hooks of Helm
    if is_recreated or has_ttl or not name or is_release or semantics not in RERUN_FIXES:
        return
    if obj.document.location.name not in context.files:
        return
    runs_each_release = any(is_migration(container) for _, container in containers(obj))
    yield Diagnostic(
        message=f"the next change of {object_name(obj.ref)} fails the"
        f" {'sync' if semantics == 'argocd' else 'unit'}: the Job exists, and its pod template is"
        " immutable",
        at=FieldRef(obj.document),
        severity=Severity.WARNING if runs_each_release else Severity.NOTE,
        why="the changed template is applied to the finished Job, and the API server rejects it",
        fix=RERUN_FIXES[semantics],
        semantics=(semantics,),
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
            message=f"{object_name(obj.ref)} remains after a failure and conflicts with the next"
            " sync",
            at=FieldRef(
                obj.document,
                (
                    "metadata",
                    "annotations",
                    argo_key if argo_key in object_annotations else helm_key,
                ),
            ),
            severity=Severity.NOTE,
            why="`HookSucceeded` does not delete a failed Job, and the next Job has the same name",
            fix="add the delete policy `BeforeHookCreation`",
        )


def _short_ttl(obj: LintObject) -> Iterator[Diagnostic]:
    ttl = get_value(obj.body, "spec", "ttlSecondsAfterFinished")
    if not isinstance(ttl, int) or isinstance(ttl, bool):
        return
    if obj.unit.policy.tracking is Tracking.FLUX and obj.unit.id.kind == "Kustomization":
        yield _recreated_by_flux(obj, ttl)
    if ttl > MIN_TTL:
        return
    if obj.manifest.hook_policies is None and obj.unit.policy.semantics.name == "argocd":
        yield Diagnostic(
            message=(
                f"{object_name(obj.ref)} is deleted {ttl} s after it finishes, and Argo CD creates"
                " it again"
            ),
            at=FieldRef(obj.document, ("spec", "ttlSecondsAfterFinished")),
            why="the Job is still in Git, so Argo CD reports it as missing; with self-heal it runs"
            " again and again",
            fix="make the Job a hook, or remove `ttlSecondsAfterFinished`",
            semantics=("argocd",),
        )


def _recreated_by_flux(obj: LintObject, ttl: int) -> Diagnostic:
    return Diagnostic(
        message=(
            f"{object_name(obj.ref)} is deleted {ttl} s after it finishes, and Flux runs it again"
            " at the next interval"
        ),
        at=FieldRef(obj.document, ("spec", "ttlSecondsAfterFinished")),
        why="the Job is still in Git, so each reconciliation creates it if it is gone",
        fix="remove `ttlSecondsAfterFinished`, or make it a CronJob if it should run again and"
        " again",
        semantics=("flux",),
        cause="Jobs that Flux runs again",
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
            message=f"{object_name(obj.ref)} may never complete because of an injected sidecar",
            at=FieldRef(obj.document),
            severity=Severity.NOTE,
            why=(
                "the namespace has `istio-injection: enabled`; unless it is a native sidecar, the"
                " proxy keeps the pod running after the Job is done"
            ),
            fix='label the pod template with `sidecar.istio.io/inject: "false"`, or use native'
            " sidecars",
        )


@rule(
    "ORD020",
    "Migration runs in parallel with its application, or after it",
    Severity.WARNING,
    why="objects of one wave are applied together, so new pods can start before the migration ends",
    fix="move the migration to an earlier wave, or make it a PreSync or Sync hook",
)
def migration_parallel_to_app(context: LintContext) -> Iterator[Diagnostic]:
    by_step: dict[str, list[LintObject]] = {}
    for obj in context.objects:
        step = context.step_for(obj)
        if step is not None and obj.is_kind("apps", *LONG_RUNNING_KINDS):
            by_step.setdefault(step.id, []).append(
                obj
            )  # init containers may wait for the migration
            yield from _replicas_migrate(obj)
    for job in context.objects_of_kind("batch", "Job"):
        step = context.step_for(job)
        if step is None or not any(is_migration(container) for _, container in containers(job)):
            continue
        yield from _migration_after_app(context, job, step, by_step)
        images = _application_images(job)
        parallel = [
            workload
            for workload in by_step.get(step.id, ())
            if images & images_in(workload) and not [*containers(workload, "initContainers")]
        ]
        if parallel:
            app = parallel[0]
            yield Diagnostic(
                message=(
                    f"migration {object_name(job.ref)} runs in parallel with"
                    f" {object_name(app.ref)}, both in {step_name(step)}"
                ),
                at=FieldRef(job.document),
                related=(FieldRef(app.document),),
                sequence=(
                    (
                        f"{step_name(step)} applies {object_name(app.ref)} and"
                        f" {object_name(job.ref)} together"
                    ),
                    (
                        f"new pods of {object_name(app.ref)} start with the old schema while the"
                        " migration runs"
                    ),
                ),
                fix=(
                    "move the migration to a separate Kustomization with `wait: true`, and add"
                    " `dependsOn` to this Kustomization"
                    if job.unit.policy.semantics.name == "flux"
                    else ""
                ),
                semantics=(job.unit.policy.semantics.name,),
            )


def _application_images(job: LintObject) -> set[str]:
    """Return the images of a migration that its application may have, too.

    A migration that runs the programs of a database server must wait for that server.
    """
    return {image for image in images_in(job) if not DATABASE_IMAGE.search(image)}


def _migration_after_app(
    context: LintContext, job: LintObject, step: Step, by_step: dict[str, list[LintObject]]
) -> Iterator[Diagnostic]:
    """Yield a migration in a later step of its unit than a workload with the same image."""
    images = _application_images(job)
    earlier = (
        (other_step, workload)
        for other_step in context.order.by_unit.get(job.unit.id, ())
        if context.order.is_after(step.id, other_step.id)
        for workload in by_step.get(other_step.id, ())
    )
    for app_step, app in earlier:
        waits = [*containers(app, "initContainers")]
        if waits or not images & images_in(app) or job.document.location.name not in context.files:
            continue
        name = object_name(app.ref)
        yield Diagnostic(
            message=(
                f"migration {object_name(job.ref)} in {step_name(step)} runs after {name} in"
                f" {step_name(app_step)}"
            ),
            at=FieldRef(job.document),
            related=(FieldRef(app.document),),
            sequence=(
                f"{step_name(app_step)} applies {name} with the new image",
                f"its pods run with the old schema until {object_name(job.ref)} ends",
            ),
            semantics=(job.unit.policy.semantics.name,),
        )
        return


def _replicas_migrate(obj: LintObject) -> Iterator[Diagnostic]:
    if get_int(obj.body, "spec", "replicas", default=1) < 2 or obj.ref.kind.name == "DaemonSet":  # noqa: PLR2004
        return
    for path, container in containers(obj, "initContainers"):
        if is_migration(container):
            count = get_int(obj.body, "spec", "replicas", default=1)
            yield Diagnostic(
                message=f"each of the {count} pods of {object_name(obj.ref)} runs the migration at"
                " startup",
                at=FieldRef(obj.document, path),
                severity=Severity.NOTE,
                why="the migrations run at the same time, unless the migration tool takes a lock",
                fix="run the migration once, in a Job of an earlier wave",
            )
            return


@rule(
    "ORD051",
    "Startup probe allows more time than `progressDeadlineSeconds`",
    Severity.WARNING,
    why=(
        "a Deployment without progress for `progressDeadlineSeconds` counts as failed, even if its"
        " startup probe still allows more time"
    ),
    fix="set `progressDeadlineSeconds` to more than the time that the startup probe allows",
)
def window_beyond_deadline(context: LintContext) -> Iterator[Diagnostic]:
    for obj in context.objects_of_kind("apps", "Deployment"):
        limit = get_int(obj.body, "spec", "progressDeadlineSeconds", default=PROGRESS_DEADLINE)
        for path, container in containers(obj, "containers"):
            window = start_window(container)
            if window > limit:
                yield Diagnostic(
                    message=(
                        f"startup probe of {object_name(obj.ref)} allows {window} s, but the"
                        f" Deployment counts as failed after {limit} s"
                    ),
                    at=FieldRef(obj.document, (*path, "startupProbe")),
                    sequence=(
                        f"the startup probe allows the container {window} s to start",
                        (
                            f"after {limit} s without progress the Deployment reports"
                            " ProgressDeadlineExceeded"
                        ),
                        (
                            "Argo CD reports Degraded and fails the sync; Flux fails the health"
                            " check"
                        ),
                    ),
                    cause=f"{window} {limit}",
                )
