"""Asks the real Argo CD what projects allow, and keeps its answers.

It needs Go and the network: run this package with `python -m`. Zones are taken by what the clock
shows there today, as Argo CD takes them: ask in winter.
"""

from __future__ import annotations

import gzip
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tidegate.model.k8s.objects import Json

HERE = Path(__file__).parent
ANSWERS = HERE.parents[3] / "data" / "projects" / "argo.jsonl.gz"
COUNT = 1_200
REPOSITORIES = (
    "https://git.example.com/shop/platform.git",
    "https://git.example.com/Shop/Platform",
    "https://git.example.com/shop/deep/platform.git",
    "git@git.example.com:shop/platform.git",
    "ssh://git@git.example.com/shop/platform",
    "registry.example.com/charts",
    "https://charts.example.com",
    " https://git.example.com/other/x.git ",
)
REPOSITORY_RULES = (
    "*",
    "**",
    "https://git.example.com/*",
    "https://git.example.com/**",
    "https://git.example.com/shop/*",
    "https://git.example.com/shop/platform.git",
    "https://git.example.com/{shop,other}/*",
    "https://git.example.com/sho?/*",
    "https://git.example.com/[a-s]hop/*",
    "https://*.example.com/**",
    "git@git.example.com:shop/*",
    "ssh://git@git.example.com/shop/platform",
    "registry.example.com/*",
    "!https://git.example.com/shop/*",
    "!https://git.example.com/**",
    "!https://git.example.com/secret/*",
    "https://git.example.com/shop/[",
)
SERVERS = (
    "https://kubernetes.default.svc",
    "https://east.example.com",
    "https://west.example.com:6443",
)
NAMES = ("in-cluster", "east", "west")
SERVER_RULES = (
    "*",
    "",
    "!*east*",
    "https://*.example.com*",
    *SERVERS,
    "!https://kubernetes.default.svc",
)
NAME_RULES = ("", "", "*", "east", "!east", "{east,west}", "in-*")
NAMESPACES = ("shop", "shop-dev", "kube-system", "argocd", "")
NAMESPACE_RULES = ("*", "shop", "shop*", "!kube-system", "!kube-*", "shop-???", "{shop,argocd}", "")
HOMES = ("argocd", "shop", "shop-dev", "team-1")
HOME_RULES = ("*", "shop*", "/^team-[0-9]+$/", "team-?", "/shop/", "!shop")
KINDS = (
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "Namespace"),
    ("apps", "Deployment"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "Role"),
    ("cert-manager.io", "ClusterIssuer"),
)
GROUP_RULES = ("*", "", "apps", "*.io", "rbac.authorization.k8s.io", "[a-c]*")
KIND_RULES = ("*", "ConfigMap", "Cluster*", "*Role", "Secret", "[^S]*", "Name?pace")
SCHEDULES = (
    "* * * * *",
    "0 22 * * *",
    "30 8 * * 1-5",
    "0 0 1 * *",
    "*/20 6-9 * * mon,wed",
    "15 3 10-20 * sun",
    "0 12 * jan-feb ?",
)
DURATIONS = ("1m", "30m", "1h", "8h", "36h", "90m30s")
ZONES = ("", "UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York", "Mars/Base")
FIRST = int(datetime(2026, 1, 5, tzinfo=UTC).timestamp()) * 1_000
SPAN = 40 * 24 * 3_600_000


def questions(seed: int = 7) -> Iterator[dict[str, Json]]:
    dice = random.Random(seed)
    for _ in range(COUNT):
        number = dice.randrange(len(SERVERS))
        key, value = dice.choice((("server", SERVERS[number]), ("name", NAMES[number])))
        place: dict[str, Json] = {key: value, "namespace": dice.choice(NAMESPACES)}
        yield {
            "project": {"metadata": {"name": "team"}, "spec": spec(dice)},
            "application": {
                "metadata": {
                    "name": dice.choice(("web", "web-2")),
                    "namespace": dice.choice(HOMES),
                },
                "spec": {"source": {"repoURL": dice.choice(REPOSITORIES)}, "destination": place},
            },
            "cluster": {"server": SERVERS[number], "name": NAMES[number]},
            "objects": [an_object(dice) for _ in range(3)],
            "moments": [moment(dice) for _ in range(6)],
        }


def spec(dice: random.Random) -> dict[str, Json]:
    made: dict[str, Json] = {
        "sourceRepos": some(dice, REPOSITORY_RULES),
        "sourceNamespaces": some(dice, HOME_RULES),
        "destinations": [
            {
                "server": dice.choice(SERVER_RULES),
                "name": dice.choice(NAME_RULES),
                "namespace": dice.choice(NAMESPACE_RULES),
            }
            for _ in range(dice.randrange(1, 4))
        ],
        "clusterResourceWhitelist": kinds(dice, named=True),
        "namespaceResourceBlacklist": kinds(dice),
        "syncWindows": [window(dice) for _ in range(dice.randrange(4))],
    }
    if dice.random() < 0.5:
        made["namespaceResourceWhitelist"] = kinds(dice)
        made["clusterResourceBlacklist"] = kinds(dice, named=True)
    return made


def some(dice: random.Random, rules: tuple[str, ...]) -> list[Json]:
    return [*dice.sample(rules, dice.randrange(4))]


def kinds(dice: random.Random, *, named: bool = False) -> list[Json]:
    return [
        {
            "group": dice.choice(GROUP_RULES),
            "kind": dice.choice(KIND_RULES),
            **({"name": dice.choice(("", "web", "w*"))} if named else {}),
        }
        for _ in range(dice.randrange(3))
    ]


def window(dice: random.Random) -> dict[str, Json]:
    selectors: dict[str, Json] = {}
    if dice.random() < 0.6:
        selectors["applications"] = [dice.choice(("*", "web", "web-?", "other"))]
    if dice.random() < 0.4:
        selectors["clusters"] = [dice.choice((*SERVERS, *NAMES, "*"))]
    if dice.random() < 0.4:
        selectors["namespaces"] = [dice.choice(("shop", "shop*", "*", "argocd"))]
    return {
        "kind": dice.choice(("allow", "deny")),
        "schedule": dice.choice(SCHEDULES),
        "duration": dice.choice(DURATIONS),
        "timeZone": dice.choice(ZONES),
        "manualSync": dice.random() < 0.5,
        "andOperator": dice.random() < 0.3,
        **selectors,
    }


def an_object(dice: random.Random) -> dict[str, Json]:
    group, kind = dice.choice(KINDS)
    namespace = (
        ""
        if kind.startswith("Cluster") or kind == "Namespace"
        else dice.choice(("shop", "kube-system"))
    )
    return {
        "group": group,
        "kind": kind,
        "namespace": namespace,
        "name": dice.choice(("web", "db")),
    }


def moment(dice: random.Random) -> int:
    """Somewhere, or near the turn of a minute, where windows begin and end."""
    at = FIRST + dice.randrange(SPAN)
    return at // 60_000 * 60_000 + dice.choice((0, 0, -1, 1, 500, 31_000))


def build(folder: str) -> Path:
    go = shutil.which("go")
    if go is None:
        sys.exit("Go is needed; it was not found on PATH")
    program = Path(folder) / "argo_projects"
    subprocess.run([go, "build", "-o", str(program), "./projects"], cwd=HERE.parent, check=True)
    return program


def main() -> None:
    request = list(questions())
    with tempfile.TemporaryDirectory() as folder:
        lines = b"\n".join(map(msgspec.json.encode, request))
        result = subprocess.run(
            [str(build(folder))], input=lines, stdout=subprocess.PIPE, check=True
        )
    rows = (
        msgspec.json.encode({"asked": item, "told": msgspec.json.decode(line)}) + b"\n"
        for item, line in zip(request, result.stdout.splitlines(), strict=True)
    )
    ANSWERS.parent.mkdir(exist_ok=True)
    ANSWERS.write_bytes(gzip.compress(b"".join(rows), mtime=0))


if __name__ == "__main__":
    main()
