"""The settings files of the parts: what is audited, the scheduler's rate, kwok's stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from plane.identity.users import CONTROLLER_MANAGER, KWOK, SCHEDULER
from plane.parts.site import Site
from plane.parts.stages import kwok_documents
from tidegate.model.k8s.objects import Json

_PROGRAMS = (CONTROLLER_MANAGER.name, SCHEDULER.name, KWOK.name, "system:apiserver")


def audit_policy() -> Mapping[str, object]:
    """People and tests in short, status writes of controllers and operators in full, programs not.

    One log, one clock, microseconds: it is the instrument for order and latency.
    """
    status_writes = [
        {
            "group": "apps",
            "resources": ["deployments/status", "statefulsets/status", "daemonsets/status"],
        },
        {"group": "batch", "resources": ["jobs/status"]},
    ]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {
                "level": "RequestResponse",
                "users": [CONTROLLER_MANAGER.name],
                "resources": status_writes,
            },
            {
                "level": "RequestResponse",
                "resources": [{"group": "kinda.rocks", "resources": ["databases/status"]}],
            },
            {"level": "None", "users": list(_PROGRAMS)},
            {"level": "None", "userGroups": ["system:unauthenticated"]},
            {"level": "Metadata"},
        ],
    }


def scheduler_settings(site: Site) -> Mapping[str, object]:
    """The scheduler takes its request rate from here and from nowhere else."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            "kubeconfig": str(site.kubeconfig("kube-scheduler")),
            "qps": 5000,
            "burst": 10000,
        },
        "leaderElection": {"leaderElect": False},
        "parallelism": 2,
    }


def write_settings(
    site: Site, *, kwok_stages: Sequence[Mapping[str, Json]], runs_pods: bool = True
) -> None:
    """Write the files the command lines point to."""
    site.settings.mkdir(mode=0o700, parents=True, exist_ok=True)
    documents: Mapping[str, Sequence[Mapping[str, object]]] = {
        "audit.yaml": [audit_policy()],
        "scheduler.yaml": [scheduler_settings(site)],
        "kwok.yaml": kwok_documents(kwok_stages, runs_pods=runs_pods),
    }
    for name, contents in documents.items():
        (site.settings / name).write_text(yaml.safe_dump_all(contents, sort_keys=False))
