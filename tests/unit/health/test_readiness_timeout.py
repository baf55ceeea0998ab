"""How long objects may take to become ready, by their own spec."""

from __future__ import annotations

import pytest

from tidegate.health.readiness_timeout import readiness_timeout, termination_timeout
from tidegate.model.k8s.objects import Json, JsonObject

MINUTES = 60
A_STARTUP_PROBE: Json = {"initialDelaySeconds": 5, "periodSeconds": 10, "failureThreshold": 30}
STARTUP = 305


def an_object(kind: str, **spec: Json) -> JsonObject:
    api_version, _, name = kind.rpartition(" ")
    return {"apiVersion": api_version, "kind": name, "metadata": {"name": "web"}, "spec": spec}


def a_template(*containers: Json, **spec: Json) -> Json:
    return {"spec": {"containers": list(containers), **spec}}


def seconds(body: JsonObject) -> float | None:
    span = readiness_timeout(body)
    return None if span is None else span / 1000


SLOW = a_template({"name": "app", "startupProbe": A_STARTUP_PROBE})


@pytest.mark.parametrize(
    ("container", "window"),
    [
        ({}, None),
        ({"startupProbe": A_STARTUP_PROBE}, STARTUP),
        ({"startupProbe": {"httpGet": {"port": 80}}}, 30),
        ({"startupProbe": {"httpGet": {}, "failureThreshold": 0, "periodSeconds": 0}}, 30),
        ({"readinessProbe": {"initialDelaySeconds": 40}}, 50),
        ({"readinessProbe": {"periodSeconds": 5, "successThreshold": 3}}, 15),
        ({"startupProbe": A_STARTUP_PROBE, "readinessProbe": {"initialDelaySeconds": 9}}, 315),
        ({"startupProbe": A_STARTUP_PROBE, "readinessProbe": {"initialDelaySeconds": 400}}, 410),
        ({"livenessProbe": {"initialDelaySeconds": 900}}, None),
    ],
)
def test_a_pod_has_the_timeout_of_its_probes(container: Json, window: int | None) -> None:
    assert seconds(an_object("v1 Pod", containers=[container])) == window


def test_the_slowest_container_decides() -> None:
    slow: Json = {"startupProbe": A_STARTUP_PROBE}
    quick: Json = {"startupProbe": {"failureThreshold": 1}}

    assert seconds(an_object("v1 Pod", containers=[quick, slow, quick])) == STARTUP


def test_sidecars_start_one_after_the_other_before_the_containers() -> None:
    sidecar: Json = {"restartPolicy": "Always", "startupProbe": A_STARTUP_PROBE}
    ending: Json = {"startupProbe": A_STARTUP_PROBE}
    app: Json = {"readinessProbe": {"initialDelaySeconds": 40}}

    pod = an_object("v1 Pod", initContainers=[sidecar, ending, sidecar], containers=[app])

    assert seconds(pod) == 2 * STARTUP + 50


def test_a_deployment_may_take_its_progress_deadline() -> None:
    assert seconds(an_object("apps/v1 Deployment")) == 10 * MINUTES
    assert seconds(an_object("apps/v1 Deployment", progressDeadlineSeconds=90)) == 90


def test_a_deployment_whose_pods_start_slowly_may_take_longer_than_its_deadline() -> None:
    body = an_object("apps/v1 Deployment", template=SLOW, progressDeadlineSeconds=60)

    assert seconds(body) == STARTUP


def test_a_deployment_without_a_deadline_has_the_timeout_of_its_pods() -> None:
    endless = 2**31 - 1
    silent = an_object("apps/v1 Deployment", progressDeadlineSeconds=endless)
    probed = an_object("apps/v1 Deployment", progressDeadlineSeconds=endless, template=SLOW)

    assert (seconds(silent), seconds(probed)) == (None, STARTUP)


@pytest.mark.parametrize(
    ("strategy", "steps"),
    [
        ({}, 2),
        ({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, 10),
        ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "15%"}}, 10),
        ({"rollingUpdate": {"maxSurge": "15%", "maxUnavailable": 0}}, 5),
        ({"rollingUpdate": {"maxSurge": "100%"}}, 1),
        ({"type": "Recreate"}, 1),
    ],
    ids=str,
)
def test_every_step_of_a_rolling_update_waits_for_its_pods(
    strategy: JsonObject, steps: int
) -> None:
    """Of ten; a quarter of them is three, rounded up, and two, rounded down."""
    deadline = 400

    body = an_object(
        "apps/v1 Deployment",
        replicas=10,
        strategy=strategy,
        template=SLOW,
        progressDeadlineSeconds=deadline,
    )

    assert seconds(body) == (steps - 1) * STARTUP + deadline


def test_pods_that_must_stay_ready_take_that_much_longer() -> None:
    assert (
        seconds(an_object("apps/v1 DaemonSet", template=SLOW, minReadySeconds=20)) == STARTUP + 20
    )
    assert (
        seconds(an_object("apps/v1 ReplicaSet", template=SLOW, minReadySeconds=20)) == STARTUP + 20
    )
    assert seconds(an_object("apps/v1 DaemonSet")) is None


@pytest.mark.parametrize(
    ("spec", "turns"),
    [
        ({}, 1),
        ({"replicas": 3}, 3),
        ({"replicas": 3, "podManagementPolicy": "OrderedReady"}, 3),
        ({"replicas": 0}, 1),
    ],
)
def test_an_ordered_set_creates_pod_after_pod(spec: JsonObject, turns: int) -> None:
    body = an_object("apps/v1 StatefulSet", template=SLOW, minReadySeconds=5, **spec)

    assert seconds(body) == turns * (STARTUP + 5)


@pytest.mark.parametrize(
    ("rolling", "turns"),
    [({}, 5), ({"maxUnavailable": 2}, 3), ({"maxUnavailable": "40%"}, 3), ({"partition": 4}, 1)],
    ids=str,
)
def test_a_parallel_set_is_still_updated_in_turn(rolling: JsonObject, turns: int) -> None:
    body = an_object(
        "apps/v1 StatefulSet",
        replicas=5,
        podManagementPolicy="Parallel",
        updateStrategy={"rollingUpdate": rolling},
        template=SLOW,
    )

    assert seconds(body) == turns * STARTUP


def test_a_job_may_take_its_active_deadline_and_the_time_in_which_its_pods_end() -> None:
    body = an_object("batch/v1 Job", activeDeadlineSeconds=45, backoffLimit=3)
    template = a_template(terminationGracePeriodSeconds=5)
    quick = an_object("batch/v1 Job", activeDeadlineSeconds=45, template=template)

    assert seconds(body) == 45 + 30
    assert seconds(quick) == 45 + 5


@pytest.mark.parametrize(
    ("spec", "pauses"),
    [
        ({}, 10 + 20 + 40 + 80 + 160 + 320),
        ({"backoffLimit": 2}, 10 + 20),
        ({"backoffLimit": 8}, 630 + 600 + 600),
        ({"backoffLimit": 0}, None),
        ({"backoffLimit": 2**31 - 1}, None),
        ({"backoffLimit": 2**31 - 1, "backoffLimitPerIndex": 1}, 10),
    ],
    ids=str,
)
def test_a_job_without_a_deadline_may_pause_between_its_attempts(
    spec: JsonObject, pauses: int | None
) -> None:
    assert seconds(an_object("batch/v1 Job", **spec)) == pauses


def test_every_attempt_of_a_job_may_take_as_long_as_its_pod() -> None:
    template = a_template(activeDeadlineSeconds=100)

    assert seconds(an_object("batch/v1 Job", backoffLimit=1, template=template)) == 10 + 2 * 100


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, 5 * MINUTES),
        ({"timeout": "90s"}, 90),
        ({"timeout": "soon"}, 5 * MINUTES),
        ({"timeout": "1m", "upgrade": {"timeout": "20m"}}, 20 * MINUTES),
        ({"timeout": "1m", "install": {"remediation": {"retries": 3}}}, 4 * MINUTES),
        ({"timeout": "1m", "install": {"remediation": {"retries": -1}}}, MINUTES),
    ],
    ids=str,
)
def test_a_helm_release_may_take_its_timeout_for_every_attempt(
    spec: JsonObject, expected: int
) -> None:
    assert seconds(an_object("helm.toolkit.fluxcd.io/v2 HelmRelease", **spec)) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"interval": "10m", "timeout": "2m"}, 2 * MINUTES),
        ({"interval": "10m", "timeout": "1s"}, 30),
        ({"interval": "10m"}, 570),
        ({"interval": "40s"}, 30),
        ({}, 30),
    ],
    ids=str,
)
def test_a_kustomization_may_take_the_timeout_that_flux_reads(
    spec: JsonObject, expected: int
) -> None:
    body = an_object("kustomize.toolkit.fluxcd.io/v1 Kustomization", **spec)

    assert seconds(body) == expected


@pytest.mark.parametrize(
    "kind",
    [
        "argoproj.io/v1alpha1 Application",
        "batch/v1 CronJob",
        "example.com/v1 Deployment",
        "kustomize.config.k8s.io/v1beta1 Kustomization",
        "v1 ConfigMap",
    ],
)
def test_other_kinds_have_no_timeout(kind: str) -> None:
    assert seconds(an_object(kind, timeout="5m", interval="5m", template=SLOW)) is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (an_object("v1 Pod", terminationGracePeriodSeconds=900), 930),
        (
            an_object("apps/v1 Deployment", template=a_template(terminationGracePeriodSeconds=60)),
            90,
        ),
        (
            an_object(
                "batch/v1 CronJob",
                jobTemplate={"spec": {"template": a_template(terminationGracePeriodSeconds=5)}},
            ),
            35,
        ),
        (an_object("apps/v1 Deployment", template=a_template()), 0),
        (an_object("v1 ConfigMap"), 0),
    ],
)
def test_a_termination_may_take_as_long_as_that_of_the_pods(
    body: JsonObject, expected: int
) -> None:
    assert termination_timeout(body) == expected * 1000
