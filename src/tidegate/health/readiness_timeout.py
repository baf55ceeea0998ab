"""How long an object may lawfully take, by what it says itself.

A gate's deadline is never shorter. Only what stands in the spec counts, and the defaults of the
API: pulling an image, running an init container or doing a Job's work takes as long as it takes.

A pod's own probes say how long it may take until it is ready. Sidecars start one after the other,
before the containers; these start together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.times import MINUTE, SECOND, Ms, parse_duration

NO_LIMIT = 2**31 - 1
"""What Kubernetes takes for `never`, for progress deadlines and backoff limits alike."""
PROGRESS_DEADLINE_SECONDS = 600
BACKOFF_LIMIT = 6
GRACE_SECONDS = 30
FIRST_BACKOFF = Ms(10 * SECOND)
LONGEST_BACKOFF = Ms(10 * MINUTE)
HELM_TIMEOUT = Ms(5 * MINUTE)
LEAST_FLUX_TIMEOUT = Ms(30 * SECOND)
DEFAULT_SHARE = "25%"
PERIOD_SECONDS = 10
FAILURE_THRESHOLD = 3
SUCCESS_THRESHOLD = 1
POD_SPECS = (
    ("spec",),
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
)


def budget(body: JsonObject) -> Ms | None:
    """The time that an object's own spec gives it; None where it gives none."""
    kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
    rule = _RULES.get((kind.group, kind.name))
    span = rule(body) if rule else None
    return span or None


def farewell(body: JsonObject) -> Ms:
    """The time in which its pods may end when it is deleted, and some more; 0 without pods."""
    pods = (get_mapping(body, *path) for path in POD_SPECS)
    spans = (get_int(pod, "terminationGracePeriodSeconds") for pod in pods)
    longest = max(spans)
    return Ms((longest + GRACE_SECONDS) * SECOND) if longest > 0 else Ms(0)


def _deployment(body: JsonObject) -> Ms | None:
    """Every step takes a pod's window; the last may take the whole progress deadline."""
    window = _pod_of_set(body)
    seconds = get_int(body, "spec", "progressDeadlineSeconds", default=PROGRESS_DEADLINE_SECONDS)
    deadline = 0 if seconds >= NO_LIMIT else seconds * SECOND
    return Ms((_rollout_steps(body) - 1) * window + max(deadline, window))


def _stateful_set(body: JsonObject) -> Ms | None:
    """Pod after pod. Parallel sets are made at once, but updated in turn too."""
    replicas = _replicas(body)
    if get_text(body, "spec", "podManagementPolicy") == "Parallel":
        rolling = get_mapping(body, "spec", "updateStrategy", "rollingUpdate")
        at_once = _share(rolling.get("maxUnavailable", 1), replicas, up=False)
        replicas = _turns(replicas - get_int(rolling, "partition"), max(1, at_once))
    return Ms(max(1, replicas) * _pod_of_set(body))


def _pod_of_set(body: JsonObject) -> Ms:
    ready = max(0, get_int(body, "spec", "minReadySeconds")) * SECOND
    return Ms(pod_window(get_mapping(body, "spec", "template", "spec")) + ready)


def _job(body: JsonObject) -> Ms | None:
    """Its deadline and the time in which its pods end; else the pauses between its attempts."""
    deadline = get_int(body, "spec", "activeDeadlineSeconds")
    pod = get_mapping(body, "spec", "template", "spec")
    grace = get_int(pod, "terminationGracePeriodSeconds", default=GRACE_SECONDS)
    if deadline > 0:
        return Ms((deadline + grace) * SECOND)
    # Where each index has a limit of its own, the one for the whole Job counts no attempts.
    for_all = get_int(body, "spec", "backoffLimit", default=BACKOFF_LIMIT)
    limit = max(0, get_int(body, "spec", "backoffLimitPerIndex", default=for_all))
    attempt = max(0, get_int(pod, "activeDeadlineSeconds"))
    return None if limit >= NO_LIMIT else Ms(_pauses(limit) + (limit + 1) * attempt * SECOND)


def _pauses(limit: int) -> int:
    doubling = 0
    pause = int(FIRST_BACKOFF)
    while limit > 0 and pause < LONGEST_BACKOFF:
        doubling += pause
        pause *= 2
        limit -= 1
    return doubling + limit * LONGEST_BACKOFF


def _helm_release(body: JsonObject) -> Ms | None:
    """The longest of its actions, with the retries it is allowed; endless ones count once."""
    return Ms(max(_attempts(body, "install"), _attempts(body, "upgrade")))


def _attempts(body: JsonObject, action: str) -> int:
    timeout = _span(body, "spec", "timeout") or HELM_TIMEOUT
    once = _span(body, "spec", action, "timeout") or timeout
    retries = max(0, get_int(body, "spec", action, "remediation", "retries"))
    return once * (1 + retries)


def _kustomization(body: JsonObject) -> Ms | None:
    """Its timeout, else its interval less the half minute that Flux leaves before the next."""
    interval = _span(body, "spec", "interval") or Ms(0)
    timeout = _span(body, "spec", "timeout") or Ms(interval - LEAST_FLUX_TIMEOUT)
    return max(LEAST_FLUX_TIMEOUT, timeout)


def _span(body: JsonObject, *path: str) -> Ms | None:
    """A duration; None where there is none, or none that Go would read as whole milliseconds."""
    try:
        return parse_duration(get_text(body, *path))
    except ValueError:
        return None


def _replicas(body: JsonObject) -> int:
    return get_int(body, "spec", "replicas", default=1)


def _rollout_steps(body: JsonObject) -> int:
    """How often a rolling update must wait for pods before all of them are new."""
    if get_text(body, "spec", "strategy", "type") == "Recreate":
        return 1
    rolling = get_mapping(body, "spec", "strategy", "rollingUpdate")
    replicas = _replicas(body)
    surge = _share(rolling.get("maxSurge", DEFAULT_SHARE), replicas, up=True)
    unavailable = _share(rolling.get("maxUnavailable", DEFAULT_SHARE), replicas, up=False)
    return _turns(replicas, max(1, surge + unavailable))


def _turns(replicas: int, at_once: int) -> int:
    return max(1, -(-replicas // at_once))


def _share(amount: Json, replicas: int, *, up: bool) -> int:
    """A number of pods, or a percentage of them, rounded as the field asks."""
    if isinstance(amount, str) and amount[:-1].isdecimal() and amount[-1] == "%":
        percents = int(amount.removesuffix("%")) * replicas
        return -(-percents // 100) if up else percents // 100
    return amount if isinstance(amount, int) else 0


def pod_window(spec: JsonObject) -> Ms:
    """Of a pod's spec: 0 where it has no probes that hold it back."""
    inits = get_mappings(spec, "initContainers")
    before = sum(_startup_seconds(one) for one in inits if one.get("restartPolicy") == "Always")
    together = max((_container_seconds(one) for one in get_mappings(spec, "containers")), default=0)
    return Ms((before + together) * SECOND)


def _container_seconds(container: JsonObject) -> int:
    """Readiness is asked when its delay is over and the container has started up."""
    started, readiness = _startup_seconds(container), get_mapping(container, "readinessProbe")
    if not readiness:
        return started
    delay = get_int(readiness, "initialDelaySeconds")
    successes = _at_least_one(readiness, "successThreshold", SUCCESS_THRESHOLD)
    period = _at_least_one(readiness, "periodSeconds", PERIOD_SECONDS)
    return max(started, delay) + period * successes


def _startup_seconds(container: JsonObject) -> int:
    """Until the last attempt that its startup probe grants."""
    probe = get_mapping(container, "startupProbe")
    if not probe:
        return 0
    attempts = _at_least_one(probe, "failureThreshold", FAILURE_THRESHOLD)
    period = _at_least_one(probe, "periodSeconds", PERIOD_SECONDS)
    return max(0, get_int(probe, "initialDelaySeconds")) + period * attempts


def _at_least_one(probe: JsonObject, field: str, default: int) -> int:
    """The API server takes 0 for `not said`."""
    found = get_int(probe, field)
    return found if found > 0 else default


_RULES: Mapping[tuple[str, str], Callable[[JsonObject], Ms | None]] = MappingProxyType(
    {
        ("", "Pod"): lambda body: pod_window(get_mapping(body, "spec")),
        ("apps", "DaemonSet"): _pod_of_set,
        ("apps", "Deployment"): _deployment,
        ("apps", "ReplicaSet"): _pod_of_set,
        ("apps", "StatefulSet"): _stateful_set,
        ("batch", "Job"): _job,
        ("helm.toolkit.fluxcd.io", "HelmRelease"): _helm_release,
        ("kustomize.toolkit.fluxcd.io", "Kustomization"): _kustomization,
    }
)
