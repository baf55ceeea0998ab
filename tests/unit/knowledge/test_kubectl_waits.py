"""What a script waits for with kubectl, as far as its text can be read."""

from __future__ import annotations

import pytest

from tidegate.knowledge.waits import (
    KubectlWait,
    OnWaitTimeout,
    WaitCondition,
    find_command_waits,
    find_script_waits,
)
from tidegate.model.times import SECOND, Ms


def describe_waits(*waits: KubectlWait) -> list[str]:
    """A short text for each wait."""
    return [
        " ".join(
            filter(
                None,
                (
                    wait.target,
                    f"in {wait.namespace}" if wait.namespace else "",
                    f"with {wait.selector}" if wait.selector else "",
                    f"{wait.condition.value} {wait.key} {wait.value}".strip(),
                    "for ever" if wait.timeout is None else f"{wait.timeout // SECOND}s",
                ),
            )
        )
        for wait in waits
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "wait gateway/web -n shop --for=condition=Programmed --timeout=60s",
            ["gateway/web in shop condition Programmed True 60s"],
        ),
        (
            "-n shop wait --for condition=Ready=false Pod/a pod/b",
            ["pod/a in shop condition Ready false 30s", "pod/b in shop condition Ready false 30s"],
        ),
        ("wait pod a b --for=delete", ["pod/a delete 30s", "pod/b delete 30s"]),
        ("wait job/a --for=create --timeout=-1s", ["job/a create 604800s"]),
        (
            "wait --for=condition=Ready pod -l app=web,tier!=db -A",
            ["pod in * with app=web,tier!=db condition Ready True 30s"],
        ),
        ("wait pods --all --for=condition=Ready", ["pods condition Ready True 30s"]),
        (
            "wait pod/a --for=jsonpath='{.status.phase}'=Running",
            ["pod/a jsonpath status.phase Running 30s"],
        ),
        (
            "wait svc/a --for=jsonpath='{.status.loadBalancer.ingress}'",
            ["svc/a jsonpath status.loadBalancer.ingress 30s"],
        ),
        ("rollout status deploy/a", ["deploy/a rollout for ever"]),
        ("rollout status deployment a --timeout 5m", ["deployment/a rollout 300s"]),
        ("rollout restart deploy/a", []),
        ("wait -f objects.yaml --for=condition=Ready", []),
        ("wait pod/a --for=jsonpath='{.status.conditions[0].type}'=Ready", []),
        ("wait pod/$UNKNOWN --for=delete", []),
        ("wait pod/a", []),
        ("get pod/a", []),
    ],
)
def test_a_call_of_kubectl_is_read(line: str, expected: list[str]) -> None:
    assert describe_waits(*find_script_waits(f"kubectl {line}\n", {})) == expected


def test_a_command_is_kubectl_itself_or_a_shell_with_a_script() -> None:
    for_deletion = ("wait", "pod/$(NAME)", "--for=delete")
    known = {"NAME": "a"}

    assert describe_waits(*find_command_waits(["/usr/bin/kubectl", *for_deletion], known)) == [
        "pod/a delete 30s"
    ]
    script = "kubectl wait pod/${NAME} --for=delete"
    assert describe_waits(*find_command_waits(["bash", "-euc", script, "--", "x"], known)) == [
        "pod/a delete 30s"
    ]
    assert find_command_waits(["echo", script], known) == ()


def test_loops_over_literal_values_are_unrolled() -> None:
    script = """
        for kind in pod 'svc'; do
          for name in a b
          do
            kubectl wait $kind/${name} --for=create
          done
        done
        for one in $LIST; do kubectl wait pod/$one --for=create; done
    """

    matches = [script_wait.target for script_wait in find_script_waits(script, {})]
    assert matches == ["pod/a", "pod/b", "svc/a", "svc/b"]


@pytest.mark.parametrize(
    ("script", "on_timeout"),
    [
        ("kubectl wait pod/a --for=delete", OnWaitTimeout.FAILS),
        ("kubectl wait pod/a --for=delete\necho done", OnWaitTimeout.GOES_ON),
        ("set -eu\nkubectl wait pod/a --for=delete\necho done", OnWaitTimeout.FAILS),
        ("#!/bin/sh -e\nkubectl wait pod/a --for=delete\necho done", OnWaitTimeout.FAILS),
        ("kubectl wait pod/a --for=delete || true", OnWaitTimeout.GOES_ON),
        ("until kubectl wait pod/a --for=delete; do sleep 1; done", OnWaitTimeout.STAYS),
        ("while ! kubectl wait pod/a --for=delete; do sleep 1; done", OnWaitTimeout.STAYS),
    ],
)
def test_after_a_timed_out_wait_a_script_fails_continues_or_repeats(
    script: str, on_timeout: OnWaitTimeout
) -> None:
    (script_wait,) = find_script_waits(script, {})

    assert (script_wait.on_timeout, script_wait.condition, script_wait.timeout) == (
        on_timeout,
        WaitCondition.DELETED,
        Ms(30 * SECOND),
    )


@pytest.mark.parametrize(
    "script", ["if kubectl wait pod/a --for=delete; then", "kubectl wait 'pod/a", "kubectl \x00 '"]
)
def test_a_script_that_needs_a_shell_to_be_read_is_ignored(script: str) -> None:
    assert find_script_waits(script, {}) == ()
