"""A thousand generated Applications, compared with the same ones in files.

A repository has an ApplicationSet with a list, one with a git generator and Go templates, or a
thousand files with an Application each. `tidegate argocd appset generate` or `tidegate units`
prints them. Each runs in its own process, with an empty cache.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

MANY = 1_000
URL = "https://git.example.com/shop/many.git"
HEAD = "apiVersion: argoproj.io/v1alpha1\n"
SPEC = """\
  project: default
  source: {{repoURL: "{url}", path: "{path}"}}
  destination: {{name: in-cluster, namespace: default}}
  syncPolicy: {{automated: {{}}}}
"""
OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"


def a_set(generator: str, name: str, path: str, *, go: bool = False) -> str:
    spec = SPEC.format(url=URL, path=path).replace("\n  ", "\n      ")
    return (
        f"{HEAD}kind: ApplicationSet\nmetadata: {{name: many, namespace: argocd}}\nspec:\n"
        f"  goTemplate: {str(go).lower()}\n  generators:\n  - {generator}\n"
        f'  template:\n    metadata: {{name: "{name}"}}\n    spec:\n    {spec}'
    )


def an_application(name: str) -> str:
    body = SPEC.format(url=URL, path=f"apps/{name}")
    return f"{HEAD}kind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n{body}"


def repositories(root: Path) -> dict[str, Path]:
    """By how they come about, the same Applications."""
    names = [f"app-{number}" for number in range(MANY)]
    elements = ", ".join(f"{{name: {name}}}" for name in names)
    git = f'git: {{repoURL: "{URL}", revision: HEAD, directories: [{{path: "apps/*"}}]}}'
    texts = {
        "list": {
            "set.yaml": a_set(f"list: {{elements: [{elements}]}}", "{{name}}", "apps/{{name}}")
        },
        "git, Go templates": {
            "set.yaml": a_set(git, "{{ .path.basename }}", "{{ .path.path }}", go=True)
        },
        "written down": {f"written/{name}.yaml": an_application(name) for name in names},
    }
    made = {}
    for number, (way, files) in enumerate(texts.items()):
        made[way] = root / str(number)
        for name in names:
            folder = made[way] / "apps" / name
            folder.mkdir(parents=True)
            (folder / "settings.yaml").write_text(OBJECT)
        for file, text in files.items():
            (made[way] / file).parent.mkdir(parents=True, exist_ok=True)
            (made[way] / file).write_text(text)
    return made


def cpu_of(*words: str | Path) -> float:
    """CPU seconds of one run of the command, and of all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as user_home:
        ran = subprocess.run(  # noqa: S603 - it is ourselves
            [sys.executable, "-m", "tidegate", *map(str, words), "--offline"],
            env={**os.environ, "HOME": user_home, "XDG_CACHE_HOME": f"{user_home}/cache"},
            capture_output=True,
            check=False,
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode or ran.stdout.count(b"app-") < MANY:
        raise RuntimeError(ran.stderr.decode()[-2_000:])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure() -> dict[str, float]:
    """CPU seconds for each way, and the ratio of generated ones to those in files."""
    with tempfile.TemporaryDirectory() as folder:
        made = repositories(Path(folder))
        figures = {
            f"generate, {way}, CPU s": cpu_of(
                "argocd", "appset", "generate", root / "set.yaml", "-o", "names"
            )
            for way, root in made.items()
            if way != "written down"
        }
        figures |= {f"units, {way}, CPU s": cpu_of("units", root) for way, root in made.items()}
    written = figures["units, written down, CPU s"]
    ratios = {
        f"units, {way} / written down": figures[f"units, {way}, CPU s"] / written
        for way in made
        if way != "written down"
    }
    return figures | ratios


if __name__ == "__main__":
    for figure, value in measure().items():
        print(f"{figure:48} {value:12.2f}", flush=True)
