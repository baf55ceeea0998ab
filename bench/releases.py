"""A Helm release of 50 objects: installed, and upgraded without changes, compared with helm.

Both are commands as users run them, on one control plane, in turns: `tidegate sync` of a
HelmRelease, and `helm upgrade --install --wait` of the same chart.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from plane import ControlPlane
from plane.audit import read_audit
from tests.support.helm_oracle import find_helm, run_helm
from tests.support.kubectl import kubectl
from tests.support.releases import ChartRepository, config_map
from tests.support.repositories import deployment
from tidegate.documents.dump import to_yaml

ROUNDS = 3
SETTINGS, DEPLOYMENTS = 45, 5
WRITES = frozenset({"patch", "create", "update", "delete"})
KEPT = frozenset({"leases", "events"})
"""What is not of the release."""


def measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, ControlPlane.start() as plane:
        taken: dict[str, list[float]] = {}
        for number in range(ROUNDS):
            for name, seconds in _round(plane, Path(folder), number).items():
                taken.setdefault(name, []).append(seconds)
        middle = {name: statistics.median(all_of) for name, all_of in taken.items()}
        return {
            **{f"{name} [s]": seconds for name, seconds in middle.items()},
            **{
                f"{name}, of helm's": middle[name] / middle[f"helm: {name}"]
                for name in ("install", "nothing new", "install, CPU", "nothing new, CPU")
            },
            "writes where nothing is new": _writes(plane),
        }


def _round(plane: ControlPlane, folder: Path, number: int) -> dict[str, float]:
    config, taken = plane.kubeconfig("admin"), dict[str, float]()
    ours, theirs = f"bench-{number}", f"helm-{number}"
    for namespace in (ours, theirs):
        kubectl(config, "create", "namespace", namespace)
    shop = _repository(folder / str(number), ours)

    def tidegate() -> None:
        login = str(plane.kubeconfig("tidegate"))
        words = (str(shop.root), "--kubeconfig", login, "--context", "plane", "--yes")
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        command = [sys.executable, "-m", "tidegate", "sync", *words]
        subprocess.run(command, check=True, capture_output=True, env=environment)  # noqa: S603

    def helm() -> None:
        place = ("--namespace", theirs, "--kubeconfig", str(config))
        words = ("upgrade", "--install", "web", str(shop.root / "chart"), "--wait")
        ended = run_helm(find_helm(), *words, *place, user_home=folder)
        if ended.returncode:
            raise RuntimeError(ended.stderr)

    for name in ("install", "nothing new"):
        for whose, run in (("", tidegate), ("helm: ", helm)):
            taken[f"{whose}{name}"], taken[f"{whose}{name}, CPU"] = _seconds(run)
    return taken


def _seconds(run: Callable[[], None]) -> tuple[float, float]:
    """Wall time, and CPU time, which does not depend on other processes."""
    begun, spent = time.perf_counter(), _spent()
    run()
    return time.perf_counter() - begun, _spent() - spent


def _spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _repository(root: Path, namespace: str) -> ChartRepository:
    shop = ChartRepository(root, namespace)
    for number in range(SETTINGS):
        shop.put(f"templates/setting-{number}.yaml", config_map(f"setting-{number}", to="here"))
    for number in range(DEPLOYMENTS):
        shop.put(f"templates/app-{number}.yaml", to_yaml(deployment(f"app-{number}")))
    return shop


def _writes(plane: ControlPlane) -> float:
    """What our last run, in which nothing was new, wrote."""
    mine = [
        item
        for item in read_audit(plane.audit_log)
        if item.user.username == "tidegate" and item.object_ref.namespace == f"bench-{ROUNDS - 1}"
    ]
    mine.sort(key=lambda call: call.request_received_timestamp)
    made = [at for at, item in enumerate(mine) if _is_write(item.verb, item.object_ref.resource)]
    last = max((at for at in made if mine[at].object_ref.name.startswith("sh.helm.")), default=-1)
    return float(len([at for at in made if at > last]))


def _is_write(verb: str, resource: str) -> bool:
    return verb in WRITES and resource not in KEPT
