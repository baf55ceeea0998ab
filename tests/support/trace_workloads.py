"""Builders for the workloads of cases, and what the kubelet is to make of their pods."""

from __future__ import annotations

from tests.support.trace_case import Apply, Change, WatchedObject
from tidegate.model.k8s.kinds import DAEMON_SET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET
from tidegate.model.k8s.objects import Json, JsonObject, Kind

WEB = WatchedObject(DEPLOYMENT, "web")
CREW = WatchedObject(REPLICA_SET, "crew")
DB = WatchedObject(STATEFUL_SET, "db")
AGENT = WatchedObject(DAEMON_SET, "agent")
ACCOUNT = Kind("", "v1", "ServiceAccount")
PREFIX = "test.tidegate.dev/"


def a_template(*, image: str = "app:1", account: str = "", **notes: str) -> JsonObject:
    """A pod template; notes are the kubelet's annotations, with `_` for `-`.

    Pods take a second to become ready: real controllers say more when they are not in a hurry.
    """
    known = {"ready_after": "1s", **notes}
    by_name: JsonObject = {
        f"{PREFIX}{name.replace('_', '-')}": value for name, value in known.items()
    }
    spec: JsonObject = {"containers": [{"name": "app", "image": f"registry.example/{image}"}]}
    if account:
        spec["serviceAccountName"] = account
    return {
        "metadata": {"labels": {"app": "web"}, "annotations": by_name},
        "spec": spec,
    }


def a_workload(
    watched: WatchedObject, *, template: JsonObject | None = None, **spec: Json
) -> Apply:
    return Apply(
        {
            "apiVersion": watched.kind.api_version,
            "kind": watched.kind.name,
            "metadata": {"name": watched.name},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": template or a_template(),
                **spec,
            },
        }
    )


def an_account(name: str) -> Apply:
    return Apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})


def scale(watched: WatchedObject, replicas: int) -> Change:
    return Change(watched, {"spec": {"replicas": replicas}})


def pause(watched: WatchedObject, *, paused: bool = True) -> Change:
    return Change(watched, {"spec": {"paused": paused}})


def rolling(*, surge: int | str, unavailable: int | str) -> JsonObject:
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    }
