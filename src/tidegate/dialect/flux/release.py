"""Flux's HelmRelease: a chart, its values from many places, and how Helm is to go about it."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from tidegate.dialect.declared import Declared
from tidegate.dialect.flux.fields import (
    REPOSITORY,
    read_chart,
    read_cluster,
    read_dependencies,
    read_expressions,
    read_identity,
    read_ignores,
    read_images,
    read_patches,
    read_references,
    read_source,
)
from tidegate.dialect.flux.part import FluxResource, Part, open_resource
from tidegate.dialect.helm.acting import act
from tidegate.dialect.semantics import KSTATUS
from tidegate.documents import Document
from tidegate.model.ledger import (
    Action,
    ActionTerms,
    CrdPolicy,
    DriftMode,
    ReleaseTerms,
    TrialTerms,
)
from tidegate.model.moment import MINUTE, Ms
from tidegate.model.objects import Json, Propagation
from tidegate.model.policy import Handling, Order, Policy, Tracking
from tidegate.model.reading import labels_of
from tidegate.model.release import Release, ValuesFile
from tidegate.model.rendering import FluxDetails, FluxOverrides
from tidegate.model.semantics import ENDLESS, FLUX, Retry
from tidegate.model.source import SourceObject
from tidegate.model.unit import Destination, Unit, UnitId, UnitSource

CHART_REFS = ("OCIRepository", "HelmChart", "ExternalArtifact")
NO_HOOKS = "nohooks"
STRATEGIES = ("combined", NO_HOOKS, "separate")
"""Whether post-renderers see hooks: with the rest, not at all, or by themselves."""
CRDS = ("Skip", "Create", "CreateReplace")
FAILURE_STRATEGIES = ("RemediateOnFailure", "RetryOnFailure")
REMEDIES = ("rollback", "uninstall")
APPLIES = ("auto", "enabled", "disabled")
IN_PLACE = "InPlaceUpdate"
NAME_CHANGES = ("Reinstall", IN_PLACE)
"""What becomes of a release whose chart has another name by now."""
PROPAGATIONS = ("background", "foreground", "orphan")
LONGEST, KEPT, DIGITS = 53, 40, 12
"""The length of a name, and what is kept of a longer one: its beginning, and of its digest."""
MOST_KEPT = 5
"""Revisions of a release, where nobody says how many."""
FIVE_MINUTES = Ms(5 * MINUTE)
UNPLAYED = {
    "chart.spec.verify": "signatures are not verified",
    "install.serverSideApply": "objects are applied by the server",
    "upgrade.preserveValues": "values of earlier releases are not known",
    "waitStrategy.name": "objects are judged one by one, as the poller does",
}
USUAL: dict[str, Json] = {
    "install.serverSideApply": True,
    "waitStrategy.name": "poller",
}
"""What these are where nobody says anything."""


def read_release(document: Document, namespace: str) -> Declared:
    """The unit that a HelmRelease is; one that names no namespace is in this one."""
    resource = open_resource(document, namespace)
    if not resource.name:
        return Declared(findings=resource.findings)
    spec, own = resource.spec, UnitId("HelmRelease", "", resource.home, resource.name)
    inside = spec.text("targetNamespace", default=resource.home)
    terms = ReleaseTerms(
        name=release_name(spec, own.name),
        namespace=inside,
        storage=spec.text("storageNamespace", default=own.namespace),
        most=spec.number("maxHistory") if spec.has("maxHistory") else MOST_KEPT,
        keeps_history=spec.part("uninstall").flag("keepHistory"),
        install=_action(spec, "install"),
        upgrade=_action(spec, "upgrade"),
        rollback=_action(spec, "rollback"),
        uninstall=_action(spec, "uninstall"),
        test=_tests(spec),
        drift=_drift(spec),
        ignores=tuple(read_ignores(spec.part("driftDetection"))),
        renews=_renews(spec),
    )
    unit = Unit(
        id=own,
        where=resource.place,
        sources=tuple(_sources(resource, terms)),
        destination=Destination(read_cluster(spec), inside),
        policy=_policy(spec, own, terms),
        dependencies=tuple(read_dependencies(spec, own)),
        suspended=spec.flag("suspend"),
        labels=labels_of(document.body),
    )
    spec.span("interval", needed=True)
    spec.tell_unplayed(UNPLAYED, USUAL)
    _tell_of_applying(spec)
    return Declared(units=(unit,), findings=resource.findings)


def _tell_of_applying(spec: Part) -> None:
    """What is said of how objects are written, and comes to nothing here or anywhere."""
    for name in ("upgrade", "rollback"):
        said = spec.part(name)
        if said.text("serverSideApply", among=APPLIES) == APPLIES[-1]:
            said.tell_difference("serverSideApply", UNPLAYED["install.serverSideApply"])
    if spec.part("rollback").flag("recreate"):
        spec.part("rollback").tell_ignored(("recreate",), "Helm 4 knows it no more")


def release_name(spec: Part, name: str) -> str:
    """The name that Helm knows it by: what does not fit is cut, and told apart by a digest."""
    target = spec.text("targetNamespace")
    whole = spec.text("releaseName") or (f"{target}-{name}" if target else name)
    if len(spec.text("releaseName")) > LONGEST:
        what = f"has more than {LONGEST} characters"
        spec.tell("flux.length", "releaseName", what, fix="choose a shorter one")
    if len(whole) <= LONGEST:
        return whole
    return f"{whole[:KEPT]}-{sha256(whole.encode()).hexdigest()[:DIGITS]}"


def _sources(resource: FluxResource, terms: ReleaseTerms) -> Iterator[UnitSource]:
    spec = resource.spec
    source, path, defaults = _chart(resource)
    metadata = spec.part("commonMetadata")
    skips = terms.install.crds is CrdPolicy.SKIP
    request = Release(
        chart=path,
        name=terms.name,
        namespace=terms.namespace,
        values=spec.part("values").body,
        defaults=defaults,
        kube_version="",
        include_crds=not skips,
        include_tests=terms.test.runs,
        skip_schema=not terms.install.checks_values,
        checks_lock=False,
    )
    details = FluxDetails(
        values=read_references(spec, "valuesFrom", "values.yaml"),
        labels=metadata.texts("labels"),
        annotations=metadata.texts("annotations"),
        post_renders=tuple(_post_renders(resource)),
        spares_hooks=spec.text("postRenderStrategy", among=STRATEGIES) == NO_HOOKS,
    )
    if source is not None:
        yield UnitSource(source=source, request=request, details=details)


def _chart(resource: FluxResource) -> tuple[SourceObject | None, str, tuple[ValuesFile, ...]]:
    """What holds the chart, the path in it, and the files in place of the chart's own values."""
    spec = resource.spec
    if spec.has("chart") == spec.has("chartRef"):
        spec.tell("flux.exclusive", "", "needs one of `chart` and `chartRef`", fix="have one")
    if spec.has("chartRef"):
        return read_source(spec.part("chartRef"), resource.home, CHART_REFS), ".", ()
    if not spec.has("chart"):
        return None, ".", ()
    chart = spec.part("chart").part("spec")
    source, defaults = read_chart(chart, resource.home, is_old=resource.is_old)
    if source is None or source.kind == REPOSITORY:
        return source, ".", defaults
    return msgspec.structs.replace(source, chart=""), source.chart, defaults


def _post_renders(resource: FluxResource) -> Iterator[FluxOverrides]:
    for one in resource.spec.parts("postRenderers"):
        if one.has("kustomize"):
            changes = one.part("kustomize")
            patches = read_patches(changes, is_old=resource.is_old)
            yield FluxOverrides(images=read_images(changes), patches=patches)


def _policy(spec: Part, own: UnitId, terms: ReleaseTerms) -> Policy:
    """Hooks go by their weights, and the rest by kinds."""
    policy = Policy(
        semantics=FLUX,
        rules=KSTATUS,
        order=Order.HELM,
        prunes=True,
        cascades=True,
        tracking=Tracking.FLUX,
        manager="helm-controller",
        handling=Handling(propagation=Propagation.BACKGROUND),
        creates_namespace=spec.part("install").flag("createNamespace"),
        identity=read_identity(spec, own.namespace),
        expressions=read_expressions(spec),
        farewell=Propagation(_propagation(spec).capitalize()),
        heals=terms.drift is DriftMode.ENABLED,
    )
    return act(policy, terms)


def _tests(spec: Part) -> TrialTerms:
    said = spec.part("test")
    filters = [
        (one.text("name", needed=True), one.flag("exclude")) for one in said.parts("filters")
    ]
    return TrialTerms(
        runs=said.flag("enable"),
        timeout=said.span("timeout") or spec.span("timeout") or FIVE_MINUTES,
        ignores=said.flag("ignoreFailures"),
        only=tuple(name for name, excluded in filters if not excluded),
        but=tuple(name for name, excluded in filters if excluded),
    )


def _drift(spec: Part) -> DriftMode:
    said, usual = spec.part("driftDetection"), DriftMode.DISABLED
    return DriftMode(said.text("mode", default=usual, among=tuple(DriftMode)))


def _renews(spec: Part) -> bool:
    said = spec.part("upgrade").text("chartNameChangeStrategy", among=NAME_CHANGES)
    return said != IN_PLACE


def _propagation(spec: Part) -> str:
    return spec.part("uninstall").text("deletionPropagation", among=PROPAGATIONS) or "background"


def _action(spec: Part, name: str) -> ActionTerms:
    """How Helm is to install, to upgrade, to roll back, or to uninstall."""
    said = spec.part(name)
    skips = said.flag("skipCRDs")
    crds = CrdPolicy(said.text("crds", among=CRDS) or (CRDS[0] if skips else CRDS[1]))
    retry, remedy = _on_failure(said, name)
    return ActionTerms(
        hooks=not said.flag("disableHooks"),
        waits=not said.flag("disableWait"),
        waits_for_jobs=not said.flag("disableWaitForJobs"),
        crds=crds,
        timeout=said.span("timeout") or spec.span("timeout") or FIVE_MINUTES,
        retry=retry,
        remedy=remedy,
        replaces=said.flag("force"),
        checks=not said.flag("disableOpenAPIValidation"),
        checks_values=not said.flag("disableSchemaValidation"),
        refuses_others=said.flag("disableTakeOwnership"),
        forgives=_forgives(spec, name),
        cleans=said.flag("cleanupOnFail"),
    )


def _forgives(spec: Part, name: str) -> bool:
    """Whether tests that fail are no failure of an action."""
    said = spec.part(name).part("remediation")
    if said.has("ignoreTestFailures"):
        return said.flag("ignoreTestFailures")
    return spec.part("test").flag("ignoreFailures")


def _on_failure(said: Part, name: str) -> tuple[Retry, Action | None]:
    """How often it is tried again, and what is done about a failure before that.

    Nothing is tried again unless somebody says how often; fewer than none is without end. An
    upgrade that is tried several times is also taken back in the end, unless told. Each try is
    planned anew: it is another revision, and what failed as an install is upgraded.
    """
    remediation, strategy = said.part("remediation"), said.part("strategy")
    tries, pause = remediation.number("retries"), Ms(0)
    last = remediation.flag("remediateLastFailure")
    if name == "upgrade" and not remediation.has("remediateLastFailure"):
        last = tries > 0
    remedy = Action.UNINSTALL if tries or last else None
    way = remediation.text("strategy", among=REMEDIES)
    if remedy is not None and name == "upgrade" and way != REMEDIES[1]:
        remedy = Action.ROLLBACK
    if strategy.text("name", among=FAILURE_STRATEGIES) == FAILURE_STRATEGIES[1]:
        tries, pause = -1, strategy.span("retryInterval") or FIVE_MINUTES
        remedy, last = None, False
    cleans = remedy is None and said.flag("cleanupOnFail")
    retry = Retry(
        limit=tries if tries >= 0 else ENDLESS,
        first=pause,
        factor=1,
        cap=pause,
        whole=True,
        gates=True,
        refreshes=True,
        rescues=remedy is not None or cleans,
        rescues_last=last or cleans,
        counts_on=True,
    )
    return retry, remedy
