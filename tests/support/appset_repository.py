"""A repository with one set of twelve Applications in four steps, each from a descriptor."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.repositories import (
    AUTOMATED,
    FINALIZER,
    URL,
    Repository,
    application,
    deployment,
    job,
    namespace,
    setting,
)
from tidegate.model.k8s.objects import Json, JsonObject

STEPS: dict[str, tuple[str, ...]] = {
    "1": ("a1", "a2", "a3"),
    "2": ("b1", "b2", "b3", "b4"),
    "3": ("c1", "c2"),
    "4": ("d1", "d2", "d3"),
}
MOST: dict[str, Json] = {"1": 1, "2": "50%", "3": 0, "4": "100%"}
LIMITS = {"1": 1, "2": 2, "3": 2, "4": 3}
"""How many Applications of a step may sync at once."""
NAMES = tuple(name for names in STEPS.values() for name in names)


def a_step(number: str, most: Json) -> Json:
    expression: Json = {"key": "step", "operator": "In", "values": [number]}
    return {"matchExpressions": [expression], **({} if most is None else {"maxUpdate": most})}


@dataclass(frozen=True, slots=True)
class SetRepository:
    """The files, and what a test does to them. `rolls`: they come step by step."""

    repository: Repository
    rolls: bool = True

    def write(self, **more: Json) -> None:
        put = self.repository.put
        put("bootstrap/root.yaml", application("root", "sets", into="argocd"))
        put("sets/shop.yaml", namespace("shop", wave=-1))
        self.put_set(**more)
        for number, names in STEPS.items():
            for name in names:
                self.describe(name, number)
                put(f"apps/{name}/objects/web.yaml", deployment(name))

    def put_set(self, **more: Json) -> None:
        steps: Json = [a_step(number, most) for number, most in MOST.items()]
        strategy: Json = {"type": "RollingSync", "rollingSync": {"steps": steps}}
        files: Json = [{"path": "apps/*/app.yaml"}]
        spec: JsonObject = {
            "generators": [{"git": {"repoURL": URL, "revision": "HEAD", "files": files}}],
            "template": {
                "metadata": {"name": "{{name}}", "labels": {"step": "{{step}}"}},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": URL, "path": "{{path}}/{{folder}}"},
                    "destination": {"name": "in-cluster", "namespace": "shop"},
                    "syncPolicy": AUTOMATED,
                },
            },
            **({"strategy": strategy} if self.rolls else {}),
            **more,
        }
        kind: JsonObject = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet"}
        body: JsonObject = {
            **kind,
            "metadata": {"name": "apps", "namespace": "argocd"},
            "spec": spec,
        }
        self.repository.put("sets/apps.yaml", body)

    def describe(self, name: str, step: str, folder: str = "objects") -> None:
        file = self.repository.root / "apps" / name / "app.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"name: {name}\nstep: '{step}'\nfolder: {folder}\n")

    def drop(self, name: str) -> None:
        (self.repository.root / "apps" / name / "app.yaml").unlink()

    def fail(self, name: str) -> None:
        bad = job(f"{name}-smoke")
        bad["spec"]["template"]["metadata"] = {"annotations": {"test.tidegate.dev/outcome": "fail"}}  # type: ignore[index,call-overload]
        self.repository.put(f"apps/{name}/objects/smoke.yaml", bad)

    def fix(self, name: str) -> None:
        self.repository.put(f"apps/{name}/objects/smoke.yaml", setting(f"{name}-smoke"))


__all__ = ["FINALIZER", "LIMITS", "NAMES", "STEPS", "SetRepository"]
