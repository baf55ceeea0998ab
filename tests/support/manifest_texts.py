"""Texts of small repositories: units of both dialects, and the objects that they deploy."""

from __future__ import annotations

URL = "https://git.example.com/shop/platform.git"
WAVE = "argocd.argoproj.io/sync-wave"
HOOK = "argocd.argoproj.io/hook"
SOURCE = f"""apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: flux-system, namespace: flux-system}}
spec: {{interval: 1m, url: {URL}, ref: {{branch: main}}}}
"""


def notes(wave: int | None = None, hook: str = "") -> str:
    text = [f'{WAVE}: "{wave}"'] if wave is not None else []
    text += [f"{HOOK}: {hook}"] if hook else []
    return f", annotations: {{{', '.join(text)}}}" if text else ""


def application(name: str = "shop", path: str = "shop") -> str:
    return f"""apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: {URL}, path: {path}, targetRevision: v1.0.0}}
  destination: {{server: https://kubernetes.default.svc, namespace: shop}}
  syncPolicy: {{automated: {{}}, syncOptions: [CreateNamespace=true]}}
"""


def kustomization(name: str, *after: str, wait: bool = False) -> str:
    depends = (
        f"  dependsOn: [{', '.join(f'{{name: {item}}}' for item in after)}]\n" if after else ""
    )
    return f"""apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: {name}, namespace: flux-system}}
spec:
  interval: 10m
  timeout: 5m
  path: ./{name}
  prune: true
  wait: {str(wait).lower()}
  sourceRef: {{kind: GitRepository, name: flux-system}}
{depends}"""


def config_map(name: str, note: str = "", *, kind: str = "ConfigMap", inside: str = "shop") -> str:
    data = "data: {colour: blue}" if kind == "ConfigMap" else "stringData: {password: change-me}"
    metadata = f"metadata: {{name: {name}, namespace: {inside}{note}}}"
    return f"apiVersion: v1\nkind: {kind}\n{metadata}\n{data}\n"


def service(name: str, note: str = "", *, inside: str = "shop") -> str:
    return f"""apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: {inside}{note}}}
spec: {{selector: {{app: {name}}}, ports: [{{port: 80}}]}}
"""


def pods(
    kind: str,
    name: str,
    note: str = "",
    *,
    maps: tuple[str, ...] = (),
    secrets: tuple[str, ...] = (),
    calls: tuple[str, ...] = (),
    waits: tuple[str, ...] = (),
    inside: str = "shop",
    spec: str = "",
) -> str:
    """A Deployment or a Job: what it reads, whom it calls, whom its init containers wait for."""
    is_job = kind == "Job"
    group = "batch/v1" if is_job else "apps/v1"
    selector = "" if is_job else f"  selector: {{matchLabels: {{app: {name}}}}}\n"
    lines = [f"        - configMapRef: {{name: {item}}}" for item in maps]
    lines += [f"        - secretRef: {{name: {secret}}}" for secret in secrets]
    source = "        envFrom:\n" + "\n".join(lines) + "\n" if lines else ""
    hosts = [
        f"        - {{name: SERVER_{at}_HOST, value: {call}}}" for at, call in enumerate(calls)
    ]
    env = "        env:\n" + "\n".join(hosts) + "\n" if hosts else ""
    inits = [
        f"      - {{name: wait-{at}, image: busybox:1, command: [sh, -c, '{command}']}}"
        for at, command in enumerate(_until(wait, inside) for wait in waits)
    ]
    init = "      initContainers:\n" + "\n".join(inits) + "\n" if inits else ""
    never = "      restartPolicy: Never\n" if is_job else ""
    return f"""apiVersion: {group}
kind: {kind}
metadata: {{name: {name}, namespace: {inside}{note}}}
spec:
{spec}{selector}  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
{never}{init}      containers:
      - name: main
        image: shop/{name}:1
{source}{env}"""


def _until(name: str, inside: str) -> str:
    """A command that waits for a Service."""
    return f"until nc -z {name}.{inside}.svc 80; do sleep 2; done"
