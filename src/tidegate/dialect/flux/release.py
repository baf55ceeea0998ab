"""Flux HelmReleases: a chart, its values, and the options of the Helm actions."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from tidegate.dialect.declared import Declarations
from tidegate.dialect.flux.field_reader import FieldReader, FluxResource, open_resource
from tidegate.dialect.flux.fields import (
    REPOSITORY,
    read_chart,
    read_cluster,
    read_dependencies,
    read_expressions,
    read_identity,
    read_ignore_rules,
    read_images,
    read_patches,
    read_references,
    read_source,
)
from tidegate.dialect.helm.action_policy import with_action
from tidegate.dialect.semantics import KSTATUS
from tidegate.documents import Document
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_labels
from tidegate.model.k8s.objects import Json, Propagation
from tidegate.model.times import MINUTE, Ms
from tidegate.model.units.chart_request import ChartRequest, ValuesFile
from tidegate.model.units.policy import ObjectOptions, Order, Policy, Tracking
from tidegate.model.units.release_history import (
    CrdPolicy,
    DriftMode,
    ReleaseAction,
    ReleaseActionSpec,
    ReleaseSpec,
    ReleaseTestSpec,
)
from tidegate.model.units.rendering import FluxDetails, FluxOverrides
from tidegate.model.units.semantics import FLUX, UNLIMITED, Retry
from tidegate.model.units.source import SourceObject
from tidegate.model.units.unit import Destination, Unit, UnitId, UnitSource

CHART_REFS = ("OCIRepository", "HelmChart", "ExternalArtifact")
NO_HOOKS = "nohooks"
POST_RENDER_STRATEGIES = ("combined", NO_HOOKS, "separate")
"""Whether post-renderers get hooks: together with the other objects, not at all, or separately."""
CRD_POLICIES = ("Skip", "Create", "CreateReplace")
FAILURE_STRATEGIES = ("RemediateOnFailure", "RetryOnFailure")
REMEDIATION_STRATEGIES = ("rollback", "uninstall")
SERVER_SIDE_APPLY_MODES = ("auto", "enabled", "disabled")
IN_PLACE_UPDATE = "InPlaceUpdate"
NAME_CHANGE_STRATEGIES = ("Reinstall", IN_PLACE_UPDATE)
"""What happens to a release when its chart is renamed."""
PROPAGATIONS = ("background", "foreground", "orphan")
MAX_NAME_LENGTH, NAME_PREFIX_LENGTH, DIGEST_LENGTH = 53, 40, 12
"""The length of a name, and what is kept of a longer one: its beginning, and of its digest."""
DEFAULT_MAX_HISTORY = 5
"""Default number of revisions in the history of a release."""
FIVE_MINUTES = Ms(5 * MINUTE)
UNSUPPORTED = {
    "chart.spec.verify": "signatures are not verified",
    "install.serverSideApply": "Tidegate always uses server-side apply",
    "upgrade.preserveValues": "values of earlier releases are unknown",
    "waitStrategy.name": "objects are checked one by one, like the `poller` strategy does",
}
DEFAULTS: dict[str, Json] = {
    "install.serverSideApply": True,
    "waitStrategy.name": "poller",
}
"""Default values of these fields."""


def read_helm_release(document: Document, namespace: str) -> Declarations:
    """Read the unit of a HelmRelease; `namespace` is used if the HelmRelease has none."""
    resource = open_resource(document, namespace)
    if not resource.name:
        return Declarations(findings=resource.findings)
    spec, unit_id = resource.spec, UnitId("HelmRelease", "", resource.namespace, resource.name)
    target_namespace = spec.text("targetNamespace", default=resource.namespace)
    release_spec = ReleaseSpec(
        name=release_name(spec, unit_id.name),
        namespace=target_namespace,
        storage=spec.text("storageNamespace", default=unit_id.namespace),
        max_history=spec.number("maxHistory") if spec.has("maxHistory") else DEFAULT_MAX_HISTORY,
        keeps_history=spec.child("uninstall").flag("keepHistory"),
        install=_action_spec(spec, "install"),
        upgrade=_action_spec(spec, "upgrade"),
        rollback=_action_spec(spec, "rollback"),
        uninstall=_action_spec(spec, "uninstall"),
        test=_test_spec(spec),
        drift=_drift_mode(spec),
        ignores=tuple(read_ignore_rules(spec.child("driftDetection"))),
        reinstalls_on_chart_change=_reinstalls_on_rename(spec),
    )
    unit = Unit(
        id=unit_id,
        location=resource.location,
        sources=tuple(_sources(resource, release_spec)),
        destination=Destination(read_cluster(spec), target_namespace),
        policy=_policy(spec, unit_id, release_spec),
        dependencies=tuple(read_dependencies(spec, unit_id)),
        is_suspended=spec.flag("suspend"),
        labels=get_labels(document.body),
    )
    spec.duration("interval", required=True)
    spec.report_unsupported(UNSUPPORTED, DEFAULTS)
    _report_apply_options(spec)
    return Declarations(units=(unit,), findings=resource.findings)


def _report_apply_options(spec: FieldReader) -> None:
    """Report options of how objects are applied that are unsupported or have no effect."""
    for name in ("upgrade", "rollback"):
        action = spec.child(name)
        if (
            action.text("serverSideApply", choices=SERVER_SIDE_APPLY_MODES)
            == SERVER_SIDE_APPLY_MODES[-1]
        ):
            action.report_unsupported_field(
                "serverSideApply", UNSUPPORTED["install.serverSideApply"]
            )
    if spec.child("rollback").flag("recreate"):
        why = "helm-controller 1.5 and later use Helm 4, which has no such option"
        spec.child("rollback").report_ignored(("recreate",), why, severity=Severity.NOTE)


def release_name(spec: FieldReader, name: str) -> str:
    """Return the Helm release name; a name that is too long is cut and gets a digest.

    Like `ShortenName` in `internal/release/name.go` of helm-controller 1.6.
    """
    target = spec.text("targetNamespace")
    full_name = spec.text("releaseName") or (f"{target}-{name}" if target else name)
    if len(spec.text("releaseName")) > MAX_NAME_LENGTH:
        problem = f"has more than {MAX_NAME_LENGTH} characters"
        spec.report("flux.length", "releaseName", problem, fix="use a shorter name")
    if len(full_name) <= MAX_NAME_LENGTH:
        return full_name
    return (
        f"{full_name[:NAME_PREFIX_LENGTH]}-{sha256(full_name.encode()).hexdigest()[:DIGEST_LENGTH]}"
    )


def _sources(resource: FluxResource, release_spec: ReleaseSpec) -> Iterator[UnitSource]:
    spec = resource.spec
    source, path, defaults = _chart(resource)
    metadata = spec.child("commonMetadata")
    skips_crds = release_spec.install.crds is CrdPolicy.SKIP
    request = ChartRequest(
        chart=path,
        name=release_spec.name,
        namespace=release_spec.namespace,
        values=spec.child("values").body,
        defaults=defaults,
        kube_version="",
        include_crds=not skips_crds,
        include_tests=release_spec.test.runs,
        skip_schema=not release_spec.install.checks_values,
        checks_lock=False,
    )
    details = FluxDetails(
        value_references=read_references(spec, "valuesFrom", "values.yaml"),
        labels=metadata.string_map("labels"),
        annotations=metadata.string_map("annotations"),
        post_renderers=tuple(_post_renders(resource)),
        skips_hooks=spec.text("postRenderStrategy", choices=POST_RENDER_STRATEGIES) == NO_HOOKS,
    )
    if source is not None:
        yield UnitSource(source=source, request=request, details=details)


def _chart(resource: FluxResource) -> tuple[SourceObject | None, str, tuple[ValuesFile, ...]]:
    """Return the source of the chart, its path, and the files that replace default values."""
    spec = resource.spec
    if spec.has("chart") == spec.has("chartRef"):
        problem = "needs exactly one of `chart` and `chartRef`"
        spec.report("flux.exclusive", "", problem, fix="set exactly one")
    if spec.has("chartRef"):
        return read_source(spec.child("chartRef"), resource.namespace, CHART_REFS), ".", ()
    if not spec.has("chart"):
        return None, ".", ()
    chart = spec.child("chart").child("spec")
    source, defaults = read_chart(chart, resource.namespace, is_old=resource.is_old)
    if source is None or source.kind == REPOSITORY:
        return source, ".", defaults
    return msgspec.structs.replace(source, chart=""), source.chart, defaults


def _post_renders(resource: FluxResource) -> Iterator[FluxOverrides]:
    for renderer in resource.spec.children("postRenderers"):
        if renderer.has("kustomize"):
            changes = renderer.child("kustomize")
            patches = read_patches(changes, is_old=resource.is_old)
            yield FluxOverrides(images=read_images(changes), patches=patches)


def _policy(spec: FieldReader, unit_id: UnitId, release_spec: ReleaseSpec) -> Policy:
    """Return the policy: hooks are ordered by weight, other objects by kind."""
    policy = Policy(
        semantics=FLUX,
        rules=KSTATUS,
        order=Order.HELM,
        prune=True,
        cascades=True,
        tracking=Tracking.FLUX,
        manager="helm-controller",
        object_options=ObjectOptions(propagation=Propagation.BACKGROUND),
        create_namespace=spec.child("install").flag("createNamespace"),
        identity=read_identity(spec, unit_id.namespace),
        expressions=read_expressions(spec),
        deletion_propagation=Propagation(_propagation(spec).capitalize()),
        self_heal=release_spec.drift is DriftMode.ENABLED,
    )
    return with_action(policy, release_spec)


def _test_spec(spec: FieldReader) -> ReleaseTestSpec:
    test = spec.child("test")
    filters = [
        (entry.text("name", required=True), entry.flag("exclude"))
        for entry in test.children("filters")
    ]
    return ReleaseTestSpec(
        runs=test.flag("enable"),
        timeout=test.duration("timeout") or spec.duration("timeout") or FIVE_MINUTES,
        ignores=test.flag("ignoreFailures"),
        include=tuple(name for name, excluded in filters if not excluded),
        exclude=tuple(name for name, excluded in filters if excluded),
    )


def _drift_mode(spec: FieldReader) -> DriftMode:
    detection, default = spec.child("driftDetection"), DriftMode.DISABLED
    return DriftMode(detection.text("mode", default=default, choices=tuple(DriftMode)))


def _reinstalls_on_rename(spec: FieldReader) -> bool:
    strategy = spec.child("upgrade").text("chartNameChangeStrategy", choices=NAME_CHANGE_STRATEGIES)
    return strategy != IN_PLACE_UPDATE


def _propagation(spec: FieldReader) -> str:
    return spec.child("uninstall").text("deletionPropagation", choices=PROPAGATIONS) or "background"


def _action_spec(spec: FieldReader, name: str) -> ReleaseActionSpec:
    """Read the options of an install, upgrade, rollback or uninstall action."""
    action = spec.child(name)
    skips_crds = action.flag("skipCRDs")
    crds = CrdPolicy(
        action.text("crds", choices=CRD_POLICIES)
        or (CRD_POLICIES[0] if skips_crds else CRD_POLICIES[1])
    )
    retry, remedy = _retry_and_remediation(action, name)
    return ReleaseActionSpec(
        hooks=not action.flag("disableHooks"),
        waits=not action.flag("disableWait"),
        waits_for_jobs=not action.flag("disableWaitForJobs"),
        crds=crds,
        timeout=action.duration("timeout") or spec.duration("timeout") or FIVE_MINUTES,
        retry=retry,
        remediation=remedy,
        replaces=action.flag("force"),
        checks=not action.flag("disableOpenAPIValidation"),
        checks_values=not action.flag("disableSchemaValidation"),
        fail_on_other_owner=action.flag("disableTakeOwnership"),
        ignore_test_failures=_ignores_test_failures(spec, name),
        cleanup_on_fail=action.flag("cleanupOnFail"),
    )


def _ignores_test_failures(spec: FieldReader, name: str) -> bool:
    """Return whether failed tests do not fail an action."""
    remediation = spec.child(name).child("remediation")
    if remediation.has("ignoreTestFailures"):
        return remediation.flag("ignoreTestFailures")
    return spec.child("test").flag("ignoreFailures")


def _retry_and_remediation(action: FieldReader, name: str) -> tuple[Retry, ReleaseAction | None]:
    """Return the retries of an action, and its remediation.

    The default is no retry; a negative number means no limit. An upgrade with retries is also
    remediated after the last one by default. Each retry is planned anew: it is another
    revision, and a failed install is retried as an upgrade.
    """
    remediation, strategy = action.child("remediation"), action.child("strategy")
    retries, delay = remediation.number("retries"), Ms(0)
    remediates_last = remediation.flag("remediateLastFailure")
    if name == "upgrade" and not remediation.has("remediateLastFailure"):
        remediates_last = retries > 0
    remedy = ReleaseAction.UNINSTALL if retries or remediates_last else None
    remediation_strategy = remediation.text("strategy", choices=REMEDIATION_STRATEGIES)
    if (
        remedy is not None
        and name == "upgrade"
        and remediation_strategy != REMEDIATION_STRATEGIES[1]
    ):
        remedy = ReleaseAction.ROLLBACK
    if strategy.text("name", choices=FAILURE_STRATEGIES) == FAILURE_STRATEGIES[1]:
        retries, delay = -1, strategy.duration("retryInterval") or FIVE_MINUTES
        remedy, remediates_last = None, False
    cleans_up = remedy is None and action.flag("cleanupOnFail")
    retry = Retry(
        limit=retries if retries >= 0 else UNLIMITED,
        backoff=delay,
        factor=1,
        backoff_limit=delay,
        restarts_unit=True,
        retries_gates=True,
        uses_current_revision=True,
        remediates_before_retry=remedy is not None or cleans_up,
        remediates_last=remediates_last or cleans_up,
        keeps_count=True,
    )
    return retry, remedy
