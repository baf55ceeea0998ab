"""Columns of workloads, autoscalers and disruption budgets.

Like `printDeployment`, `printStatefulSet`, `printJob`, `printHorizontalPodAutoscaler` and
`printPodDisruptionBudget` in `pkg/printers/internalversion/printers.go` of Kubernetes 1.36.4.
"""

from __future__ import annotations

from tidegate.apiserver.printers.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    TableColumn,
    container_columns,
    field_cell,
    format_age,
    format_labels,
    human_duration,
    is_condition_true,
    parse_time,
    selector_column,
)
from tidegate.model.k8s.json_fields import (
    get_int,
    get_list,
    get_mapping,
    get_mappings,
    get_text,
    get_value,
)
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.k8s.pods import desired_replicas
from tidegate.model.times import SECOND, Ms

TEMPLATE = ("spec", "template")
JOB_STATUSES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)
"""Conditions in order of precedence, with the shown status. An empty name means "being deleted"."""
MAX_SHOWN_METRICS = 2


def _ready_replicas(body: JsonObject, _now: Ms) -> Json:
    return f"{get_int(body, 'status', 'readyReplicas')}/{desired_replicas(body)}"


def _status_count(title: str, key: str, *, type_: str = "integer") -> TableColumn:
    return TableColumn(title, field_cell("status", key, default=0), type_)


def _job_status(body: JsonObject, _now: Ms) -> Json:
    for condition, status in JOB_STATUSES:
        if (
            is_condition_true(body, condition)
            if condition
            else get_value(body, "metadata", "deletionTimestamp")
        ):
            return status
    return "Running"


def _completions(body: JsonObject, _now: Ms) -> Json:
    done, spec = get_int(body, "status", "succeeded"), get_mapping(body, "spec")
    if "completions" in spec or "parallelism" not in spec:
        return f"{done}/{get_int(spec, 'completions', default=1)}"
    parallelism = get_int(spec, "parallelism", default=1)
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _duration(body: JsonObject, now: Ms) -> Json:
    started, ended = (get_value(body, "status", key) for key in ("startTime", "completionTime"))
    if not started:
        return ""
    return human_duration(((parse_time(ended) if ended else now) - parse_time(started)) // SECOND)


def _last_schedule(body: JsonObject, now: Ms) -> Json:
    return format_age(get_value(body, "status", "lastScheduleTime"), now, unknown=NONE)


def _suspended(body: JsonObject, _now: Ms) -> Json:
    return str(get_value(body, "spec", "suspend") is True)


def _node_selector(body: JsonObject, _now: Ms) -> Json:
    return format_labels(get_value(body, *TEMPLATE, "spec", "nodeSelector"))


def _scale_target(body: JsonObject, _now: Ms) -> Json:
    target = get_mapping(body, "spec", "scaleTargetRef")
    return f"{get_text(target, 'kind')}/{get_text(target, 'name')}"


def _targets(body: JsonObject, _now: Ms) -> Json:
    if percent := get_int(body, "spec", "targetCPUUtilizationPercentage"):
        current_percent = get_value(body, "status", "currentCPUUtilizationPercentage")
        return (
            f"cpu: {'<unknown>' if current_percent is None else f'{current_percent}%'}/{percent}%"
        )
    current = get_mappings(body, "status", "currentMetrics")
    metrics = [
        _format_metric(metric, current[index] if index < len(current) else {})
        for index, metric in enumerate(get_mappings(body, "spec", "metrics"))
    ]
    more = (
        f" + {len(metrics) - MAX_SHOWN_METRICS} more..." if len(metrics) > MAX_SHOWN_METRICS else ""
    )
    return f"{', '.join(metrics[:MAX_SHOWN_METRICS])}{more}" or NONE


def _format_metric(spec: JsonObject, current: JsonObject) -> str:
    metric_type = get_text(spec, "type")
    key = metric_type[:1].lower() + metric_type[1:]
    target, current_value = get_mapping(spec, key, "target"), get_mapping(current, key, "current")
    name = get_text(spec, key, "name") if metric_type in {"Resource", "ContainerResource"} else ""
    sign, value_key = ("%", "averageUtilization") if "averageUtilization" in target else ("", "")
    value_key = value_key or ("averageValue" if "averageValue" in target else "value")
    average = " (avg)" if value_key == "averageValue" and not name else ""
    shown_value = f"{current_value[value_key]}{sign}" if value_key in current_value else "<unknown>"
    return f"{f'{name}: ' if name else ''}{shown_value}/{target.get(value_key)}{sign}{average}"


def _budget_limit(body: JsonObject, key: str) -> Json:
    limit = get_value(body, "spec", key)
    return "N/A" if limit is None else str(limit)


REPLICA_COLUMNS = (
    NAME,
    TableColumn("Desired", lambda body, _: desired_replicas(body), "integer"),
    _status_count("Current", "replicas"),
    _status_count("Ready", "readyReplicas"),
    AGE,
    *container_columns(*TEMPLATE),
)
DEPLOYMENT_COLUMNS = (
    NAME,
    TableColumn("Ready", _ready_replicas),
    _status_count("Up-to-date", "updatedReplicas", type_="string"),
    _status_count("Available", "availableReplicas", type_="string"),
    AGE,
    *container_columns(*TEMPLATE),
    selector_column("spec", "selector"),
)
WORKLOAD_COLUMNS = {
    ("apps", "Deployment"): DEPLOYMENT_COLUMNS,
    ("apps", "ReplicaSet"): (*REPLICA_COLUMNS, selector_column("spec", "selector")),
    ("", "ReplicationController"): (
        *REPLICA_COLUMNS,
        TableColumn(
            "Selector",
            lambda body, _: format_labels(get_value(body, "spec", "selector")),
            is_wide=True,
        ),
    ),
    ("apps", "StatefulSet"): (
        NAME,
        TableColumn("Ready", _ready_replicas),
        AGE,
        *container_columns(*TEMPLATE),
    ),
    ("apps", "DaemonSet"): (
        NAME,
        _status_count("Desired", "desiredNumberScheduled"),
        _status_count("Current", "currentNumberScheduled"),
        _status_count("Ready", "numberReady"),
        _status_count("Up-to-date", "updatedNumberScheduled"),
        _status_count("Available", "numberAvailable"),
        TableColumn("Node Selector", _node_selector),
        AGE,
        *container_columns(*TEMPLATE),
        selector_column("spec", "selector"),
    ),
    ("batch", "Job"): (
        NAME,
        TableColumn("Status", _job_status),
        TableColumn("Completions", _completions),
        TableColumn("Duration", _duration),
        AGE,
        *container_columns(*TEMPLATE),
        selector_column("spec", "selector"),
    ),
    ("batch", "CronJob"): (
        NAME,
        TableColumn("Schedule", field_cell("spec", "schedule")),
        TableColumn("Timezone", field_cell("spec", "timeZone", default=NONE)),
        TableColumn("Suspend", _suspended, "boolean"),
        TableColumn("Active", lambda body, _: len(get_list(body, "status", "active")), "integer"),
        TableColumn("Last Schedule", _last_schedule),
        AGE,
        *container_columns("spec", "jobTemplate", *TEMPLATE),
        selector_column("spec", "jobTemplate", "spec", "selector"),
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        NAME,
        TableColumn("Reference", _scale_target),
        TableColumn("Targets", _targets),
        TableColumn(
            "MinPods", lambda body, _: str(get_value(body, "spec", "minReplicas") or UNSET)
        ),
        TableColumn("MaxPods", field_cell("spec", "maxReplicas", default=0)),
        TableColumn("Replicas", field_cell("status", "currentReplicas", default=0)),
        AGE,
    ),
    ("policy", "PodDisruptionBudget"): (
        NAME,
        TableColumn("Min Available", lambda body, _: _budget_limit(body, "minAvailable")),
        TableColumn("Max Unavailable", lambda body, _: _budget_limit(body, "maxUnavailable")),
        TableColumn(
            "Allowed Disruptions", field_cell("status", "disruptionsAllowed", default=0), "integer"
        ),
        AGE,
    ),
}
