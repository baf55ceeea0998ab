"""Repositories with a canary in a place that must not be shown, and a search for it everywhere."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.canary_search import seen
from tests.support.in_process_command import CommandOutput, run_in_process
from tests.support.sops_program import AgeKey, encrypt

CANARY = "canary-in-the-coal-mine-7"
ENCODED = base64.b64encode(CANARY.encode()).decode()
SEALED_DATA = ("--encrypted-regex", "^(data|stringData|value)$")
KEY = AgeKey.generate()

SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
OPEN = CONFIG.replace("web", "open") + "data: {colour: blue}\n"
POD = f"""apiVersion: v1
kind: Pod
metadata: {{name: web}}
spec:
  containers: [{{name: web, image: web, env: [{{name: A, value: {CANARY}}}]}}]
"""
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "values.yaml": "password: none\n",
    "templates/all.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\n"
    "stringData: {password: '{{ .Values.password }}'}\n---\n"
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
    "data: {url: 'https://web:{{ .Values.password }}@db'}\n",
}
FLUX_SECRET = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: given, namespace: flux-system}\n"
    f"data: {{PASSWORD: {ENCODED}}}\n"
)
VALUES = base64.b64encode(f"password: {CANARY}\n".encode()).decode()
VALUES_SECRET = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: given, namespace: flux-system}\n"
    f"data: {{values.yaml: {VALUES}}}\n"
)
SUBSTITUTING = """apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: flux-system}
spec:
  interval: 1m
  prune: true
  path: ./app
  sourceRef: {kind: GitRepository, name: flux-system}
  postBuild: {substituteFrom: [{kind: Secret, name: given}]}
"""
REPOSITORY = """apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: 'https://127.0.0.1:1/web.git', ref: {branch: main}}
"""
RELEASE = """apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system}
spec:
  interval: 1m
  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system}}}
  valuesFrom: [{kind: Secret, name: given}]
"""
APPLICATION = """apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: web, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: '{url}', path: app, targetRevision: main}}
  destination: {{server: 'https://kubernetes.default.svc', namespace: default}}
"""
KUBECONFIG = """apiVersion: v1
kind: Config
current-context: a
clusters: [{{name: a, cluster: {{server: '{server}'}}}}]
users: [{{name: a, user: {{{user}}}}}]
contexts: [{{name: a, context: {{cluster: a, user: a}}}}]
"""
UNREACHABLE = "https://127.0.0.1:1"


@dataclass(frozen=True, slots=True)
class SecretPlace:
    """Where a canary sits: files, what more is run_in_process, and which of them are encrypted."""

    files: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()
    path: str = "."
    kubeconfig: str = ""
    has_key: bool = True


def _cluster(server: str = UNREACHABLE, user: str = "") -> SecretPlace:
    config = KUBECONFIG.format(server=server, user=user)
    return SecretPlace({"open.yaml": OPEN}, kubeconfig=config)


SECRET_PLACES: dict[str, SecretPlace] = {
    "secret": SecretPlace({"a.yaml": SECRET + f"data: {{a: {ENCODED}}}\n"}),
    "string-data": SecretPlace({"a.yaml": SECRET + f"stringData: {{a: {CANARY}}}\n"}),
    "data-is-text": SecretPlace({"a.yaml": SECRET + f"data: {CANARY}\n"}),
    "data-is-a-list": SecretPlace({"a.yaml": SECRET + f"data: [{CANARY}, {{a: {CANARY}}}]\n"}),
    "not-base64": SecretPlace({"a.yaml": SECRET + f"data: {{a: {CANARY}}}\n"}),
    "nested": SecretPlace({"a.yaml": SECRET + f"stringData: {{a: {{b: {CANARY}}}}}\n"}),
    "misspelt-field": SecretPlace({"a.yaml": SECRET + f"stringdata: {{a: {CANARY}}}\n"}),
    "misspelt-kind": SecretPlace(
        {"a.yaml": SECRET.replace("Secret", "secret") + f"data: {{a: {CANARY}}}\n"}
    ),
    "wrong-version": SecretPlace(
        {"a.yaml": SECRET.replace("v1", "v2") + f"data: {{a: {CANARY}}}\n"}
    ),
    "bad-label": SecretPlace(
        {
            "a.yaml": SECRET.replace("name: login", "name: LOGIN_1")
            + f"stringData: {{a: {CANARY}}}\n"
        }
    ),
    "last-applied": SecretPlace(
        {
            "a.yaml": SECRET.replace(
                "name: login",
                "name: login, annotations: {kubectl.kubernetes.io/last-applied-configuration: "
                f'\'{{"data":"{CANARY}"}}\'}}',
            )
        }
    ),
    "alias": SecretPlace({"a.yaml": SECRET + f"stringData: {{a: *{CANARY}}}\n"}),
    "tag": SecretPlace({"a.yaml": SECRET + f"stringData: {{a: !!int {CANARY}}}\n"}),
    "broken-yaml": SecretPlace({"a.yaml": SECRET + f"stringData: {{a: {CANARY}\n b: [\n"}),
    "twice": SecretPlace({"a.yaml": SECRET + f"stringData: {{a: {CANARY}, a: {CANARY}}}\n"}),
    "literal": SecretPlace(
        {"kustomization.yaml": f"secretGenerator: [{{name: a, literals: [{CANARY}]}}]\n"}
    ),
    "literal-pair": SecretPlace(
        {"kustomization.yaml": f"secretGenerator: [{{name: a, literals: ['a={CANARY}']}}]\n"}
    ),
    "sealed-secret": SecretPlace(
        {"a.yaml": SECRET + f"stringData: {{a: {CANARY}}}\n"}, sealed=("a.yaml",)
    ),
    "sealed-config": SecretPlace(
        {"a.yaml": CONFIG + f"data: {{a: {CANARY}}}\n"}, sealed=("a.yaml",)
    ),
    "sealed-env": SecretPlace({"a.yaml": POD}, sealed=("a.yaml",)),
    "sealed-locked": SecretPlace(
        {"a.yaml": CONFIG + f"data: {{a: {CANARY}}}\n"}, sealed=("a.yaml",), has_key=False
    ),
    "set": SecretPlace(CHART, words=("--set", f"password={CANARY}")),
    "substituted": SecretPlace(
        {
            "flux/all.yaml": f"{FLUX_SECRET}---\n{REPOSITORY}---\n{SUBSTITUTING}",
            "app/web.yaml": CONFIG + "data: {url: 'https://web:${PASSWORD}@db'}\n",
        },
        words=("--repo-map", "https://127.0.0.1:1/web.git=."),
    ),
    "values-from": SecretPlace(
        {
            "flux/all.yaml": f"{VALUES_SECRET}---\n{REPOSITORY}---\n{RELEASE}",
            **{f"chart/{name}": text for name, text in CHART.items()},
        },
        words=("--repo-map", "https://127.0.0.1:1/web.git=."),
    ),
    "values-fail": SecretPlace(
        {
            "flux/all.yaml": f"{VALUES_SECRET}---\n{REPOSITORY}---\n{RELEASE}",
            "chart/Chart.yaml": CHART["Chart.yaml"],
            "chart/templates/a.yaml": "{{ fail .Values.password }}\n",
        },
        words=("--repo-map", "https://127.0.0.1:1/web.git=."),
    ),
    "address-token": SecretPlace(
        {"a.yaml": APPLICATION.format(url=f"https://{CANARY}@127.0.0.1:1/a")}
    ),
    "address-password": SecretPlace(
        {"a.yaml": APPLICATION.format(url=f"https://me:{CANARY}@127.0.0.1:1/a.git")}
    ),
    "address-slash": SecretPlace(
        {"a.yaml": APPLICATION.format(url=f"https://me:a/{CANARY}@127.0.0.1:1/a.git")}
    ),
    "address-flux": SecretPlace(
        {"a.yaml": REPOSITORY.replace("127.0.0.1", f"{CANARY}@127.0.0.1") + "---\n" + SUBSTITUTING}
    ),
    "address-base": SecretPlace(
        {"kustomization.yaml": f"resources: ['https://{CANARY}@127.0.0.1:1/a.git?ref=main']\n"}
    ),
    "address-chart": SecretPlace(
        {
            **CHART,
            "Chart.yaml": CHART["Chart.yaml"]
            + f"dependencies: [{{name: a, version: 1.0.0, repository: 'https://{CANARY}@127.0.0.1:1'}}]\n",
        }
    ),
    "address-config": SecretPlace(
        {
            "open.yaml": OPEN,
            "tidegate.yaml": f"repositories: {{'https://{CANARY}@127.0.0.1:1/a': .}}\n",
        }
    ),
    "address-run_in_process": SecretPlace(
        {"open.yaml": OPEN}, path=f"https://{CANARY}@127.0.0.1:1/a.git"
    ),
    "kubeconfig-token": _cluster(user=f"token: {CANARY}"),
    "kubeconfig-password": _cluster(user=f"username: me, password: {CANARY}"),
    "kubeconfig-server": _cluster(server=f"https://me:{CANARY}@127.0.0.1:1"),
    "kubeconfig-key": _cluster(
        user=f"client-certificate-data: {ENCODED}, client-key-data: {ENCODED}"
    ),
    "kubeconfig-exec": _cluster(
        user="exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, "
        f"interactiveMode: Never, args: [-c, 'echo $A >&2; echo {{}}; exit 3'], "
        f"env: [{{name: A, value: {CANARY}}}]}}"
    ),
    "kubeconfig-wrong-type": _cluster(user=f"token: [{CANARY}]"),
}

OFFLINE = ("--offline",)
Command = Callable[[SecretPlace, str], tuple[str, ...]]
VERBS: dict[str, Command] = {
    "render": lambda secret_place, path: ("render", path, *OFFLINE, *secret_place.words),
    "render-json": lambda secret_place, path: (
        "render",
        path,
        "-o",
        "json",
        *OFFLINE,
        *secret_place.words,
    ),
    "render-units": lambda secret_place, path: (
        "render",
        path,
        "-o",
        "units",
        *OFFLINE,
        *secret_place.words,
    ),
    "plan": lambda secret_place, path: ("plan", path, *OFFLINE, *secret_place.words),
    "plan-json": lambda secret_place, path: (
        "plan",
        path,
        "-o",
        "json",
        *OFFLINE,
        *secret_place.words,
    ),
    "simulate": lambda secret_place, path: ("simulate", path, *OFFLINE, *secret_place.words),
    "simulate-json": lambda secret_place, path: (
        "simulate",
        path,
        "-o",
        "json",
        *OFFLINE,
        *secret_place.words,
    ),
    "sync": lambda secret_place, path: ("sync", path, "--sandbox", *OFFLINE, *secret_place.words),
    "sync-json": lambda secret_place, path: (
        "sync",
        path,
        "--sandbox",
        "-o",
        "json",
        *OFFLINE,
        *secret_place.words,
    ),
    "units": lambda secret_place, path: ("units", path, *_mapped(secret_place)),
    "units-json": lambda secret_place, path: ("units", path, "-o", "json", *_mapped(secret_place)),
    "play": lambda _, path: ("sandbox", "run", path),
    "play-json": lambda _, path: ("sandbox", "run", path, "-o", "json"),
    "health": lambda _, path: ("health", f"{path}/a.yaml"),
    "config": lambda _, path: ("config", path),
}
REAL: dict[str, Command] = {
    "plan": lambda secret_place, path: ("plan", path, *secret_place.words),
    "sync": lambda secret_place, path: ("sync", path, "--yes", *secret_place.words),
    "sync-json": lambda secret_place, path: (
        "sync",
        path,
        "--yes",
        "-o",
        "json",
        *secret_place.words,
    ),
    "status": lambda _, path: ("status", path),
    "journal": lambda _, path: ("status", path, "--journal"),
    "delete": lambda _, path: ("delete", path, "--yes"),
    "doctor": lambda _folder, _path: ("doctor",),
}
"""With a kubeconfig, for a server that is not there."""


def _mapped(secret_place: SecretPlace) -> tuple[str, ...]:
    return secret_place.words if "--repo-map" in secret_place.words else ()


SHARE = 6
"""The share of runs on a real cluster; each location and each command has some."""


def all_runs() -> Iterator[tuple[str, str]]:
    """The names of all runs: a lair, and a verb."""
    for name, secret_place in SECRET_PLACES.items():
        yield from ((name, verb) for verb in (REAL if secret_place.kubeconfig else VERBS))


def some_runs() -> Iterator[tuple[str, str]]:
    """All of them if many examples are requested, otherwise an evenly spread share."""
    if "TIDEGATE_EXAMPLES" in os.environ:
        yield from all_runs()
        return
    for place, (name, secret_place) in enumerate(SECRET_PLACES.items()):
        verbs = [*(REAL if secret_place.kubeconfig else VERBS)]
        yield from ((name, verb) for verb in verbs[place % SHARE :: SHARE])


def build(secret_place: SecretPlace, root: Path) -> None:
    """Write the repository, encrypted where it is to be."""
    for name, text in secret_place.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in secret_place.sealed:
            path.write_bytes(encrypt(path, text, KEY, *SEALED_DATA))
        else:
            path.write_text(text)


def run_in(place: Path, secret_place: SecretPlace, verb: str) -> CommandOutput:
    """Type a command in this very process, for a user who has nothing but this place."""
    user_home, temporary, root = place / "home", place / "tmp", place / "repo"
    for folder in (user_home, temporary, root):
        folder.mkdir(parents=True)
    build(secret_place, root)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(user_home),
        "TMPDIR": str(temporary),
        "SOPS_AGE_KEY": KEY.identity if secret_place.has_key else "",
        "KUBECONFIG": str(place / "kubeconfig"),
    }
    if secret_place.kubeconfig:
        (place / "kubeconfig").write_text(secret_place.kubeconfig)
    verbs = REAL if secret_place.kubeconfig else VERBS
    return run_in_process(root, environment, verbs[verb](secret_place, secret_place.path))


def leaks(text: CommandOutput, place: Path) -> list[str]:
    """Where the canary is seen besides the repository and the kubeconfig themselves."""
    texts = (("stdout", text.stdout), ("stderr", text.stderr))
    return seen((CANARY,), texts, (place / "home", place / "tmp"))
