"""Stages of kwok for nodes, pods, Services and Ingresses, and how a test changes them.

kwok's own stages make every pod Ready at once and every Job's pod succeed. Annotations on a pod (or
a pod template), on a Service or on an Ingress change that; each begins with `test.tidegate.dev/`:

    outcome        never   the pod stays Pending
                   crash   the pod is in CrashLoopBackOff
                   fail    the pod runs, then fails
                   hang    a Job's pod runs forever
    ready-after    how long until the pod is Ready (`2s`), or crashes
    run-for        how long a Job's pod runs, or a pod that will fail
    exit-code      of a pod that fails; 1 by default
    lb-after       how long until a Service or an Ingress has its address

Selector keys are jq, numbers never match, and if several stages match, their weights decide: so the
selectors below exclude one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import yaml

from plane.binaries.recipe import KWOK_STAGES
from tidegate.model.k8s.objects import Json

PREFIX = "test.tidegate.dev/"
FAKE_NODE = "kwok.x-k8s.io/node=fake"

_FAILED = """\
{{ $now := Now }}
{{ $notes := or .metadata.annotations dict }}
conditions:
{{ range ( list "Ready" "ContainersReady" ) }}
- type: {{ . }}
  status: "False"
  reason: PodFailed
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: {{ or ( index $notes "test.tidegate.dev/exit-code" ) 1 }}
      reason: Error
      startedAt: {{ $now | Quote }}
      finishedAt: {{ $now | Quote }}
{{ end }}
phase: Failed
"""

_CRASHING = """\
{{ $now := Now }}
conditions:
- type: Initialized
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ range ( list "Ready" "ContainersReady" ) }}
- type: {{ . }}
  status: "False"
  reason: ContainersNotReady
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  started: false
  restartCount: 3
  state:
    waiting: {reason: CrashLoopBackOff, message: back-off restarting failed container}
{{ end }}
phase: Running
startTime: {{ $now | Quote }}
"""

_SERVICE_ADDRESS = "loadBalancer: {ingress: [{ip: {{ .spec.clusterIP | Quote }}}]}\n"
# From the block of addresses that documentation may use.
_INGRESS_ADDRESS = 'loadBalancer: {ingress: [{ip: "192.0.2.10"}]}\n'


def read_stages(directory: Path) -> list[dict[str, Json]]:
    """kwok's own stages, as they were kept when the binaries were built."""
    return [yaml.safe_load((directory / name).read_text()) for name in KWOK_STAGES]


def kwok_documents(
    kwok_stages: Sequence[Mapping[str, Json]], *, runs_pods: bool = True
) -> list[Mapping[str, Json]]:
    """kwok's whole configuration: its own stages, taught our annotations, and ours."""
    stages = [*map(_taught, kwok_stages), *_our_stages()]
    return [_options(), *(stage for stage in stages if runs_pods or not _is_for_pods(stage))]


def _is_for_pods(stage: Mapping[str, Json]) -> bool:
    match stage:
        case {"spec": {"resourceRef": {"kind": "Pod"}}}:
            return True
        case _:
            return False


def _options() -> dict[str, Json]:
    return {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": {
            # A test may add a node that is not fake, and play kubelet there.
            "manageAllNodes": False,
            "manageNodesWithAnnotationSelector": FAKE_NODE,
            "nodeLeaseDurationSeconds": 40,
            # Once the lease is set, kwok exits unless these are set too.
            "nodeLeaseParallelism": 4,
            "nodePlayStageParallelism": 4,
            "podPlayStageParallelism": 16,
        },
    }


def _taught(stage: Mapping[str, Json]) -> Mapping[str, Json]:
    match stage:
        case {"metadata": {"name": "pod-ready"}}:
            return _unless(stage, outcomes=["never", "crash"], delay="ready-after")
        case {"metadata": {"name": "pod-complete"}}:
            return _unless(stage, outcomes=["fail", "hang"], delay="run-for")
        case _:
            return stage


def _unless(
    stage: Mapping[str, Json], *, outcomes: Sequence[str], delay: str
) -> Mapping[str, Json]:
    spec = stage["spec"]
    match spec:
        case {"selector": {"matchExpressions": list(claims)}} if isinstance(spec, dict):
            chosen: Json = [*claims, _claim(_note("outcome"), "NotIn", outcomes)]
            selector: Json = {"matchExpressions": chosen}
            return {**stage, "spec": {**spec, "selector": selector, "delay": _delay(delay)}}
        case _:
            raise ValueError("kwok writes its stages in another way now")


def _our_stages() -> list[Mapping[str, Json]]:
    alive = _claim(".metadata.deletionTimestamp", "DoesNotExist")
    no_address = _claim(".status.loadBalancer.ingress.[].ip", "DoesNotExist")
    pending = _claim(".status.phase", "In", ["Pending"])
    running = _claim(".status.phase", "In", ["Running"])
    fails = _claim(_note("outcome"), "In", ["fail"])
    crashes = _claim(_note("outcome"), "In", ["crash"])
    balanced = _claim(".spec.type", "In", ["LoadBalancer"])
    pod, service, ingress = ("v1", "Pod"), ("v1", "Service"), ("networking.k8s.io/v1", "Ingress")
    return [
        _stage("pod-fail", pod, [alive, running, fails], _FAILED, "run-for"),
        _stage("pod-crash", pod, [alive, pending, crashes], _CRASHING, "ready-after"),
        _stage(
            "service-address", service, [alive, balanced, no_address], _SERVICE_ADDRESS, "lb-after"
        ),
        _stage("ingress-address", ingress, [alive, no_address], _INGRESS_ADDRESS, "lb-after"),
    ]


def _stage(
    name: str, kind: tuple[str, str], claims: Iterable[Json], status: str, delay: str
) -> Mapping[str, Json]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": kind[0], "kind": kind[1]},
            "selector": {"matchExpressions": list(claims)},
            "delay": _delay(delay),
            "next": {"statusTemplate": status},
        },
    }


def _claim(key: str, operator: str, values: Sequence[str] = ()) -> Json:
    claim: dict[str, Json] = {"key": key, "operator": operator}
    if values:
        claim["values"] = list(values)
    return claim


def _delay(annotation: str) -> Json:
    return {"durationMilliseconds": 0, "durationFrom": {"expressionFrom": _note(annotation)}}


def _note(name: str) -> str:
    return f'.metadata.annotations["{PREFIX}{name}"]'
