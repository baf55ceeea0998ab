"""Jobs: how they are replaced, kept, started beside what they prepare, and held up."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.lint.pods import (
    LASTING,
    containers,
    images_in,
    migrates,
    start_window,
    template_of,
)
from tidegate.lint.rule import Mark, RuleRemark, rule
from tidegate.lint.scene import Actor, LintScene
from tidegate.lint.words import name, turn
from tidegate.model.finding import Severity
from tidegate.model.plan import HookPolicy
from tidegate.model.policy import Order
from tidegate.model.reading import mapping, number, part

OPTIONS = "argocd.argoproj.io/sync-options"
SHORTEST_LIFE = 30
PROGRESS_DEADLINE = 600


@rule(
    "ORD019",
    "A Job cannot be run again, or its end is not seen",
    Severity.WARNING,
    why="a Job cannot be changed once it is there, and one that is gone says nothing",
    fix="keep the delete policy `BeforeHookCreation`, or let the Job be replaced by force",
)
def fragile_job(scene: LintScene) -> Iterator[RuleRemark]:
    for actor in scene.of_kind("batch", "Job"):
        if actor.unit.policy.order is Order.WAVES:
            yield from _replaced(actor)
            yield from _kept(actor)
        yield from _short_lived(actor)
        yield from _with_sidecar(actor, scene)


def _replaced(actor: Actor) -> Iterator[RuleRemark]:
    handling = actor.manifest.handling
    if handling.replaces and not handling.forces and actor.manifest.hook is None:
        noted = OPTIONS in mapping(actor.body, "metadata", "annotations")
        yield RuleRemark(
            sentence=f"{name(actor.ref)} is replaced and not forced: its next change is refused",
            at=Mark(actor.document, ("metadata", "annotations", OPTIONS) if noted else ()),
            why="`Replace=true` sends the whole Job, and its template is immutable",
            fix="write `Replace=true,Force=true`, or make it a hook",
        )


def _kept(actor: Actor) -> Iterator[RuleRemark]:
    hook = actor.manifest.hook
    if hook == (HookPolicy.SUCCEEDED,) and actor.manifest.ref.name == str(
        part(actor.body, "metadata", "name")
    ):
        key = "argocd.argoproj.io/hook-delete-policy"
        helm = "helm.sh/hook-delete-policy"
        notes = mapping(actor.body, "metadata", "annotations")
        yield RuleRemark(
            sentence=f"{name(actor.ref)} stays when it fails, and the next sync meets it",
            at=Mark(actor.document, ("metadata", "annotations", key if key in notes else helm)),
            severity=Severity.NOTE,
            why="with `HookSucceeded` alone a failed Job is not deleted, and has the same name",
            fix="add `BeforeHookCreation`",
        )


def _short_lived(actor: Actor) -> Iterator[RuleRemark]:
    life = part(actor.body, "spec", "ttlSecondsAfterFinished")
    if not isinstance(life, int) or isinstance(life, bool) or life > SHORTEST_LIFE:
        return
    if actor.manifest.hook is None and actor.unit.policy.semantics.name == "argocd":
        yield RuleRemark(
            sentence=f"{name(actor.ref)} removes itself {life} s after its end,"
            " and Argo CD makes it again",
            at=Mark(actor.document, ("spec", "ttlSecondsAfterFinished")),
            why="Git still has it, so that it is missing: a sync that heals runs it over and over",
            fix="make it a hook, which is not kept, or leave `ttlSecondsAfterFinished` out",
            semantics=("argocd",),
        )


def _with_sidecar(actor: Actor, scene: LintScene) -> Iterator[RuleRemark]:
    home = (actor.unit.destination.cluster, "", "Namespace", "", actor.ref.namespace)
    spaces = scene.by_identity.get(home, ())
    injected = any(
        mapping(one.body, "metadata", "labels").get("istio-injection") == "enabled"
        for one in spaces
    )
    pod = mapping(template_of(actor), "metadata")
    asked = {**mapping(pod, "annotations"), **mapping(pod, "labels")}
    if injected and asked.get("sidecar.istio.io/inject") not in {"false", False}:
        yield RuleRemark(
            sentence=f"{name(actor.ref)} may never end: its pods get a sidecar that goes on",
            at=Mark(actor.document),
            severity=Severity.NOTE,
            why="the namespace has `istio-injection: enabled`; a sidecar that is no native one"
            " keeps the pod running when the work is done",
            fix='label its pods `sidecar.istio.io/inject: "false"`, or use native sidecars',
        )


@rule(
    "ORD020",
    "A migration runs beside what it prepares",
    Severity.WARNING,
    why="objects of one wave are applied together: new pods may start before the migration ends",
    fix="put the migration into an earlier wave, or make it a PreSync or Sync hook",
)
def migration_beside_app(scene: LintScene) -> Iterator[RuleRemark]:
    by_step: dict[str, list[Actor]] = {}
    for actor in scene.actors:
        step = scene.step_of(actor)
        if step is not None and actor.is_a("apps", *LASTING):
            by_step.setdefault(step.id, []).append(actor)  # init containers may wait for it
            yield from _many_migrate(actor)
    for job in scene.of_kind("batch", "Job"):
        step = scene.step_of(job)
        if step is None or not any(migrates(one) for _, one in containers(job)):
            continue
        images = images_in(job)
        beside = [
            one
            for one in by_step.get(step.id, ())
            if images & images_in(one) and not [*containers(one, "initContainers")]
        ]
        if beside:
            app = beside[0]
            yield RuleRemark(
                sentence=f"{name(job.ref)} migrates beside {name(app.ref)}, both in {turn(step)}",
                at=Mark(job.document),
                also=(Mark(app.document),),
                story=(
                    (
                        f"{turn(step)} applies {name(app.ref)} and {name(job.ref)} together"
                        " and waits for neither before the other"
                    ),
                    "new pods start with the old schema while the migration runs",
                ),
                fix="put the migration into a Kustomization of its own with `wait: true`, and let"
                " this one depend on it"
                if job.unit.policy.semantics.name == "flux"
                else "",
                semantics=(job.unit.policy.semantics.name,),
            )


def _many_migrate(actor: Actor) -> Iterator[RuleRemark]:
    if number(actor.body, "spec", "replicas", default=1) < 2 or actor.ref.kind.name == "DaemonSet":  # noqa: PLR2004
        return
    for path, container in containers(actor, "initContainers"):
        if migrates(container):
            count = number(actor.body, "spec", "replicas", default=1)
            yield RuleRemark(
                sentence=f"each of {count} pods of {name(actor.ref)} migrates when it starts",
                at=Mark(actor.document, path),
                severity=Severity.NOTE,
                why="they do it at the same time, unless the tool takes a lock",
                fix="migrate once, in a Job of an earlier wave",
            )
            return


@rule(
    "ORD051",
    "A start may take longer than its deadline",
    Severity.WARNING,
    why="a Deployment that makes no progress for `progressDeadlineSeconds` is taken for failed,"
    " also while its startup probe would still wait",
    fix="raise `progressDeadlineSeconds` above the window of the startup probe",
)
def window_beyond_deadline(scene: LintScene) -> Iterator[RuleRemark]:
    for actor in scene.of_kind("apps", "Deployment"):
        limit = number(actor.body, "spec", "progressDeadlineSeconds", default=PROGRESS_DEADLINE)
        for path, container in containers(actor, "containers"):
            window = start_window(container)
            if window > limit:
                yield RuleRemark(
                    sentence=f"{name(actor.ref)} may take {window} s to start,"
                    f" and counts as failed after {limit} s",
                    at=Mark(actor.document, (*path, "startupProbe")),
                    story=(
                        f"its startup probe gives the container {window} s",
                        (
                            f"after {limit} s without progress the Deployment says"
                            " ProgressDeadlineExceeded"
                        ),
                        "Argo CD calls that Degraded and fails the sync; Flux calls it failed",
                    ),
                )
