"""The control plane that other tests stand on, with its real programs."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plane import ControlPlane, read_audit
from plane.client import wait_until
from tests.support.kubectl import ROOT, kubectl, run

pytestmark = pytest.mark.kube


NODE_IS_READY = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'


START_AND_WAIT = """\
import json
from plane import ControlPlane

plane = ControlPlane.start()
pids = [program.pid for program in plane.programs.values()]
print(json.dumps({"state": str(plane.site.state), "pids": pids}), flush=True)
input()
"""


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane.start() as plane:
        yield plane


def refusal(kubeconfig: Path, *words: str) -> str:
    with pytest.raises(AssertionError) as caught:
        kubectl(kubeconfig, *words)
    return str(caught.value)


def is_alive(pid: int) -> bool:
    """Whether it runs; one that is dead and not yet buried has no command line."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def test_up_leaves_one_cluster_running_until_down(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "plane"]
    try:
        first = run(*command, "up", environment=environment)
        again = run(*command, "up", environment=environment)
        kubeconfig = Path(first.strip().removeprefix("export KUBECONFIG="))
        node = kubectl(kubeconfig, "get", "node", "kwok-0", "-o", NODE_IS_READY)
        pids = json.loads((tmp_path / "tidegate" / "plane" / "up.json").read_bytes())["pids"]
    finally:
        run(*command, "down", environment=environment)
    run(*command, "down", environment=environment)

    assert again == first
    assert node == "True"
    assert not kubeconfig.exists()
    assert not any(is_alive(pid) for pid in pids.values())


def test_killing_the_parent_process_leaves_no_orphan() -> None:
    with subprocess.Popen(  # our own interpreter
        [sys.executable, "-c", START_AND_WAIT],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as starter:
        assert starter.stdout is not None
        started = json.loads(starter.stdout.readline())
        lived = [is_alive(pid) for pid in started["pids"]]

        starter.send_signal(signal.SIGKILL)

    assert lived == [True] * 5
    assert wait_until(lambda: not any(map(is_alive, started["pids"])), seconds=10)
    shutil.rmtree(started["state"])


def test_a_restarted_api_server_keeps_its_objects_and_its_controllers(plane: ControlPlane) -> None:
    kubeconfig = plane.kubeconfig("tidegate")
    kubectl(kubeconfig, "create", "configmap", "kept", "--from-literal=a=b")

    plane.kill("apiserver")
    plane.revive("apiserver")

    kept = kubectl(kubeconfig, "get", "configmap", "kept", "-o", "jsonpath={.data.a}")
    kubectl(kubeconfig, "create", "deployment", "later", "--image=none")
    kubectl(kubeconfig, "wait", "--for=condition=Available", "deployment/later", "--timeout=30s")
    assert kept == "b"


def test_old_versions_expire_after_compaction_and_a_restart(plane: ControlPlane) -> None:
    kubeconfig = plane.kubeconfig("tidegate")
    configmaps = "/api/v1/namespaces/default/configmaps"
    before = json.loads(kubectl(kubeconfig, "get", "--raw", configmaps))
    version = before["metadata"]["resourceVersion"]
    kubectl(kubeconfig, "create", "configmap", "newer")

    plane.compact()
    plane.compact()
    # The API server remembers for a while by itself.
    plane.kill("apiserver")
    plane.revive("apiserver")

    watch = f"{configmaps}?watch=1&timeoutSeconds=1&resourceVersion={version}"
    (event,) = map(json.loads, kubectl(kubeconfig, "get", "--raw", watch).splitlines())
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_annotations_define_the_course_of_pods(plane: ControlPlane) -> None:
    kubeconfig = plane.kubeconfig("tidegate")
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"will-{outcome}",
                "annotations": {
                    "test.tidegate.dev/outcome": outcome,
                    "test.tidegate.dev/exit-code": "7",
                },
            },
            "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "none"}]},
        }
        for outcome in ("crash", "fail", "run")
    ]
    bundle = {"apiVersion": "v1", "kind": "List", "items": pods}
    state = "jsonpath={.status.containerStatuses[0].state"

    kubectl(kubeconfig, "apply", "-f", "-", text=json.dumps(bundle))

    for name, field, value in (
        ("will-crash", f"{state}.waiting.reason}}", "CrashLoopBackOff"),
        ("will-fail", f"{state}.terminated.exitCode}}", "7"),
        ("will-run", "jsonpath={.status.phase}", "Running"),
    ):
        kubectl(kubeconfig, "wait", f"pod/{name}", f"--for={field}={value}", "--timeout=30s")


def test_users_may_do_what_their_groups_may(plane: ControlPlane) -> None:
    now = datetime.now(UTC)
    good = plane.client_certificate("eve", ["system:masters"])
    expired = plane.client_certificate(
        "eve", ["system:masters"], now - timedelta(days=2), now - timedelta(days=1)
    )
    logins = [
        plane.kubeconfig(
            "eve", credentials={"client-certificate": str(crt), "client-key": str(key)}
        )
        for crt, key in (good, expired)
    ]

    kubectl(logins[0], "get", "pods")

    assert "Unauthorized" in refusal(logins[1], "get", "pods")
    assert "Forbidden" in refusal(plane.kubeconfig("guest"), "get", "pods")
    assert {"eve", "guest"} <= {entry.user.username for entry in read_audit(plane.audit_log)}


def test_a_paused_part_stops_and_a_resumed_one_continues(plane: ControlPlane) -> None:
    kubeconfig = plane.kubeconfig("tidegate")

    plane.pause("kwok")
    kubectl(kubeconfig, "run", "sleeper", "--image=none")
    kubectl(kubeconfig, "wait", "pod/sleeper", "--for=condition=PodScheduled", "--timeout=30s")
    phase = kubectl(kubeconfig, "get", "pod", "sleeper", "-o", "jsonpath={.status.phase}")
    status = Path(f"/proc/{plane.programs['kwok'].pid}/status").read_text()
    plane.resume("kwok")

    assert phase == "Pending"
    assert "State:\tT (stopped)" in status
    kubectl(kubeconfig, "wait", "pod/sleeper", "--for=condition=Ready", "--timeout=30s")
