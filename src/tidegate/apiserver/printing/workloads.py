"""What runs pods, and what watches over them."""

from __future__ import annotations

from tidegate.apiserver.printing.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Body,
    Printer,
    at,
    containers,
    field,
    human,
    is_true,
    labels,
    selected,
    since,
)
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, number, part, text

TEMPLATE = ("spec", "template")
JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)
"""Conditions in the order in which they count; without a name: it is being deleted."""
HPA_SHOWN = 2


def _wanted(body: Body) -> int:
    return number(body, "spec", "replicas", default=1)


def _ready(body: Body, _now: Ms) -> Json:
    return f"{number(body, 'status', 'readyReplicas')}/{_wanted(body)}"


def _counted(title: str, key: str, *, type_: str = "integer") -> Printer:
    return Printer(title, field("status", key, default=0), type_)


def _job_status(body: Body, _now: Ms) -> Json:
    for condition, told in JOB_STATES:
        if is_true(body, condition) if condition else part(body, "metadata", "deletionTimestamp"):
            return told
    return "Running"


def _completions(body: Body, _now: Ms) -> Json:
    done, spec = number(body, "status", "succeeded"), mapping(body, "spec")
    if "completions" in spec or "parallelism" not in spec:
        return f"{done}/{number(spec, 'completions', default=1)}"
    side_by_side = number(spec, "parallelism", default=1)
    return f"{done}/1 of {side_by_side}" if side_by_side > 1 else f"{done}/1"


def _duration(body: Body, now: Ms) -> Json:
    begun, ended = (part(body, "status", key) for key in ("startTime", "completionTime"))
    if not begun:
        return ""
    return human(((at(ended) if ended else now) - at(begun)) // SECOND)


def _last_schedule(body: Body, now: Ms) -> Json:
    return since(part(body, "status", "lastScheduleTime"), now, unknown=NONE)


def _suspended(body: Body, _now: Ms) -> Json:
    return str(part(body, "spec", "suspend") is True)


def _node_selector(body: Body, _now: Ms) -> Json:
    return labels(part(body, *TEMPLATE, "spec", "nodeSelector"))


def _scaled(body: Body, _now: Ms) -> Json:
    target = mapping(body, "spec", "scaleTargetRef")
    return f"{text(target, 'kind')}/{text(target, 'name')}"


def _targets(body: Body, _now: Ms) -> Json:
    if percent := number(body, "spec", "targetCPUUtilizationPercentage"):
        now = part(body, "status", "currentCPUUtilizationPercentage")
        return f"cpu: {'<unknown>' if now is None else f'{now}%'}/{percent}%"
    current = mappings(body, "status", "currentMetrics")
    found = [
        _metric(one, current[place] if place < len(current) else {})
        for place, one in enumerate(mappings(body, "spec", "metrics"))
    ]
    more = f" + {len(found) - HPA_SHOWN} more..." if len(found) > HPA_SHOWN else ""
    return f"{', '.join(found[:HPA_SHOWN])}{more}" or NONE


def _metric(wanted: Body, current: Body) -> str:
    form = text(wanted, "type")
    key = form[:1].lower() + form[1:]
    target, now = mapping(wanted, key, "target"), mapping(current, key, "current")
    name = text(wanted, key, "name") if form in {"Resource", "ContainerResource"} else ""
    sign, said = ("%", "averageUtilization") if "averageUtilization" in target else ("", "")
    said = said or ("averageValue" if "averageValue" in target else "value")
    average = " (avg)" if said == "averageValue" and not name else ""
    seen = f"{now[said]}{sign}" if said in now else "<unknown>"
    return f"{f'{name}: ' if name else ''}{seen}/{target.get(said)}{sign}{average}"


def _or_none(body: Body, key: str) -> Json:
    found = part(body, "spec", key)
    return "N/A" if found is None else str(found)


REPLICAS = (
    NAME,
    Printer("Desired", lambda body, _: _wanted(body), "integer"),
    _counted("Current", "replicas"),
    _counted("Ready", "readyReplicas"),
    AGE,
    *containers(*TEMPLATE),
)
DEPLOYMENT = (
    NAME,
    Printer("Ready", _ready),
    _counted("Up-to-date", "updatedReplicas", type_="string"),
    _counted("Available", "availableReplicas", type_="string"),
    AGE,
    *containers(*TEMPLATE),
    selected("spec", "selector"),
)
WORKLOADS = {
    ("apps", "Deployment"): DEPLOYMENT,
    ("apps", "ReplicaSet"): (*REPLICAS, selected("spec", "selector")),
    ("", "ReplicationController"): (
        *REPLICAS,
        Printer("Selector", lambda body, _: labels(part(body, "spec", "selector")), wide=True),
    ),
    ("apps", "StatefulSet"): (NAME, Printer("Ready", _ready), AGE, *containers(*TEMPLATE)),
    ("apps", "DaemonSet"): (
        NAME,
        _counted("Desired", "desiredNumberScheduled"),
        _counted("Current", "currentNumberScheduled"),
        _counted("Ready", "numberReady"),
        _counted("Up-to-date", "updatedNumberScheduled"),
        _counted("Available", "numberAvailable"),
        Printer("Node Selector", _node_selector),
        AGE,
        *containers(*TEMPLATE),
        selected("spec", "selector"),
    ),
    ("batch", "Job"): (
        NAME,
        Printer("Status", _job_status),
        Printer("Completions", _completions),
        Printer("Duration", _duration),
        AGE,
        *containers(*TEMPLATE),
        selected("spec", "selector"),
    ),
    ("batch", "CronJob"): (
        NAME,
        Printer("Schedule", field("spec", "schedule")),
        Printer("Timezone", field("spec", "timeZone", default=NONE)),
        Printer("Suspend", _suspended, "boolean"),
        Printer("Active", lambda body, _: len(listed(body, "status", "active")), "integer"),
        Printer("Last Schedule", _last_schedule),
        AGE,
        *containers("spec", "jobTemplate", *TEMPLATE),
        selected("spec", "jobTemplate", "spec", "selector"),
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        NAME,
        Printer("Reference", _scaled),
        Printer("Targets", _targets),
        Printer("MinPods", lambda body, _: str(part(body, "spec", "minReplicas") or UNSET)),
        Printer("MaxPods", field("spec", "maxReplicas", default=0)),
        Printer("Replicas", field("status", "currentReplicas", default=0)),
        AGE,
    ),
    ("policy", "PodDisruptionBudget"): (
        NAME,
        Printer("Min Available", lambda body, _: _or_none(body, "minAvailable")),
        Printer("Max Unavailable", lambda body, _: _or_none(body, "maxUnavailable")),
        Printer("Allowed Disruptions", field("status", "disruptionsAllowed", default=0), "integer"),
        AGE,
    ),
}
