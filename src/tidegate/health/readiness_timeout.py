"""The time that an object may take to become ready, by its own spec.

The deadline of a gate is never shorter. Only the spec and the defaults of the API count: pulling
an image, an init container and the work of a Job may take any time.

The probes of a pod define how long it may take to become ready. Sidecars start one after the other,
before the containers, which start together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text, object_kind
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.k8s.pods import POD_SPEC_PATHS, desired_replicas
from tidegate.model.times import MINUTE, SECOND, Ms, parse_duration

NO_LIMIT = 2**31 - 1
"""The value that means no limit, for progress deadlines and backoff limits."""
PROGRESS_DEADLINE_SECONDS = 600
BACKOFF_LIMIT = 6
GRACE_SECONDS = 30
FIRST_BACKOFF = Ms(10 * SECOND)
MAX_BACKOFF = Ms(10 * MINUTE)
HELM_TIMEOUT = Ms(5 * MINUTE)
MIN_FLUX_TIMEOUT = Ms(30 * SECOND)
DEFAULT_SURGE = "25%"
PERIOD_SECONDS = 10
FAILURE_THRESHOLD = 3
SUCCESS_THRESHOLD = 1


def readiness_timeout(body: JsonObject) -> Ms | None:
    """Return the time that the spec of an object grants it, or None if it grants none."""
    kind = object_kind(body)
    rule = _RULES.get((kind.group, kind.name))
    timeout = rule(body) if rule else None
    return timeout or None


def termination_timeout(body: JsonObject) -> Ms:
    """Return how long the pods of a deleted object may take to end, plus a margin; 0 without."""
    pods = (get_mapping(body, *path) for path in POD_SPEC_PATHS)
    periods = (get_int(pod, "terminationGracePeriodSeconds") for pod in pods)
    longest = max(periods)
    return Ms((longest + GRACE_SECONDS) * SECOND) if longest > 0 else Ms(0)


def _deployment(body: JsonObject) -> Ms | None:
    """Grant the pod timeout for each step, and the progress deadline for the last."""
    pod_timeout = _pod_timeout(body)
    seconds = get_int(body, "spec", "progressDeadlineSeconds", default=PROGRESS_DEADLINE_SECONDS)
    deadline = 0 if seconds >= NO_LIMIT else seconds * SECOND
    return Ms((_rollout_steps(body) - 1) * pod_timeout + max(deadline, pod_timeout))


def _stateful_set(body: JsonObject) -> Ms | None:
    """Grant the pod timeout for each pod.

    Parallel sets are created at once but updated in batches.
    """
    replicas = desired_replicas(body)
    if get_text(body, "spec", "podManagementPolicy") == "Parallel":
        rolling = get_mapping(body, "spec", "updateStrategy", "rollingUpdate")
        batch_size = _resolve_percentage(rolling.get("maxUnavailable", 1), replicas, round_up=False)
        replicas = _batch_count(replicas - get_int(rolling, "partition"), max(1, batch_size))
    return Ms(max(1, replicas) * _pod_timeout(body))


def _pod_timeout(body: JsonObject) -> Ms:
    ready = max(0, get_int(body, "spec", "minReadySeconds")) * SECOND
    return Ms(pod_readiness_timeout(get_mapping(body, "spec", "template", "spec")) + ready)


def _job(body: JsonObject) -> Ms | None:
    """Grant the deadline and the termination of its pods, else the backoff between its attempts."""
    deadline = get_int(body, "spec", "activeDeadlineSeconds")
    pod = get_mapping(body, "spec", "template", "spec")
    grace = get_int(pod, "terminationGracePeriodSeconds", default=GRACE_SECONDS)
    if deadline > 0:
        return Ms((deadline + grace) * SECOND)
    # With a backoff limit per index, the limit of the Job counts no attempts.
    total_limit = get_int(body, "spec", "backoffLimit", default=BACKOFF_LIMIT)
    limit = max(0, get_int(body, "spec", "backoffLimitPerIndex", default=total_limit))
    attempt = max(0, get_int(pod, "activeDeadlineSeconds"))
    return None if limit >= NO_LIMIT else Ms(_total_backoff(limit) + (limit + 1) * attempt * SECOND)


def _total_backoff(limit: int) -> int:
    total = 0
    backoff = int(FIRST_BACKOFF)
    while limit > 0 and backoff < MAX_BACKOFF:
        total += backoff
        backoff *= 2
        limit -= 1
    return total + limit * MAX_BACKOFF


def _helm_release(body: JsonObject) -> Ms | None:
    """Grant the longest action with its retries. Unlimited retries count once."""
    return Ms(max(_action_timeout(body, "install"), _action_timeout(body, "upgrade")))


def _action_timeout(body: JsonObject, action: str) -> int:
    timeout = _read_duration(body, "spec", "timeout") or HELM_TIMEOUT
    action_timeout = _read_duration(body, "spec", action, "timeout") or timeout
    retries = max(0, get_int(body, "spec", action, "remediation", "retries"))
    return action_timeout * (1 + retries)


def _kustomization(body: JsonObject) -> Ms | None:
    """Grant the timeout, else the interval minus 30 seconds, which is the default of Flux.

    Like `GetTimeout` in `internal/controller/kustomization_controller.go` of kustomize-controller
    1.9.6.
    """
    interval = _read_duration(body, "spec", "interval") or Ms(0)
    timeout = _read_duration(body, "spec", "timeout") or Ms(interval - MIN_FLUX_TIMEOUT)
    return max(MIN_FLUX_TIMEOUT, timeout)


def _read_duration(body: JsonObject, *path: str) -> Ms | None:
    """Return a duration, or None if the field is missing or not a whole number of milliseconds."""
    try:
        return parse_duration(get_text(body, *path))
    except ValueError:
        return None


def _rollout_steps(body: JsonObject) -> int:
    """Return how often a rolling update waits for pods before all of them are new."""
    if get_text(body, "spec", "strategy", "type") == "Recreate":
        return 1
    rolling = get_mapping(body, "spec", "strategy", "rollingUpdate")
    replicas = desired_replicas(body)
    max_surge = _resolve_percentage(rolling.get("maxSurge", DEFAULT_SURGE), replicas, round_up=True)
    max_unavailable = _resolve_percentage(
        rolling.get("maxUnavailable", DEFAULT_SURGE), replicas, round_up=False
    )
    return _batch_count(replicas, max(1, max_surge + max_unavailable))


def _batch_count(replicas: int, batch_size: int) -> int:
    return max(1, -(-replicas // batch_size))


def _resolve_percentage(amount: Json, replicas: int, *, round_up: bool) -> int:
    """Return a number of pods from a number or a percentage.

    Like `GetScaledValueFromIntOrPercent` in `pkg/util/intstr/intstr.go` of k8s.io/apimachinery
    0.36.4.
    """
    if isinstance(amount, str) and amount[:-1].isdecimal() and amount[-1] == "%":
        hundredths = int(amount.removesuffix("%")) * replicas
        return -(-hundredths // 100) if round_up else hundredths // 100
    return amount if isinstance(amount, int) else 0


def pod_readiness_timeout(spec: JsonObject) -> Ms:
    """Return the time that the probes of a pod spec grant; 0 without such probes."""
    init_containers = get_mappings(spec, "initContainers")
    sidecars = sum(
        _startup_seconds(container)
        for container in init_containers
        if container.get("restartPolicy") == "Always"
    )
    containers = max(
        (_container_seconds(container) for container in get_mappings(spec, "containers")), default=0
    )
    return Ms((sidecars + containers) * SECOND)


def _container_seconds(container: JsonObject) -> int:
    """Return when a container is ready at the latest, by its readiness and startup probes."""
    started, readiness = _startup_seconds(container), get_mapping(container, "readinessProbe")
    if not readiness:
        return started
    delay = get_int(readiness, "initialDelaySeconds")
    successes = _positive_or(readiness, "successThreshold", SUCCESS_THRESHOLD)
    period = _positive_or(readiness, "periodSeconds", PERIOD_SECONDS)
    return max(started, delay) + period * successes


def _startup_seconds(container: JsonObject) -> int:
    """Return when the last attempt of the startup probe ends."""
    probe = get_mapping(container, "startupProbe")
    if not probe:
        return 0
    attempts = _positive_or(probe, "failureThreshold", FAILURE_THRESHOLD)
    period = _positive_or(probe, "periodSeconds", PERIOD_SECONDS)
    return max(0, get_int(probe, "initialDelaySeconds")) + period * attempts


def _positive_or(probe: JsonObject, field: str, default: int) -> int:
    """Return a field of a probe. The API server replaces 0 by the default.

    Like `SetDefaults_Probe` in `pkg/apis/core/v1/defaults.go` of Kubernetes 1.36.4.
    """
    value = get_int(probe, field)
    return value if value > 0 else default


_RULES: Mapping[tuple[str, str], Callable[[JsonObject], Ms | None]] = MappingProxyType(
    {
        ("", "Pod"): lambda body: pod_readiness_timeout(get_mapping(body, "spec")),
        ("apps", "DaemonSet"): _pod_timeout,
        ("apps", "Deployment"): _deployment,
        ("apps", "ReplicaSet"): _pod_timeout,
        ("apps", "StatefulSet"): _stateful_set,
        ("batch", "Job"): _job,
        ("helm.toolkit.fluxcd.io", "HelmRelease"): _helm_release,
        ("kustomize.toolkit.fluxcd.io", "Kustomization"): _kustomization,
    }
)
