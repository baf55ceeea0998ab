"""Charts with hooks, for who wants to compare in which order they are run."""

from __future__ import annotations

from tests.support.releases import config_map, hook

BOTH = "pre-install,pre-upgrade"
ALL = "pre-install,post-install,pre-upgrade,post-upgrade"
CASES: dict[str, dict[str, str]] = {
    "one before": {"a": hook("a", BOTH)},
    "one after": {"a": hook("a", "post-install,post-upgrade")},
    "around": {"a": hook("a", ALL)},
    "by weight": {
        "a": hook("a", BOTH, weight=3),
        "b": hook("b", BOTH, weight=-3),
        "c": hook("c", BOTH, weight=0),
    },
    "by name": {"z": hook("a", BOTH), "y": hook("b", BOTH), "x": hook("c", BOTH)},
    "by weight and name": {
        "1": hook("d", BOTH, weight=1),
        "2": hook("c", BOTH, weight=1),
        "3": hook("b", BOTH),
        "4": hook("a", BOTH, weight=2),
    },
    "numbers are no texts": {
        "a": hook("a", BOTH, weight=10),
        "b": hook("b", BOTH, weight=9),
        "c": hook("c", BOTH, weight=-10),
    },
    "kinds": {
        "a": hook("b", BOTH, kind="ConfigMap"),
        "b": hook("a", BOTH, kind="ServiceAccount"),
        "c": hook("c", BOTH),
    },
    "kinds of one name": {
        "a": hook("a", BOTH, kind="ServiceAccount"),
        "b": hook("a", BOTH, kind="ConfigMap"),
        "c": hook("a", BOTH),
    },
    "installs alone": {"a": hook("a", "pre-install"), "b": hook("b", "post-install")},
    "upgrades alone": {"a": hook("a", "pre-upgrade"), "b": hook("b", "post-upgrade")},
    "gone when well": {
        "a": hook("a", BOTH, policy="hook-succeeded"),
        "b": hook("b", BOTH, weight=1, policy="hook-succeeded"),
    },
    "gone when well, and run again": {"a": hook("a", ALL, policy="hook-succeeded")},
    "gone at once": {
        "a": hook("a", ALL, policy="before-hook-creation,hook-succeeded"),
        "b": hook("b", ALL, weight=1, policy="before-hook-creation"),
    },
    "gone if it fails": {"a": hook("a", BOTH, policy="hook-failed,before-hook-creation")},
    "of a file": {"a": "---\n".join((hook("b", BOTH), hook("a", BOTH, weight=1)))},
    "among objects": {
        "a": hook("a", ALL, kind="ConfigMap"),
        "b": config_map("b", to="'{{ .Values.to }}'"),
        "c": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: c}\n",
        "d": "apiVersion: v1\nkind: Secret\nmetadata: {name: d}\nstringData: {to: here}\n",
        "e": "apiVersion: v1\nkind: Service\nmetadata: {name: e}\nspec: {ports: [{port: 80}]}\n",
    },
    "at the end": {
        "a": hook("a", "pre-delete", weight=2),
        "b": hook("b", "pre-delete,post-delete", weight=1),
        "c": hook("c", "post-delete", policy="hook-succeeded"),
        "d": config_map("d", to="'{{ .Values.to }}'"),
    },
    "at the beginning and the end": {"a": hook("a", f"{BOTH},pre-delete,post-delete")},
    "tests are not run": {"a": hook("a", "test"), "b": hook("b", BOTH)},
}
"""By name, the templates of a chart."""
FAILS = {"test.tidegate.dev/outcome": "fail"}
FAILING: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "the one that failed goes, and the one before it": (
        {
            "a": hook("a", BOTH, policy="hook-succeeded"),
            "b": hook("b", BOTH, weight=1, policy="hook-failed", pod=FAILS),
            "c": hook("c", BOTH, weight=2),
        },
        {"b": hook("b", BOTH, weight=1, policy="hook-failed")},
    ),
    "both stay, and make room": (
        {"a": hook("a", BOTH), "b": hook("b", BOTH, weight=1, pod=FAILS)},
        {"b": hook("b", BOTH, weight=1)},
    ),
    "who was well does not go as failed": (
        {
            "a": hook("a", BOTH, policy="hook-failed,before-hook-creation"),
            "b": hook("b", BOTH, weight=1, policy="before-hook-creation", pod=FAILS),
        },
        {"b": hook("b", BOTH, weight=1, policy="before-hook-creation")},
    ),
    "after the objects": (
        {
            "a": hook("a", BOTH, policy="hook-succeeded"),
            "b": hook(
                "b", "post-install,post-upgrade", policy="hook-succeeded,hook-failed", pod=FAILS
            ),
            "d": config_map("d", to="'{{ .Values.to }}'"),
        },
        {"b": hook("b", "post-install,post-upgrade", policy="hook-succeeded,hook-failed")},
    ),
}
"""By name, the templates of a chart in which a hook fails, and those that mend it."""
